"""The forward pass of a fitted network on new inputs: live units alone, in NumPy."""

from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import jax
import numpy as np
import scipy.sparse

from deepprox.arrays import answers_numpy, as_taken
from deepprox.design import Sparse
from deepprox.estimators._observations import padded
from deepprox.estimators._standardize import Scale
from deepprox.losses import Loss
from deepprox.network import Network, Weights
from deepprox.pruned import prune
from deepprox.runtime import bucket, keep_programs, precision

PIECE = 2**19  # numbers of one layer that are held at once
MANY = 256  # live inputs up to which sparse ones are made dense, piece by piece, to the digits of dense ones


class Forward(NamedTuple):
    """The network that is left of a fit, the inputs that it reads, and their scale.

    Its predictions are NumPy. Only a user's own link or loss, which may be written in JAX, is compiled.
    """

    network: Network
    W: Weights
    loss: Loss
    reads: np.ndarray
    scale: Scale
    in_numpy: bool

    @classmethod
    def of(cls, network: Network, W: Weights, loss: Loss, scale: Scale) -> "Forward":
        """That of weights for standardised inputs; one that never varied is 0 there, whatever its weight."""
        first, links = network.blocks[0], [block.link for block in network.blocks]
        in_numpy = answers_numpy(*network.blocks, *links, loss)
        with _ready(in_numpy, W[0].dtype):
            left = prune(network, (first.without(W[0], scale.constant), *W[1:]))
        reads = left.places[0]
        return cls(left.network, left.W, loss, reads, Scale(*(part[reads] for part in scale)), in_numpy)

    def outputs(self, X: Any, as_mean: bool) -> np.ndarray:
        """``eta`` of inputs as users have them, or its mean, in pieces of bounded size."""
        n, reads = X.shape[0], self.reads
        sizes = [max(w.shape) for w in self.W]
        if scipy.sparse.issparse(X):
            X, reads = scipy.sparse.csr_array(X[:, reads]), np.arange(len(reads))
            sizes[0] = len(self.W[0]) if self._multiplies else sizes[0]
        rows = max(PIECE // max(sizes), 1)
        with _ready(self.in_numpy, self.W[0].dtype):
            pieces = [self._piece(X[k : k + rows], reads, as_mean) for k in range(0, n, rows)]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def losses(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The loss of every observation, from responses as the loss takes them."""
        with _ready(self.in_numpy, eta.dtype):
            taken = (as_taken(a, self.loss) for a in (eta, y.astype(eta.dtype)))
            return np.asarray(self.loss.value(*taken))

    @property
    def _multiplies(self) -> bool:
        """Whether sparse inputs are many, and all that is done with them is a product, in NumPy."""
        return self.in_numpy and self.network.is_dense_chain and len(self.reads) > MANY

    def _piece(self, X: Any, reads: np.ndarray, as_mean: bool) -> np.ndarray:
        if scipy.sparse.issparse(X):
            if self._multiplies:
                inputs = Sparse.of(X, *self.scale)
                return np.asarray(outputs(self.network, self.loss, self.W, inputs, as_mean))
            X = X.toarray()
        X = self.scale.standardize(X if len(reads) == X.shape[1] else X[:, reads])
        X = X.astype(self.W[0].dtype, copy=False)
        if self.in_numpy:
            return np.asarray(outputs(self.network, self.loss, self.W, X, as_mean))
        rows = padded(X, bucket(len(X)))
        return np.asarray(_compiled(self.network, self.loss, self.W, rows, as_mean))[: len(X)]


_MADE: WeakKeyDictionary[Any, Forward] = WeakKeyDictionary()


def forward_of(fitted: Any) -> Forward:
    """That of a fitted network, made once; a stored model does not carry it."""
    made = _MADE.get(fitted)
    if made is None:
        made = _MADE[fitted] = Forward.of(fitted.network, fitted.W, fitted.loss, fitted.scale)
    return made


def outputs(network: Network, loss: Loss, W: Weights, X: Any, as_mean: bool) -> Any:
    """``eta`` of standardised inputs, or its mean."""
    eta = network.forward(W, X)[-1]
    return loss.mean(eta) if as_mean else eta


_compiled = partial(jax.jit, static_argnames="as_mean")(outputs)


def _ready(in_numpy: bool, dtype: Any) -> AbstractContextManager[Any]:
    """NumPy as silent as JAX about what overflows, or JAX in the right precision."""
    if in_numpy:
        return np.errstate(all="ignore")
    keep_programs()
    return precision(dtype)
