"""Whole rows from one gradient of a batch, exact where that can be proven.

The gradient of a first dense layer is `sum_i (1, x_i) d_i^T` over the rows of the batch,
`d_i` being the gradient at the layer's outputs. Its columns span the rows, and its rows
span the `d_i` (Dimitrov et al., "SPEAR: Exact Gradient Inversion of Batches in Federated
Learning", 2024, https://arxiv.org/abs/2403.03945, who look for the `d_i` by the zeros that
ReLU leaves). A table says more: one column of every one-hot group is 1 and the others are
0, so that few rows with such columns lie in the span at all. Of those that do, a true one
is told by its `d`, which the network gives and which has to lie in the other span.

Networks with two hidden layers or more say more: the second layer's gradient spans the
hidden units of the rows (`forward`), whatever the activation, also of tables of numbers
alone. Once all rows are there, their numbers are solved for together (`polish`), and
others that have the same message are looked for (`alone`, `other_targets`).

* what is known and asked: `schema`, `network`, `layers`, `observed_gradient`, `steps`;
* the `span`: rows in it by `categories` and `numbers`, by whole numbers (`grid`), by
  `units` or by deltas (`search`), and their `weights`;
* whole attacks: `recovery` of a batch, `repeated` and `epoch` of several steps
  (`local_steps` takes the one that fits), `rounds` of many messages, `sums`, `exclusive`
  and `clients` of sums, `intersections` of several; without a proof `matching` and
  `annealing`.
"""

from fljax.attacks.rows.local_steps import recover_steps
from fljax.attacks.rows.network import Network
from fljax.attacks.rows.recovery import Found, recover
from fljax.attacks.rows.schema import Group, Schema
from fljax.attacks.rows.search import Effort

__all__ = ["Effort", "Found", "Group", "Network", "Schema", "recover", "recover_steps"]
