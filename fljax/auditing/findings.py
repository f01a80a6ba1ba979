"""What an audit finds: a table, verdicts, and estimates for every record."""

import types
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fljax import fit, verdicts
from fljax.attacks.adversary import LocalTraining
from fljax.attacks.estimates import Estimates, Prediction
from fljax.auditing import at_risk, cells, words
from fljax.auditing import lines as lines_lib
from fljax.auditing.ceilings import Ceiling
from fljax.auditing.fits import Fit
from fljax.auditing.lines import Line
from fljax.data import FileRecord
from fljax.transcript.views import View

_REFERENCES = ("baseline", verdicts.IMPUTATION, verdicts.STRANGERS, verdicts.OTHERS)


class Audited(NamedTuple):
    """What is the same in all numbers of an audit.

    Attributes:
      data: name of the file of rows.
      model: as it was named.
      defense: name of the clients' defense, as the transcript has it.
      seed: of the attacks.
      clients: `[C]` ids of the audited clients.
      used: `[C]` messages of each.
      left_out: `[C]` messages that are not finite.
      files: that were read.
      sensitive: name of the inferred column.
      target: of the column that the model predicts.
      categories: of the sensitive column; none for a number.
      unit: of one encoded unit of a number, and `middle`, its value at 0.
      row_numbers: where each client's rows stand in the file.
      fit: of models and messages to the true rows.
      flags: every setting by the name of its flag.
      notes: what was taken for granted.
      names: of clients by their ids, where the file has names.
      members: what the file calls the clients of the recording, where it has others, too.
      training: how they train, as far as is known.
      ceiling: what no adversary is above, under the declared defense.
      num_rounds: of the training, to the last one that was recorded.
      sees: what the adversary does.
    """

    data: str
    model: str
    defense: str
    seed: int
    clients: np.ndarray
    used: np.ndarray
    left_out: np.ndarray
    files: Sequence[FileRecord]
    sensitive: str
    target: str
    categories: Sequence[str]
    unit: float
    middle: float
    row_numbers: Sequence[np.ndarray]
    fit: Fit
    flags: Mapping[str, Any]
    notes: Sequence[str] = ()
    names: Mapping[int, str] = types.MappingProxyType({})
    members: Sequence[str] = ()
    training: LocalTraining = LocalTraining()
    ceiling: Ceiling = Ceiling()
    num_rounds: int | None = None
    sees: View = "messages"


