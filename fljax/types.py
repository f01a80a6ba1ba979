"""The nouns of fljax: what flows between data, rounds, transcript and attack.

Dimension letters used in shape comments throughout the project:

    N rows          Dn numeric input columns     Dc categorical input columns
    C clients       B  rows in a batch           H  hidden units
    S local steps   L  lanes (clients side by side)
    R rounds        K  recorded clients, or candidate values of an attribute
    W width of the sensitive block               P  parameters

What is traced is a NamedTuple; what comes from a flag is a frozen dataclass
and lives with the code that reads it.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

# Host code (schedules, files) fills the same nouns with NumPy arrays.
Array = jax.Array | np.ndarray
PyTree = Any
Key = jax.Array
Params = PyTree


class Features(NamedTuple):
    """Inputs of one tabular row; one-hot columns are held as positions.

    A model's first layer is ``numeric @ kernel[:Dn] + sum(kernel[Dn + codes])``,
    the same numbers as a dense layer on ``[numeric, one_hot]``.

    Attributes:
      numeric: `[..., Dn]` float. The sensitive block is always the LAST `W` columns.
      codes: `[..., Dc]` int32, for each categorical column the position of its one
        in the one-hot block of width `num_onehot`; the value `num_onehot` stands for
        the dropped reference category (no one at all).
    """

    numeric: Array
    codes: Array


class Begun(NamedTuple):
    """A tabular row whose public columns a model's first layer has already read.

    Rows that differ in the sensitive block alone share the rest of that layer's work.

    Attributes:
      hidden: `[..., H]` what the layer makes of all other columns, bias included.
      block: `[..., W]` the sensitive block.
    """

    hidden: Array
    block: Array


class Rows(NamedTuple):
    """All clients' rows, flat and sorted by client: no padding between clients.

    Attributes:
      x: leaves `[N, ...]`, for tabular data `Features`, for images an array.
      y: `[N]` targets (float for regression and binary, int for classes).
    """

    x: PyTree
    y: Array


class Batch(NamedTuple):
    """One mini-batch; rows with a False mask are padding and never count.

    Attributes:
      x: leaves `[B, ...]`.
      y: `[B]`.
      mask: `[B]` bool.
      client: [] int32, whose rows these are; None where it does not matter.
      round: [] int32, in which round, for what changes from round to round; likewise.
    """

    x: PyTree
    y: Array
    mask: Array
    client: Array | None = None
    round: Array | None = None


class Sender(NamedTuple):
    """Whose message it is.

    Attributes:
      client: [] int32.
      round: [] int32.
    """

    client: Array
    round: Array


ApplyFn = Callable[[Params, PyTree], jax.Array]
# (params, x of ONE example) -> its output, [] or [outputs]

ElementLossFn = Callable[[jax.Array, jax.Array], jax.Array]
# (output, target) of ONE example -> []


class Model(NamedTuple):
    """A model from any framework: two functions.

    Attributes:
      init: `(key) -> params`; the key is consumed.
      apply: `(params, x) -> output` for ONE example.
    """

    init: Callable[[Key], Params]
    apply: ApplyFn


GradientFn = Callable[[Key, Params, Batch], tuple[Params, jax.Array]]
# (key, params, batch) -> gradient in the shape of params, mean loss []; consumes the key


EncodeFn = Callable[[Key, Params, Sender], Params]
# (key, delta, whose it is) -> delta of ONE message; consumes the key

Unit = Literal["record", "client"]
Sampling = Literal["poisson", "fixed", "all"]


class NoiseSpec(NamedTuple):
    """What an accountant must know of a defense; it comes from what adds the noise.

    Attributes:
      noise_multiplier: `[C]` or [], standard deviation of the Gaussian noise on a sum,
        divided by the sensitivity of that sum; 0 for no noise.
      sensitivity: [] Euclidean norm by which one unit changes the sum, at most; where
        it differs by round, the largest. C sqrt(M) if each of M layers is clipped to C.
      sampling_rate: `[C]` or [], probability of each unit to be in a sum.
      adjacency: which data sets count as neighbours, in words.
      unit: whom one unit of the guarantee protects: a 'record' of a client, whose sums
        are over batches, or a whole 'client', whose sums are over the messages of a
        round.
      sampling: 'poisson', every unit is in each sum independently; 'fixed', sums of
        fixed sizes, for records disjoint batches in one pass after the other; 'all',
        every unit is in every sum.
      against: whom it holds against: whoever sees single 'messages' of a client, or
        only who sees no more than 'models', sums of all messages of a round.
    """

    noise_multiplier: Array | float
    sensitivity: Array | float
    sampling_rate: Array | float
    adjacency: str
    unit: Unit = "record"
    sampling: Sampling = "poisson"
    against: Literal["messages", "models"] = "messages"

    def of_client(self, client: int) -> "NoiseSpec":
        """That of one client; on the host."""
        multiplier, rate = (
            np.asarray(value)[client] if np.ndim(value) else value
            for value in (self.noise_multiplier, self.sampling_rate)
        )
        return self._replace(noise_multiplier=multiplier, sampling_rate=rate)


class Defense(NamedTuple):
    """What is done against leakage, at three places; None does nothing there.

    Attributes:
      gradient: takes the place of the mean gradient of a batch, in each local step.
      encode: what leaves the client in place of its delta.
      receive: what the server makes of one message before it averages. The message has
        travelled by then: a transcript holds it as it was sent.
      noise: one entry for each kind of noise that a guarantee can rest on; empty where
        nothing is promised.
      name: for messages to the user.
    """

    gradient: GradientFn | None = None
    encode: EncodeFn | None = None
    receive: EncodeFn | None = None
    noise: tuple[NoiseSpec, ...] = ()
    name: str = ""


class Message(NamedTuple):
    """What a client sends back.

    Attributes:
      delta: params sent minus params returned.
      loss: [] mean of the local training losses, for logs only.
    """

    delta: Params
    loss: Array


class Transcript(NamedTuple):
    """All that the adversary saw: recorded rounds `R`, recorded clients `K`.

    Attributes:
      round: `[R]` int32 round numbers, increasing.
      client: `[R, K]` int32 client ids, -1 where a slot is empty (the client did not
        take part in that round).
      params: leaves `[R, ...]`, the model that was sent in each round.
      delta: leaves `[R, K, ...]`, sent minus returned, zeros in empty slots. Where only
        sums are seen, the weighted mean of its members' messages; `client` then
        numbers the sums.
      member: `[R, K, M]` int32 ids of the clients in each sum, -1 for nobody; None where
        each message is a client's own.
      share: `[R, K, M]` their weights in it, 0 for nobody and else with the sum 1; NaN
        where the adversary does not know who took part.
    """

    round: Array
    client: Array
    params: Params
    delta: Params
    member: Array | None = None
    share: Array | None = None


class Exchange(NamedTuple):
    """One client's messages: the input of every attack.

    Attributes:
      params: leaves `[R, ...]`, what it was sent.
      delta: leaves `[R, ...]`, sent minus returned.
    """

    params: Params
    delta: Params


class Known(NamedTuple):
    """What the adversary knows of one client's rows. The sensitive column is absent.

    Attributes:
      public: `Features` whose numeric part is `[N, Dn - W]`.
      y: `[N]` targets.
      mask: `[N]` bool, False for padding rows.
    """

    public: Features
    y: Array
    mask: Array
