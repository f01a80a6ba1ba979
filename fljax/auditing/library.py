"""`fljax.audit`: an audit from Python, of arrays, data frames or files."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from fljax import precision, verdicts
from fljax.attacks import controls
from fljax.attacks.estimates import Estimates, Prediction
from fljax.attacks.spec import AttackSpec
from fljax.attacks.trajectory import clients
from fljax.auditing import (
    arguments,
    attacking,
    ceilings,
    effort,
    fits,
    frames,
    inputs,
    local_training,
    population,
    recording,
    reporting,
    scoring,
)
from fljax.auditing import case as case_lib
from fljax.auditing import settings as settings_lib
from fljax.auditing.case import Case
from fljax.auditing.ceilings import Ceiling
from fljax.auditing.findings import Audited, Findings
from fljax.auditing.fits import Fit
from fljax.auditing.frames import Rows
from fljax.auditing.inputs import Inputs
from fljax.auditing.measuring import Controls
from fljax.auditing.recording import Recording
from fljax.auditing.settings import Config
from fljax.driver import config as config_lib
from fljax.driver.config import ConfigError
from fljax.types import ElementLossFn, Model, Transcript


def _untimed(name: str) -> contextlib.AbstractContextManager[None]:
    del name
    return contextlib.nullcontext()


def _computed(name: str, compute: Callable[[], Estimates]) -> Estimates:
    del name
    return compute()


class Audit(Findings):
    """`Findings` that can be written into a folder."""

    __slots__ = ()

    def save(self, folder: str | os.PathLike) -> None:
        """Writes `rows.jsonl`, `manifest.json`, `records.csv` and `report.html`.

        Raises:
          ValueError: the folder holds something else, or cannot be written.
        """
        with arguments.named(run_dir="folder"):
            reporting.save(self, folder)


def audit(
    transcript: str | os.PathLike | Transcript,
    rows: Rows,
    *,
    target: str,
    sensitive: str,
    model: str | Model = "linear",
    loss: str | ElementLossFn | None = None,
    client_column: str | None = None,
    client: Sequence[int] = (),
    proxy: Rows | None = None,
    attacks: Sequence[str | AttackSpec] = settings_lib.ATTACKS,
    settings: Mapping[str, Hashable] | None = None,
    **options: Any,
) -> Audit:
    """What a federated training tells of the rows that its clients have.

    Attacks get the messages and the rows without the sensitive column, which is only
    compared with what they estimate. On a CPU, `fljax.parallel.use_cpu_cores()` before
    the first use of JAX makes every core work.

    Args:
      transcript: what the adversary saw: a path without `.npz`, a folder with one
        transcript, or a `Transcript` of one seed.
      rows: the clients' rows, a CSV file or a data frame, which is read as the CSV file
        that it makes, without its index; its columns of type `category` are categories,
        in sorted order.
      target: column that the model predicts.
      sensitive: column that is inferred.
      model: `linear`, `mlp:64,32`, `package.module:attribute`, or a `fljax.types.Model`
        on `Features`, whose numeric inputs are in the order of the columns.
      loss: of a row, `(output, target) -> []`, or its name as in `fljax-audit --loss`;
        None for what the recording says, or what is usual for the target.
      client_column: column with the id of the client that has a row.
      client: audited ids; nothing for all that the transcript and the rows have.
      proxy: the adversary's own rows, as `rows`.
      attacks: names or groups of `fljax.attacks.registry`, and `AttackSpec` objects of your own.
      settings: of attacks, by name, in place of those that `options` make.
      **options: every other flag of `fljax-audit` by its name: how columns are read
        (`numeric`, `categorical`, `drop`, `missing`, `task`, `standardise`, ...), how
        clients train where the transcript does not say (`batch_size`, `learning_rate`,
        `local_epochs`, ...), how hard attacks look (`grad_iterations`, ...), `seed`.

    Returns:
      `Findings`, and `.save(folder)` of them.

    Raises:
      ValueError: something does not fit; the message is one line.
      TypeError: for an option that does not exist.

    Example:
      ```python
      findings = fljax.audit(
          "runs/seen", frame, target="y", sensitive="married", model="mlp:128",
          client_column="client",
      )
      print(*findings.summary)  # what leaks, to whom and how surely
      ```
    """
    named, own_loss = isinstance(model, str), not isinstance(loss, str | None)
    given = {
        "transcript": _name(transcript), "known": _name(rows), "target": target,
        "sensitive": sensitive, "model": model if named else "model",
        "loss": "loss" if own_loss else loss, "client_column": client_column,
        "client": client, "proxy": None if proxy is None else _name(proxy, "proxy"),
    }  # fmt: skip
    with arguments.named(known="rows"), tempfile.TemporaryDirectory() as folder:
        if model is None:
            raise ConfigError("--model: expected 'mlp:128', say, or a Model, got None")
        if not isinstance(transcript, str | os.PathLike | Transcript):
            kind = type(transcript).__name__
            raise ConfigError(
                f"--transcript: expected a path or a Transcript, got {kind}"
            )
        config = arguments.config(
            given | {"attacks": attacking.names(attacks)}, options
        )
        read_as = frames.columns(rows, config.files, config.rows)
        config = config._replace(rows=read_as)
        chosen, settings = attacking.chosen(attacks), settings or {}
        attacking.check_settings(settings, chosen)
        read = inputs.read(
            config.files,
            config.rows,
            known=frames.path(rows, folder, "rows"),
            proxy=None if proxy is None else frames.path(proxy, folder, "proxy"),
            seen=_recording(transcript),
        )
        case = case_lib.prepare(
            config,
            read,
            None if isinstance(model, str) else model,
            None if isinstance(loss, str) else loss,
        )
        effort.check(case, chosen, config.audit)
        case = case._replace(notes=[arguments.renamed(note) for note in case.notes])
        return Audit(*attack_and_score(config, read, case, chosen, settings))


@precision.full
def attack_and_score(
    config: Config,
    read: Inputs,
    case: Case,
    attacks: Sequence[AttackSpec],
    settings: Mapping[str, Hashable],
    stage: attacking.Stage = _untimed,
    keep: Callable[[str, Callable[[], Estimates]], Estimates] = _computed,
) -> Findings:
    """Attacks the clients' rows and the controls', and only then looks at the truth."""
    settings = settings_lib.of_attacks(config.audit) | dict(settings)
    estimates = attacking.estimates(case.view, attacks, settings, stage, keep)
    asked, told = config.audit.controls, (attacks, settings, stage, keep)
    views = {
        verdicts.STRANGERS: lambda: case.view_of_strangers,
        verdicts.PERMUTED: lambda: controls.permuted(case.view),
        "others": lambda: controls.with_messages_of_others(case.view),
    }
    again = {
        name: attacking.on_control(name, make(), *told)
        for name, make in views.items()
        if name in asked
    }
    with stage("score"):
        rows = fits.of_rows(
            case.view,
            case.truth,
            _simulation(config, settings),
            config.audit.most_steps,
        )
        return _score(config, read, case, estimates, again, rows)


def _simulation(config: Config, settings: Mapping[str, Hashable]) -> clients.Settings:
    """How clients are simulated: as trajectory matching is told, or by its flags."""
    given = settings["trajectory"]
    return (
        given
        if isinstance(given, clients.Settings)
        else settings_lib.simulation(config.audit)
    )


def _score(
    config: Config,
    read: Inputs,
    case: Case,
    estimates: Estimates,
    again: Mapping[str, Mapping[str, Prediction]],
    rows: Fit,
) -> Findings:
    """Compares estimates with the truth: the end of every audit."""
    beside, view = _controls(config, case, again), case.view
    lines = scoring.lines(
        estimates,
        case.truth,
        continuous=view.continuous,
        controls=beside,
        rows=rows,
    )
    about, stem = read.recording.about, read.recording.stem
    promised = case.left_out, case.declared
    ceiling = Ceiling(why=rows.lacking)
    if not rows.lacking:
        ceiling = ceilings.find(view, case.truth, beside.imputed, *promised)
    lines, ceiling = ceilings.beside(lines, ceiling)
    encoder = case.encoding.dataset.encoder
    assert view.messages is not None and view.transcript is not None
    audited = Audited(
        data=read.owned.table.name,
        model=config.training.model,
        defense=local_training.defense(about, config.training, stem),
        seed=config.audit.seed,
        clients=view.clients,
        used=np.asarray(view.messages.count),
        left_out=case.left_out,
        files=read.files,
        sensitive=config.files.sensitive,
        target=config.files.target,
        categories=case.encoding.columns.categories,
        unit=float(encoder.scale[-1]),
        middle=float(encoder.mean[-1]),
        row_numbers=case.row_numbers,
        flags={k: v for group in config for k, v in config_lib.to_flags(group).items()},
        notes=case.notes,
        names=read.owned.names,
        members=read.owned.members(case.recording.clients, config.files.client_column),
        training=view.training,
        fit=rows,
        ceiling=ceiling,
        num_rounds=int(view.transcript.round[-1]) + 1,
        sees=view.sees,
    )
    return Findings(audited, lines, estimates)


def _controls(
    config: Config, case: Case, again: Mapping[str, Mapping[str, Prediction]]
) -> Controls:
    """What attacks are compared with, of the controls that were asked for."""
    found = Controls(
        estimates=again.get(verdicts.STRANGERS, {}),
        permuted=again.get(verdicts.PERMUTED, {}),
        others=again.get("others", {}),
    )
    asked, strangers = config.audit.controls, case.strangers
    if verdicts.IMPUTATION in asked:
        imputed = population.imputed(case.everyone, strangers, config.audit.seed)
        found = found._replace(imputed=imputed)
    if verdicts.STRANGERS in asked and strangers is not None:
        told = {"uses": strangers.uses, "drawn": strangers.rows}
        found = found._replace(strangers=strangers.truth, **told)
    return found


def _recording(transcript: Any) -> Recording | None:
    if not isinstance(transcript, Transcript):
        return None
    return recording.of(transcript)


def _name(given: Any, argument: str = "rows") -> str:
    if isinstance(given, str | os.PathLike):
        return os.fspath(given)
    return "transcript" if isinstance(given, Transcript) else argument
