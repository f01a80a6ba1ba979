"""A view of a small linear regression, to attack."""

import numpy as np

from fljax import losses, models
from fljax.attacks.adversary import AdversaryView, LocalTraining
from fljax.transcript import views
from fljax.types import Known, Transcript

MODEL = models.mlp(3, hidden=())
LOSS = losses.example_loss(MODEL.apply, losses.squared)


def view(seen: Transcript, clients, known: Known, **changes) -> AdversaryView:
    """Of a binary column: two public numbers beside it, mini-batches of five rows.

    Args:
      seen: messages or sums of `MODEL`.
      clients: ids.
      known: leaves `[C, n, ...]`.
      changes: of the view.
    """
    made = AdversaryView(
        transcript=seen,
        messages=views.client_view(seen, clients),
        clients=np.array(clients),
        known=known,
        candidates=np.array([[0.0], [1.0]], np.float32),
        continuous=False,
        loss_fn=LOSS,
        apply=MODEL.apply,
        task="regression",
        outputs=1,
        linear=True,
        training=LocalTraining(batch_size=5, learning_rate=0.1, epochs=1),
        seed=3,
    )
    return made._replace(**changes)
