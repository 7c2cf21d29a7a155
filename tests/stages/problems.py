"""Small problems that the stage tests share."""

import numpy as np

from deepprox import links, losses, penalties
from deepprox.blocks import Dense
from deepprox.problem import Network, Problem


def problem(link=None, penalty=None, hidden=(5,), loss=None, n=40, p=4, k=3, bias=False, seed=0, dtype=float):
    """A network on random data with some signal, and starting weights for it."""
    link = links.Tanh() if link is None else link
    penalty = penalties.L1(0.01) if penalty is None else penalty
    loss = losses.Softmax() if loss is None else loss
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    signal = np.stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 0], X[:, 1]], axis=1)[:, :k]
    noisy = signal + 0.3 * rng.normal(size=(n, k))
    y = np.eye(k)[noisy.argmax(1)] if isinstance(loss, losses.Softmax) else noisy
    blocks = [Dense(size, link, penalty, bias) for size in hidden]
    network = Network((*blocks, Dense(k, links.Identity(), penalty, bias)))
    posed = Problem(network, loss, X.astype(dtype), y.astype(dtype), np.full(n, 1 / n, dtype))
    W = tuple(w.astype(dtype) for w in network.init(rng, p))
    return posed, W
