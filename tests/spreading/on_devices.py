"""Run with four forced host devices; prints what the tests look at, as JSON."""

import json
import re
import sys

import jax
import numpy as np

from deepprox import DeepClassifier, DeepRegressor, links, losses, penalties
from deepprox.blocks import Dense
from deepprox.joining.finish import look
from deepprox.joining.kinks import no_slopes
from deepprox.problem import Network, Problem
from deepprox.splitting import admm, state
from deepprox.spreading import Devices, same
from deepprox.struct import replace

jax.config.update("jax_enable_x64", True)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(199, 4))  # neither 4 nor 3 divide it
SIGNAL = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * RNG.normal(size=199)
LABELS = np.digitize(SIGNAL, [-0.5, 0.5])


def apart(one, other):
    """The largest difference, relative to the array that it is in."""
    pairs = zip(*map(jax.tree.leaves, (one, other)), strict=True)
    return max(float(np.abs(np.asarray(a) - b).max() / np.abs(a).max()) for a, b in pairs)


def sweeps(count):
    """Sweeps of a sigmoid network over four devices and over one, and the compiled program."""
    dense = [Dense(k, links.Sigmoid(), penalties.L1(0.003), False) for k in (6, 5)]
    rows = np.concatenate([np.arange(199), [0]])
    posed = Problem(
        Network((*dense, Dense(3, links.Identity(), penalties.L1(0.003), False))),
        losses.Softmax(),
        X[rows],
        np.eye(3)[LABELS[rows]],
        np.where(np.arange(200) < 199, 1 / 199, 0.0),
    )
    W = posed.network.init(np.random.default_rng(1), 4)
    column = np.random.default_rng(2).uniform(0.05, 0.2, (200, 1))  # one rho for each observation
    found = []
    for allsum in (same, Devices(jax.devices())):
        problem = replace(posed, allsum=allsum)
        Z = tuple(np.asarray(z) for z in look(problem, W, no_slopes(problem), 1.0).Z)
        at = state.start(W, Z, (np.asarray(0.1), column, np.asarray(0.2)))
        given = {"problem": problem, "state": at, "pace": admm.Pace()}
        shape = {"inner": admm.Inner(), "sweeps": count, "lanes": False}
        if allsum is same:
            found.append(admm.chunk(**given, **shape))
    run = allsum.compile(admm.chunk.__wrapped__, ("inner", "sweeps", "lanes"))
    program = run.lower(**given, **shape).compile()
    found.append(program(allsum.place(given)))
    text = program.as_text()
    (one, info), (other, info_other) = found
    weights = apart((one.W, info.objective), (other.W, info_other.objective))
    bodies = {*re.findall(r"body=%([\w.-]+)", text)}
    parts = re.findall(r"^%([\w.-]+) [^\n]*\{\n(.*?)^\}", text, re.M | re.S)
    loops = "".join(inside for name, inside in parts if name in bodies)
    return {
        "weights_apart": weights,
        "rows_apart": apart((one.Z, one.U), (other.Z, other.U)),
        "sums_in_loop": re.findall(r"= (\S+) all-reduce(?:-start)?\(", loops),
        "sums": len(re.findall(r" all-reduce(?:-start)?\(", text)),
        "others": re.findall(r"all-gather|all-to-all|collective-permute", text),
        "length": sum(w.shape[1] ** 2 + w.size for w in W),
    }


def fits(estimator, y, hidden, where="all", **params):
    """The same fit with and without devices: objective, certificate, status, seeds and zeros."""
    out = []
    for devices in (None, where):
        model = estimator(hidden, random_state=0, devices=devices, **params).fit(X, y)
        found = model.solution_
        zeros = [np.flatnonzero(w.ravel()).tolist() for w in model._W]
        out.append([found.objective, found.certificate, found.status, zeros, model.score(X, y)])
    return out


def main(which):
    """Print one record."""
    record = {
        "devices": lambda: {"count": len(jax.devices()), "chunk": sweeps(10)},
        "one": lambda: fits(DeepClassifier, LABELS, (), alpha=0.01),
        "sigmoid": lambda: fits(DeepClassifier, LABELS, (5,), link="sigmoid", alpha=0.003, n_init=2),
        "relu": lambda: fits(DeepRegressor, SIGNAL, (5,), link="relu", alpha=0.01, where=3),
    }
    json.dump({name: record[name]() for name in which}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
