"""The command line: `fljax-audit`, and `python -m fljax.audit`."""

from fljax.driver import launch


def main() -> None:
    """Runs the audit that the flags ask for."""
    launch.run("fljax.auditing.program")
