"""What --help prints: what a program does, then its flags, those that most need first."""

from collections.abc import Mapping, Sequence

from absl import flags

flags.disclaim_key_flags()


def of(
    about: str, sections: Mapping[str, Sequence[str]], flag_values: flags.FlagValues
) -> str:
    """The text.

    Args:
      about: what the program does.
      sections: heading -> names of flags; a flag is shown where it is named first.
      flag_values: that know them.
    """
    parts, shown = [about.strip()], set()
    for heading, names in sections.items():
        fresh = [name for name in dict.fromkeys(names) if name not in shown]
        shown.update(fresh)
        if fresh:
            parts += [f"\n{heading}:", *(_flag(flag_values[name]) for name in fresh)]
    return "\n".join(parts)


def _flag(flag: flags.Flag) -> str:
    name = f"--[no]{flag.name}" if flag.boolean else f"--{flag.name}"
    default = (flag.default_as_str or "").strip("'")
    usual = f" (default: {default})" if default else ""
    text = " ".join((flag.help or "").split())
    return flags.text_wrap(
        f"{name}: {text}{usual}", indent="    ", firstline_indent="  "
    )
