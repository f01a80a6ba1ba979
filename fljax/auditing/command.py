"""The command line: `fljax-audit`, and `python -m fljax.audit`."""

import os
import sys

from fljax.driver import launch


def main() -> None:
    """Runs the audit that the flags ask for; code of one's own may be in this folder."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    launch.run("fljax.auditing.program")
