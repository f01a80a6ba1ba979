"""Epsilon from below: what an adversary demonstrably has, with a stated confidence.

* `statistics`: bounds from scores, of many trainings or of one with many canaries;
* `canaries`, `planting`: two federations that differ in one row, or in one client;
* `evidence`, `likelihood`: what each observer sees, and its likelihood ratio;
* `multi_run`: many independent trainings, half of them with the canary;
"""

from fljax.privacy.audits.canaries import Canary
from fljax.privacy.audits.evidence import OBSERVERS, Observer
from fljax.privacy.audits.multi_run import Audit, Scores, accounted, audit, scores
from fljax.privacy.audits.planting import plant
from fljax.privacy.audits.statistics import Audited, audited, one_run

__all__ = [
    "OBSERVERS",
    "Audit",
    "Audited",
    "Canary",
    "Observer",
    "Scores",
    "accounted",
    "audit",
    "audited",
    "one_run",
    "plant",
    "scores",
]
