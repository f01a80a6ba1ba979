"""Brings rows, model and transcript together, and takes the truth apart from them."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from fljax import data, losses
from fljax.attacks import controls
from fljax.attacks.adversary import AdversaryView, ProxyRows
from fljax.auditing import (
    architecture,
    client_loss,
    declaration,
    derived,
    in_order,
    local_training,
    normalisation,
    padding,
    population,
    recording,
    rows,
    unmatched,
    values,
)
from fljax.auditing.declaration import Declared
from fljax.auditing.inputs import Inputs
from fljax.auditing.population import Everyone, Strangers
from fljax.auditing.recording import Recording
from fljax.auditing.rows import Encoding
from fljax.auditing.settings import Config
from fljax.auditing.table import Owned
from fljax.auditing.truth import Truth
from fljax.defenses import specs
from fljax.driver.config import ConfigError
from fljax.transcript import TranscriptError
from fljax.types import ElementLossFn, Model

_NO_STRANGERS = (
    "All rows are {whose}, so that there are no strangers to compare with: what an attack "
    "would tell of anyone may count as a leak. Rows of others, in the file or as --proxy, "
    "mend that."
)

_NO_OTHERS = (
    "No messages of single other clients were recorded, which --controls=others needs."
)


class Case(NamedTuple):
    """An audit that is ready: the two halves that only meet in a score.

    Attributes:
      view: for the attacks.
      truth: for the scores.
      encoding: of the rows.
      recording: the transcript as it was read.
      left_out: `[C]` messages that are not finite.
      row_numbers: of each client `[n]`, where its rows stand in the file, from 0.
      notes: what was taken for granted, for readers.
      everyone: all rows, for what is guessed without messages.
      strangers: rows that are not the clients', None where there are none.
      declared: the clients' defense, as they say.
    """

    view: AdversaryView
    truth: Truth
    encoding: Encoding
    recording: Recording
    left_out: np.ndarray
    row_numbers: list[np.ndarray]
    notes: list[str]
    everyone: Everyone
    strangers: Strangers | None
    declared: Declared

    @property
    def view_of_strangers(self) -> AdversaryView | None:
        """The messages of each client with strangers' rows in place of its own."""
        if self.strangers is None:
            return None
        return controls.strangers(self.view, self.strangers.known)


def prepare(
    config: Config,
    inputs: Inputs,
    given: Model | None = None,
    loss: ElementLossFn | None = None,
) -> Case:
    """Brings transcript, rows and model together, and takes the truth apart.

    Args:
      config: all settings.
      inputs: what was read.
      given: the model, if it is no name.
      loss: of a row's output, likewise.

    Raises:
      ConfigError: they do not fit each other.
      TranscriptError: the transcript is damaged, or not one of this model.
      DataError: the rows cannot be encoded.
    """
    owned = inputs.owned
    sees = inputs.recording.sees
    seen = recording.with_sums(inputs.recording, owned.client)
    clients, own = _whose(config, owned, seen)
    encoding, outputs, model, notes = _fitted(config, owned, seen, given)
    columns = encoding.columns
    every = _everyone(config, encoding, own, inputs.proxy)
    every = every.with_others(owned.client, seen.clients)
    most = max(map(len, own))
    padding.check(len(own), most, every.split.x.numeric.shape[1])
    known, truth = rows.split(encoding, every.split, own, outputs, most)
    selected = recording.select(seen, model, clients)
    trained = seen.about, config.training, seen.stem
    element_loss = client_loss.read(*trained, columns.task, outputs, loss)
    view = AdversaryView(
        transcript=selected.transcript,
        messages=selected.messages,
        clients=clients,
        known=known,
        candidates=columns.candidates,
        continuous=columns.continuous,
        loss_fn=losses.example_loss(model.apply, element_loss),
        apply=model.apply,
        task=columns.task,
        outputs=outputs,
        linear=config.training.model == "linear",
        training=local_training.read(*trained),
        seed=config.audit.seed,
        proxy=_proxy(encoding, inputs.proxy),
        sees=sees,
    )
    promised = local_training.declared(*trained)
    defense, said = declaration.simulated(promised, view)
    view, undropped = local_training.undropped(view._replace(defense=defense))
    numbers = [owned.row[each] for each in own]
    notes += [*inputs.warned, *derived.notes(owned.table)]
    notes += unmatched.notes(config.files, owned, seen, sees)
    notes += local_training.notes(*trained) + said
    notes += [*client_loss.notes(*trained), *undropped]
    notes += recording.notes(inputs.recording)
    notes += normalisation.notes(seen.seen)
    summed = _summed(seen, clients, owned)
    others = population.strangers(every, encoding, outputs, config.audit.seed, summed)
    if others is None and "strangers" in config.audit.controls:
        whose = "of one client"
        if summed is not None:
            whose = "of people whom the recorded sums hold"
        notes.append(_NO_STRANGERS.format(whose=whose))
    alone = len(seen.clients) < 2 or sees != "messages"
    if alone and "others" in config.audit.controls:
        notes.append(_NO_OTHERS)
    found = view, truth, encoding, seen, selected.left_out, numbers, notes
    return Case(*found, every, others, promised)


