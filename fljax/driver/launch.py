"""What `python -m experiments.NAME` does first, before anything slow is imported.

Whatever a user got wrong is one line, not a traceback.
"""

import contextlib
import errno
import importlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Callable
from typing import NoReturn

from absl import app, flags

from fljax import printable
from fljax.driver import help_text
from fljax.driver.config import ConfigError

_HELP = {"--help", "-help", "-h"}
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # no defect of the program
flags.disclaim_key_flags()  # they are then those of __main__, which --help shows


def run(name: str) -> None:
    """Runs the `PROGRAM` of a module; --help is about it.

    Args:
      name: of the module, which is imported here so that Ctrl-C has its exit code 130
        from the start.
    """
    try:
        module = importlib.import_module(name)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    module.PROGRAM.define()

    def help_() -> str:
        sections = module.PROGRAM.sections()
        return help_text.of(module.__doc__ or "", sections, flags.FLAGS)

    app_main(module.PROGRAM.main, module.PROGRAM.mistakes, help_=help_)


def app_main(
    main_fn: Callable[[], int | None],
    errors: tuple[type[Exception], ...] = (),
    *,
    argv: list[str] | None = None,
    help_: Callable[[], str] | None = None,
) -> None:
    """Parses the flags, runs `main_fn()` and exits the process.

    Exit codes: what `main_fn` returns (None is 0); 1 if nobody reads the output; 2, after
    one line on standard error, for a flag or value that cannot be used or needs more
    memory or disk than there is; 130 for an interrupt. Other exceptions are defects and keep their traceback.

    Args:
      main_fn: the experiment; takes nothing and calls `read`.
      errors: exceptions that also stand for a user's mistake.
      argv: program name and arguments instead of `sys.argv`, for tests.
      help_: makes what --help prints; None for absl's list of flags.
    """

    def main(args: list[str]) -> int | None:
        if len(args) > 1:
            raise ConfigError(f"arguments: expected flags only, got {args[1]!r}")
        return main_fn()

    logging.getLogger("jax").setLevel(logging.WARNING)  # else: backends not found
    warnings.formatwarning = lambda message, *_, **__: (
        f"warning: {printable.line(message)}\n"
    )
    try:
        try:
            if help_ and _HELP & {*sys.argv[1:]}:
                print(help_())
                return
            app.run(main, argv=argv, flags_parser=_parse)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # as `--help | head` leaves it
        _close_output()
        raise SystemExit(1) from None
    except (ConfigError, flags.Error, *errors) as error:
        _stop(error, 2)
    except MemoryError as error:  # refused before it is taken, or by the system
        _stop(f"not enough memory: {error}", 2)
    except RuntimeError as error:  # as jax says it
        if not str(error).startswith("RESOURCE_EXHAUSTED"):
            raise
        _stop(f"not enough memory: {str(error).partition(': ')[2]}", 2)
    except OSError as error:
        if error.errno not in _FULL:
            raise
        _close_output()
        parts = filter(None, (error.strerror, error.filename))
        _stop(f"cannot be written: {': '.join(map(str, parts))}", 2)
    except KeyboardInterrupt as stop:
        _stop(str(stop) or "interrupted", 130)


def _close_output() -> None:
    """Exiting would write once more what could not be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parse(argv: list[str]) -> list[str]:
    """Arguments that are no flags; absl's own would print the usage after a wrong one."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            rest = flags.FLAGS(argv)
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"--flagfile: expected a text file in UTF-8: {error}"
        ) from error
    if "circular" in said.getvalue():  # absl would go on
        raise ConfigError("--flagfile: expected files that do not name themselves")
    sys.stderr.write(said.getvalue())
    return rest


def _stop(reason: object, code: int) -> NoReturn:
    # absl puts the parser's own message behind a second copy of flag and value.
    cause = reason.__context__ if isinstance(reason, flags.Error) else None
    shown = cause if isinstance(cause, ConfigError) else reason
    print(printable.line(shown), file=sys.stderr)
    raise SystemExit(code)
