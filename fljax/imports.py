"""Code of the user's own, named as `package.module:attribute`; naming it runs it."""

import importlib
import pathlib
import traceback
from collections.abc import Callable
from typing import Any


def attribute(text: str) -> Any:
    """What `package.module:attribute` is; the module is imported, i.e. run.

    Raises:
      ImportError: in one line, it is not there, or its code stopped with an error.
    """
    module, _, name = text.partition(":")
    if module.startswith("."):
        raise ImportError("expected the full name of a module")
    return called(lambda: getattr(importlib.import_module(module), name))


def called(user: Callable[[], Any]) -> Any:
    """What a function of the user's returns.

    Raises:
      ImportError: in one line, it stopped with an error, which may be any.
    """
    try:
        return user()
    except (ImportError, AttributeError) as error:
        raise ImportError(str(error)) from error
    except (Exception, SystemExit) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        if not isinstance(error, SyntaxError):  # which says itself where
            last = traceback.extract_tb(error.__traceback__)[-1]
            reason += f" ({pathlib.Path(last.filename).name}, line {last.lineno})"
        raise ImportError(reason) from error
