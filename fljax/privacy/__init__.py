"""Privacy guarantees of noisy training: epsilon from noise, and noise from epsilon.

    privacy.epsilon(6.0, 0.01, 10_000, delta=1e-5, accountant="pld")
    privacy.noise_multiplier_for(1.0, 1e-5, 0.01, 10_000)
    privacy.guarantee(defense.noise, steps, delta=1e-5)
    privacy.accuracy_without(defense.noise[0], steps, without=0.6)
    privacy.statements("fed_cdp", privacy.Training(...))
    privacy.Ledger(noise, delta=1e-5, steps=5).charge(0, clients)  # while it trains
    privacy.audit(privacy.plant(method_of, ...), trainings=10_000, delta=0.1)
    privacy.check_dp(step_fn, params, batch, noise=..., sensitivity=..., batch_size=...)

All accountants are those of dp_accounting; `bounds` says how often any adversary can be
right, `audits` what one demonstrably has; `exact` and `sampled` hold one function per
kind of sampling, made of `loss_distributions` and `renyi`, `printed` the recipe of a paper's table, `fed_cdp` and `fed_sdp` what
can be said of a whole training, every number with its assumptions in words.
"""

from fljax.privacy.audits import (
    Audit,
    Audited,
    Canary,
    StepAudit,
    audit,
    audit_once,
    audit_step,
    audit_transcript,
    audited,
    one_run,
    plant,
    plant_canaries,
    plant_many,
    planted,
)
from fljax.privacy.bounds import (
    accuracy_of_epsilon,
    accuracy_of_prior,
    accuracy_without,
)
from fljax.privacy.budgets import (
    Promise,
    Releases,
    against,
    ceiling,
    numbers_for,
    promises,
)
from fljax.privacy.calibration import (
    Unattainable,
    noise_multiplier_for,
    rounds_for,
    sigma_for,
    steps_for,
)
from fljax.privacy.ledger import Ledger
from fljax.privacy.noise_findings import Finding
from fljax.privacy.noise_spec import Guarantee, as_poisson, guarantee
from fljax.privacy.printed import as_printed
from fljax.privacy.sampled import Accountant, epsilon
from fljax.privacy.self_test import check_dp
from fljax.privacy.statements import Statement, Training
from fljax.privacy.trainings import METHODS, statements

__all__ = [
    "METHODS",
    "Accountant",
    "Audit",
    "Audited",
    "Canary",
    "Finding",
    "Guarantee",
    "Ledger",
    "Promise",
    "Releases",
    "Statement",
    "StepAudit",
    "Training",
    "Unattainable",
    "accuracy_of_epsilon",
    "accuracy_of_prior",
    "accuracy_without",
    "against",
    "as_poisson",
    "as_printed",
    "audit",
    "audit_once",
    "audit_step",
    "audit_transcript",
    "audited",
    "ceiling",
    "check_dp",
    "epsilon",
    "guarantee",
    "noise_multiplier_for",
    "numbers_for",
    "one_run",
    "plant",
    "plant_canaries",
    "plant_many",
    "planted",
    "promises",
    "rounds_for",
    "sigma_for",
    "statements",
    "steps_for",
]
