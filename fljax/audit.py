"""`python -m fljax.audit`, see `fljax.auditing.program`; in code, `fljax.audit` is a function.

A module of this name that could be imported would take the place of that function.
"""

from fljax.auditing import command

if __name__ != "__main__":
    raise ImportError("fljax.audit is a function: import fljax, and call fljax.audit()")
command.main()
