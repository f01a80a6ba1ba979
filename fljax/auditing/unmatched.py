"""Clients without rows, and rows without a client."""

import numpy as np

from fljax import printable
from fljax.auditing.recording import Recording
from fljax.auditing.settings import FilesConfig
from fljax.auditing.table import Owned
from fljax.transcript import told
from fljax.transcript.views import View


def notes(files: FilesConfig, owned: Owned, seen: Recording, sees: View) -> list[str]:
    """In words.

    Args:
      files: what was told of the rows.
      owned: the rows.
      seen: what was recorded, with sums.
      sees: what the adversary saw.
    """
    if owned.client is None:
        return []
    if files.client:
        left = np.setdiff1d(seen.clients, files.client)
        if not len(left) or sees not in ("sum", "models"):
            return []
        text = (
            f"--client leaves out {len(left)} of {len(seen.clients)} clients who are in "
            "what was recorded: attacks that simulate a sum need the rows of all in it."
        )
        return [text]
    known, silent = files.known, np.setdiff1d(seen.clients, owned.client)
    others, found = int(np.sum(~np.isin(owned.client, seen.clients))), []
    if len(silent):
        ids = told.client_names(seen.about, f"{seen.stem}.json: about")
        names = {each: name for name, each in ids.items()}
        who = printable.line(
            ", ".join(str(names.get(one, one)) for one in silent[:10].tolist())
        )
        held = "" if sees == "messages" else ", though what was recorded holds them"
        found.append(
            f"{len(silent)} of {len(seen.clients)} clients of the transcript ({who}) have "
            f"no row in {known}: they are not audited{held}."
        )
    if others:
        found.append(
            f"{known}: {others} rows are of nobody in the transcript: they count as "
            "other people's."
        )
    return found
