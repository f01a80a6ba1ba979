"""Epsilon from below: what an adversary demonstrably has, with a stated confidence.

* `statistics`, `counts`: bounds from scores of many trainings;
* `guesses`: bounds from scores of one training with many canaries;
* `canaries`, `planting`: two federations that differ in one row, or in one client;
* `chances`, `background`: how often rows are in steps, and what that hides;
* `evidence`, `likelihood`: what each observer sees, and its likelihood ratio;
* `multi_run`: many independent trainings, half of them with the canary;
* `attainable`: what so many trainings could prove;
* `steps`: any private step, from its outputs;
* `crowd`, `coins`, `one_training`: one training with many canaries;
* `recorded`: the same of a training that somebody else recorded.
"""

from fljax.privacy.audits.canaries import Canary
from fljax.privacy.audits.chances import inclusions
from fljax.privacy.audits.crowd import plant_many
from fljax.privacy.audits.evidence import OBSERVERS, Observer
from fljax.privacy.audits.guesses import one_run
from fljax.privacy.audits.multi_run import Audit, accounted, audit
from fljax.privacy.audits.one_training import audit_once
from fljax.privacy.audits.planting import plant
from fljax.privacy.audits.recorded import audit_transcript, plant_canaries, planted
from fljax.privacy.audits.statistics import Audited, audited
from fljax.privacy.audits.steps import StepAudit, audit_step

__all__ = [
    "OBSERVERS",
    "Audit",
    "Audited",
    "Canary",
    "Observer",
    "StepAudit",
    "accounted",
    "audit",
    "audit_once",
    "audit_step",
    "audit_transcript",
    "audited",
    "inclusions",
    "one_run",
    "plant",
    "plant_canaries",
    "plant_many",
    "planted",
]