class Findings(NamedTuple):
    """The outcome of an audit; a notebook shows its table, `print` its summary and notes.

    Attributes:
      audited: what was audited.
      lines: every attack with its number, interval, baseline and verdict.
      estimates: what every attack said.
    """

    audited: Audited
    lines: Sequence[Line]
    estimates: Estimates

    @property
    def table(self) -> pd.DataFrame:
        """A row per attack: verdict, value, 95 % interval, references and why."""
        return pd.DataFrame(
            [
                {
                    "attack": line.attack,
                    "verdict": line.verdict,
                    **_numbers(line),
                    "metric": line.metric,
                    "setting": line.setting,
                    "detail": line.detail,
                }
                for line in self.lines
            ]
        )

    @property
    def verdicts(self) -> dict[str, str]:
        """Attack -> verdict in words."""
        return {line.attack: verdict_text(line) for line in self.lines}

    @property
    def records(self) -> pd.DataFrame:
        """A row per audited record: client, row of the file, each attack's value.

        Where an attack has a posterior, `<attack>_probability` is that of its value.
        Values are those of the sensitive column; None where an attack has no answer.
        Nothing in it was computed with the true ones.
        """
        rows = self.audited.row_numbers
        clients = np.repeat(self.audited.clients, [len(each) for each in rows])
        columns: dict[str, Any] = {"client": clients, "row": np.concatenate(rows)}
        for name, each in self.estimates.items():
            if isinstance(each, Prediction):
                columns[name] = self._values(_flat(each.value, rows))
                if "probability" in each.details:
                    sure = _flat(each.details["probability"], rows)
                    columns[f"{name}_probability"] = sure.max(axis=-1)
        return pd.DataFrame(columns)

    @property
    def at_risk(self) -> pd.DataFrame:
        """Records by how sure the foremost attack with a posterior is of them.

        Columns `client`, `row`, `value` and `probability`; the surest first, whether or
        not it is right. None of them without such an attack.
        """
        attack = at_risk.attack(self.lines, words.foremost(self.lines))
        return at_risk.order(self.records, attack)

    @property
    def notes(self) -> list[str]:
        """What a reader of the numbers has to know."""
        audited = self.audited
        notes = [*_means(audited), *audited.ceiling.note, *audited.notes]
        return [*notes, *_left_out(audited), *_learnt(audited.fit)]

    @property
    def leaks(self) -> bool:
        """Whether some attack shows a leak."""
        return self.outcome == "leaks"

    @property
    def outcome(self) -> words.Outcome:
        """`leaks`, `no_conclusion` or `no_leak_shown`, which is no proof."""
        return words.outcome(self.lines)

    def _values(self, numbers: np.ndarray) -> Any:
        names = self.audited.categories
        if names:
            return [names[int(at)] if at >= 0 else None for at in numbers]
        return self.audited.middle + self.audited.unit * numbers

    @property
    def clients(self) -> list[str]:
        """Names of the clients, or their ids."""
        names = self.audited.names
        return [names.get(int(c), f"client {c}") for c in self.audited.clients]

    @property
    def summary(self) -> list[str]:
        """What leaks, to whom and how surely, in sentences."""
        audited = self.audited
        return words.summary(
            audited.sensitive,
            self.lines,
            self.clients,
            audited.fit,
            audited.categories,
        )

    def __repr__(self) -> str:
        return "\n".join([*self.summary, *self.notes])

    def _repr_html_(self) -> str:
        return cells.html(self.lines)


def _flat(values, rows: Sequence[np.ndarray]) -> np.ndarray:
    """`[C, n]` as one value for each of the clients' rows."""
    pairs = zip(values, rows, strict=True)
    return np.concatenate([np.asarray(v)[: len(r)] for v, r in pairs])


def verdict_text(line: Line) -> str:
    """A verdict with what stands behind it."""
    if line.verdict == lines_lib.NOT_APPLICABLE:
        return f"{line.verdict}: {line.detail}"
    return f"{line.verdict} ({line.detail})" if line.detail else line.verdict


def _numbers(line: Line) -> dict[str, Any]:
    total = line.total
    if total is None:
        names = ("value", "low", "high", *_REFERENCES, "ceiling")
        return dict.fromkeys(names, np.nan)
    first, *others = _REFERENCES
    return {
        "value": total.value,
        "low": total.low,
        "high": total.high,
        first: total.baseline,
        **{name: total.references.get(name, np.nan) for name in others},
        "ceiling": np.nan if line.ceiling is None else line.ceiling,
    }


def _means(audited: Audited) -> list[str]:
    count = len(audited.clients)
    if count == 1:
        return []
    return [f"Numbers are means over {count} clients, each of which counts the same."]


def _learnt(rows: Fit) -> list[str]:
    """What the training was for, beside which a defense may cost something."""
    each = rows.explained[np.isfinite(rows.explained)]
    if not each.size or not fit.has_learnt(float(each.min())):
        return []  # the lines of attacks say so
    mean = f"{each.mean():.1f} % of the variation of clients' targets"
    ends = f", from {each.min():.1f} to {each.max():.1f}" if each.size > 1 else ""
    return [f"The last model explains {mean}{ends}."]


def _left_out(audited: Audited) -> list[str]:
    found = []
    for client, used, lost in zip(audited.clients, audited.used, audited.left_out):
        if lost:
            found.append(
                f"Client {client}: {lost} of {used + lost} messages hold NaN or "
                "infinity and are left out; its last finite one counts as its last."
            )
    return found
