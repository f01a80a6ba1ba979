"""Brings rows, model and transcript together, and takes the truth apart from them."""

from typing import NamedTuple

import numpy as np

from fljax import data, losses
from fljax.auditing import architecture, messages, rates, rows, table
from fljax.auditing.evidence import Evidence, Pool
from fljax.auditing.messages import Received
from fljax.auditing.rows import Encoding
from fljax.auditing.scoring import Truth
from fljax.auditing.settings import Told
from fljax.auditing.table import Owned
from fljax.driver.config import ConfigError

_LOSSES = {
    "regression": losses.squared,
    "binary": losses.logistic,
    "multiclass": losses.cross_entropy,
}


class Case(NamedTuple):
    """An audit that is ready: the two halves that only meet in a score.

    Attributes:
      evidence: for the attacks.
      truth: for the scores.
      clients: `[C]` ids.
      encoding: of the rows.
      received: the transcript.
    """

    evidence: Evidence
    truth: Truth
    clients: np.ndarray
    encoding: Encoding
    received: Received


def prepare(told: Told, read: Owned) -> Case:
    """Brings transcript, rows and model together, and takes the truth apart.

    Raises:
      ConfigError: they do not fit each other.
      TranscriptError: the transcript is damaged, or not one of this model.
      DataError: the rows cannot be encoded.
    """
    received = messages.read(told.files.transcript)
    clients, own = _whose(told, read, received)
    encoding = rows.encode(read, told.rows)
    columns = encoding.columns
    outputs = 1
    if columns.task == "multiclass":
        outputs = max(columns.classes, told.training.classes or 0)
    model = architecture.build(told.training, columns.order, outputs)
    known, truth = rows.split(encoding, own, outputs)
    evidence = Evidence(
        messages=messages.select(received, model, clients),
        known=known,
        candidates=columns.candidates,
        continuous=columns.continuous,
        loss_fn=losses.example_loss(model.apply, _LOSSES[columns.task]),
        output=model.apply,
        pace=rates.read(received.about, told.training, received.stem),
        task=columns.task,
        linear=told.training.model == "linear",
        classes=outputs,
        proxy=_proxy(told, encoding),
        told=told.audit,
    )
    return Case(evidence, truth, clients, encoding, received)


def _whose(
    told: Told, read: Owned, received: Received
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Ids of the audited clients and the numbers of their rows."""
    named, sent = told.files, received.clients
    if len(set(named.client)) < len(named.client):
        raise ConfigError(f"--client: expected different ids, got {named.client}")
    for client in named.client:
        if client not in sent:
            raise ConfigError(
                f"--client: {received.stem} has no message of client {client}, "
                f"clients are {_few(sent)}"
            )
    if read.client is None:
        chosen = np.array(named.client or sent)
        if len(chosen) != 1:
            raise ConfigError(
                f"--client: expected one client, whose rows these are; the transcript "
                f"has {_few(sent)}, and --client_column may tell them apart"
            )
        return chosen, [np.arange(len(read.table.frame))]
    there = np.unique(read.client)
    chosen = np.array(named.client or np.intersect1d(sent, there))
    lacking = np.setdiff1d(chosen, there)
    if len(lacking) or not len(chosen):
        who = f"client {lacking[0]}" if len(lacking) else "a client of the transcript"
        raise ConfigError(
            f"--client_column: no row of {who}; column {named.client_column!r} has "
            f"{_few(there)}, the transcript {_few(sent)}"
        )
    return chosen, [np.flatnonzero(read.client == client) for client in chosen]


def _few(ids: np.ndarray) -> str:
    return ", ".join(map(str, ids[:10])) + (", ..." if len(ids) > 10 else "")


def _proxy(told: Told, encoding: Encoding) -> Pool | None:
    path = told.files.proxy
    if path is None:
        return None
    try:
        return Pool(*rows.proxy(encoding, table.frame_of(path)))
    except data.DataError as error:
        raise ConfigError(f"--proxy: {path}: {error}") from error
