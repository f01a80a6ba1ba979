"""What `python -m experiments.NAME` does first, before anything slow is imported."""

import importlib
import sys

from absl import flags

from fljax.driver import config

flags.disclaim_key_flags()  # they are then those of __main__, which --help shows


def run(name: str) -> None:
    """Runs a module with `define()`, `main()` and `ERRORS`; --help is about it.

    Args:
      name: of the module, which is imported here so that Ctrl-C has its exit code 130
        from the start.
    """
    try:
        program = importlib.import_module(name)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    sys.modules["__main__"].__doc__ = program.__doc__  # which --help shows
    program.define()
    flags.adopt_module_key_flags(program)
    config.app_main(program.main, program.ERRORS)