def _fitted(
    config: Config, owned: Owned, seen: Recording, given: Model | None
) -> tuple[Encoding, int, Model, list[str]]:
    """Encoding, outputs and model that fit the transcript, and what to say of them.

    Raises:
      ConfigError, TranscriptError: none does; about columns of two texts as one input.
    """
    pairs, wanted = rows.of_two_texts(owned), config.rows.binary_text
    readings = [wanted == "two"]
    if wanted == "auto" and pairs and not config.rows.drop_first:
        readings = [False, True]
    defense = local_training.simulated(seen.about, config.training, seen.stem)
    pruned = specs.may_prune(defense or specs.NONE)
    failed: list[Exception] = []
    for two in readings:
        encoding = rows.encode(owned, config.rows, two)
        columns = encoding.columns
        count, most = len(columns.categories), config.audit.most_values
        values.check("", config.files.sensitive, count, most)
        outputs = 1
        if columns.task == "multiclass":
            outputs = max(columns.classes, config.training.classes or 0)
            _check_order(config, encoding, outputs)
        try:
            model = architecture.build(config.training, columns.order, outputs, given)
            seen_as = seen.seen.params, seen.seen.delta, seen.stem, columns.names
            _, delta = architecture.align(model, *seen_as)  # to learn whether they fit
            still = [] if pruned else architecture.still(delta)
        except (ConfigError, TranscriptError) as error:
            failed.append(error)
            continue
        said = (
            f"{', '.join(pairs)}: two inputs each, as pandas.get_dummies makes of two "
            f"texts, for the model has {len(columns.order)} inputs (--binary_text)."
        )
        if config.rows.input_order == "file":
            said += " Where it read them behind the numbers, say --input_order=dummies."
        notes = architecture.notes(still) + ([said] if failed else [])
        return encoding, outputs, in_order.holding(model, still), notes
    raise max(failed, key=lambda error: "; " in str(error))  # one with a hint


def _check_order(config: Config, encoding: Encoding, outputs: int) -> None:
    """Texts are numbered as they are sorted, which needs all of them."""
    labels = [str(each) for each in encoding.labels]
    if outputs > len(labels) and not all(each.isdecimal() for each in labels):
        raise ConfigError(
            f"--classes: {outputs}, but column {config.files.target!r} has only "
            f"{', '.join(labels[:10])}; texts are numbered in their order, so expected "
            "rows of every class, of any client, or numbers from 0 in place of texts"
        )


def _whose(
    config: Config, owned: Owned, seen: Recording
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Ids of the audited clients and the numbers of their rows."""
    named, sent = config.files, seen.clients
    if len(set(named.client)) < len(named.client):
        raise ConfigError(f"--client: expected different ids, got {named.client}")
    for client in named.client:
        if client not in sent:
            raise ConfigError(
                f"--client: {seen.stem} has no message of client {client}, "
                f"clients are {_few(sent)}"
            )
    if owned.client is None:
        chosen = np.array(named.client or sent)
        if len(chosen) != 1:
            raise ConfigError(
                f"--client: expected one client, whose rows these are; the transcript "
                f"has {_few(sent)}, and --client_column may tell them apart"
            )
        return chosen, [np.arange(len(owned.table.frame))]
    there = np.unique(owned.client)
    chosen = np.array(named.client or np.intersect1d(sent, there))
    lacking = np.setdiff1d(chosen, there)
    if len(lacking) or not len(chosen):
        who = f"client {lacking[0]}" if len(lacking) else "a client of the transcript"
        raise ConfigError(
            f"--client_column: no row of {who}; column {named.client_column!r} has "
            f"{_few(there)}, the transcript {_few(sent)}"
        )
    return chosen, [np.flatnonzero(owned.client == client) for client in chosen]


def _summed(seen: Recording, clients: np.ndarray, owned: Owned):
    """Of each client, numbers of the rows that its sums hold; None where it is alone."""
    member = seen.seen.member
    if member is None:
        return None
    owner = np.zeros(len(owned.row)) if owned.client is None else owned.client
    found = []
    for client in clients:
        together = np.unique(member[(member == client).any(axis=-1)])
        found.append(np.flatnonzero(np.isin(owner, together[together >= 0])))
    return found


def _few(ids: np.ndarray) -> str:
    return ", ".join(map(str, ids[:10])) + (", ..." if len(ids) > 10 else "")


def _proxy(encoding: Encoding, frame: pd.DataFrame | None) -> ProxyRows | None:
    return None if frame is None else ProxyRows(*rows.proxy(encoding, frame))


def _everyone(
    config: Config,
    encoding: Encoding,
    own: list[np.ndarray],
    proxy: pd.DataFrame | None,
) -> Everyone:
    try:
        return population.gather(encoding, own, proxy)
    except data.DataError as error:
        raise ConfigError(f"--proxy: {config.files.proxy}: {error}") from error
