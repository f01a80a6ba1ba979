"""An audit of somebody's own federated training, from a transcript of any framework.

`fljax.audit` is the function (`library`), `fljax-audit` and `python -m fljax.audit` the
command line (`program`).
"""
