"""The split phase with nothing added is the paper's ADMM."""

from itertools import pairwise

import jax
import numpy as np
import pytest

from deepprox import links, losses, penalties
from deepprox.blocks import Dense
from deepprox.problem import Network, Problem
from deepprox.splitting import admm, state
from oracles.paper import PaperADMM, vec

EXACT = admm.Inner(z=3, newton=200, w=60_000)
PAPER = admm.Pace(relaxation=1.0, growth=1.0, rho_max=1.0)


def setting(link, penalty, hidden, seed=0):
    """A tiny problem, its network, weights and per-observation constraint weights."""
    rng = np.random.default_rng(seed)
    n, sizes = 14, (2, *hidden, 3)
    X = rng.normal(size=(n, 2))
    Y = np.eye(3)[rng.integers(0, 3, n)]
    W = tuple(rng.normal(size=(b, 1 + a)) / 2 for a, b in pairwise(sizes))
    mu = tuple(rng.uniform(0.5, 1.5, n) for _ in W)
    blocks = [Dense(size, link, penalty, True) for size in hidden]
    network = Network((*blocks, Dense(3, links.Identity(), penalty, True)))
    return Problem(network, losses.Softmax(), X, Y, np.full(n, 1 / n)), W, mu


CASES = [
    ("ridge", (3,)),
    ("lasso", (3, 2)),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in [("ridge", (3, 2)), ("lasso", (3,))]),
]


@pytest.mark.parametrize(("name", "hidden"), CASES)
def test_iterates_match_the_transcription(name, hidden):
    gamma = 0.1
    penalty = {"ridge": penalties.L2, "lasso": penalties.L1}[name](gamma / 14)
    problem, W, mu = setting(links.Sigmoid(), penalty, hidden)

    sigmoid = lambda z: 1 / (1 + np.exp(-z))  # noqa: E731
    slope = lambda z: sigmoid(z) * (1 - sigmoid(z))  # noqa: E731
    backwards = [w.copy() for w in W[::-1]]
    paper = PaperADMM(problem.X.T, problem.y.T, backwards, mu[::-1], gamma, name, sigmoid, slope, EXACT.z)

    Z = problem.network.forward(W, problem.X)
    at = state.start(W, Z, tuple(m[:, None] for m in mu))
    for _ in range(4):
        paper.sweep()
        # on the host, as it came: arrays on a device would compile the same program again
        at = jax.tree.map(np.asarray, admm.chunk(problem, at, PAPER, EXACT, 1, False)[0])
        for ours, theirs in [(at.Z, paper.Z), (at.U, paper.U)]:
            for a, b in zip(ours, theirs[::-1]):
                np.testing.assert_allclose(a.T, b, rtol=0, atol=1e-10)
        for a, b in zip(at.W, paper.W[::-1]):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-10)
            if name == "lasso":
                assert ((np.asarray(a) == 0) == (b == 0)).all()


def test_the_operators_of_the_paper_agree():
    problem, W, mu = setting(links.Tanh(), penalties.L1(0.1), (3,))
    paper = PaperADMM(
        problem.X.T, problem.y.T, list(W[::-1]), mu[::-1], 1.0, "lasso", np.tanh, None, 1
    )  # fmt: skip
    rng = np.random.default_rng(1)
    paper.Z = [rng.normal(size=Z.shape) for Z in paper.Z]
    z = np.concatenate([vec(Z) for Z in paper.Z])
    w = np.concatenate([vec(w) for w in paper.W])
    np.testing.assert_allclose(z - paper.delta_w(), paper.delta_z() @ w, atol=1e-12)
