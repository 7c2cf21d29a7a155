"""Run with four forced host devices; prints what the tests look at, as JSON."""

import json
import re
import sys

import jax
import numpy as np

from deepprox import (
    DeepClassifier,
    DeepRegressor,
    DeepRegressorCV,
    DeepRegressorIC,
    batches,
    links,
    losses,
    path,
    penalties,
)
from deepprox.blocks import Dense
from deepprox.joining.kinks import no_slopes
from deepprox.joining.point import look
from deepprox.problem import Network, Problem
from deepprox.splitting import admm, state
from deepprox.spreading import Devices, same
from deepprox.struct import replace

jax.config.update("jax_enable_x64", True)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(199, 4))  # neither 4 nor 3 divide it
SIGNAL = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * RNG.normal(size=199)
LABELS = np.digitize(SIGNAL, [-0.5, 0.5])
ROWS = np.concatenate([np.arange(199), [0]])  # the last is padding


def apart(one, other):
    """The largest difference, relative to the array that it is in."""
    pairs = zip(*map(jax.tree.leaves, (one, other)), strict=True)
    return max(float(np.abs(np.asarray(a) - b).max() / np.abs(a).max()) for a, b in pairs)


def posed(link, hidden):
    """A network with these hidden layers; one row is padding."""
    dense = [Dense(k, link, penalties.L1(0.003), False) for k in hidden]
    return Problem(
        Network((*dense, Dense(3, links.Identity(), penalties.L1(0.003), False))),
        losses.Softmax(),
        X[ROWS],
        np.eye(3)[LABELS[ROWS]],
        np.where(np.arange(200) < 199, 1 / 199, 0.0),
    )


def sweeps(count):
    """Sweeps of a sigmoid network over four devices and over one, and the compiled program."""
    whole = posed(links.Sigmoid(), (6,))
    W = whole.network.init(np.random.default_rng(1), 4)
    column = np.random.default_rng(2).uniform(0.05, 0.2, (200, 1))  # one rho for each observation
    found = []
    for allsum in (same, Devices(jax.devices())):
        problem = replace(whole, allsum=allsum)
        Z = tuple(np.asarray(z) for z in look(problem, W, no_slopes(problem), 1.0).Z)
        at = state.start(W, Z, (column, np.asarray(0.2)))
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


def starts_of(link, count, n_starts):
    """Sweeps of many starts side by side over four devices and over one: how far their weights are apart.

    Many, since one alone seldom comes to where two values tie to rounding.
    """
    whole = posed(link, (6, 5))
    starts = [whole.network.init(np.random.default_rng(seed), 4) for seed in range(n_starts)]
    W = tuple(np.stack(w) for w in zip(*starts))
    Z = tuple(
        np.stack([np.asarray(z) for z in row])
        for row in zip(*(whole.network.forward(w, X[ROWS]) for w in starts))
    )
    rho = tuple(np.full(n_starts, number) for number in (0.1, 0.1, 0.2))
    ends = [
        admm.chunk(
            replace(whole, allsum=allsum), state.start(W, Z, rho), admm.Pace(), admm.Inner(), count, True
        )
        for allsum in (same, Devices(jax.devices()))
    ]
    (one, info), (other, info_other) = ends
    return [max(apart(a[k], b[k]) for a, b in zip(one.W, other.W)) for k in range(n_starts)] + [
        apart(info.objective, info_other.objective)
    ]


def drawn():
    """Steps on rows drawn on every device against those on one: how far their weights are apart.

    Every device draws the same of its rows. Where these differ in their responses alone, a step of squared
    loss is that of one device with the mean of the responses.
    """
    inputs, Y = X[:48], RNG.normal(size=(4, 48, 1))
    network = Network((Dense(1, penalty=penalties.L1(0.05)),))
    alone = Problem(network, losses.Squared(), inputs, Y.mean(0), np.full(48, 1 / 48))
    spread = {"X": np.tile(inputs, (4, 1)), "y": Y.reshape(-1, 1), "weight": np.full(192, 1 / 192)}
    at = batches.start((RNG.normal(size=(1, 5)),))
    steps = np.int32(0), np.int32(100), 8, False, batches.PRODUCTS
    (one, _), (other, _) = (
        batches.chunk(problem, at, *steps)
        for problem in (alone, replace(alone, **spread, allsum=Devices(jax.devices())))
    )
    return apart(one.W, other.W)


def fits(estimator, y, hidden, where="all", **params):
    """The same fit with and without devices: objective, certificate, status, seeds and zeros."""
    out = []
    for devices in (None, where):
        model = estimator(hidden, random_state=0, devices=devices, **params).fit(X, y)
        found = model.solution_
        zeros = [np.flatnonzero(w.ravel()).tolist() for w in model.fitted_.W]
        out.append([found.objective, found.certificate, found.status, zeros, model.score(X, y)])
    return out


def selections(hidden, **params):
    """Paths, folds and criteria on one device and on two: objectives, degrees of freedom, what was chosen."""
    out = []
    for devices in (None, 2):
        settings = {"hidden_layer_sizes": hidden, "random_state": 0, "devices": devices, **params}
        found = path(DeepRegressor(**settings), X, SIGNAL, 4)
        folds = DeepRegressorCV(alphas=4, cv=2, **settings).fit(X, SIGNAL)
        criterion = DeepRegressorIC(alphas=4, **settings).fit(X, SIGNAL)
        spread = [m.path_._problem.base.problem.allsum.parts for m in (folds, criterion)]
        out.append(
            {
                "objectives": [one.objective for one in found.solutions],
                "df": found.criteria.df.tolist(),
                "chosen": [folds.alpha_, criterion.alpha_, criterion.objective_],
                "losses": folds.loss_path_.ravel().tolist(),
                "parts": [found._problem.base.problem.allsum.parts, *spread],
            }
        )
    return out


def main(which):
    """Print one record."""
    record = {
        "devices": lambda: {"count": len(jax.devices()), "chunk": sweeps(10)},
        "drawn": drawn,
        "ties": lambda: starts_of(links.ReLU(), 10, 16),
        "lines": lambda: selections(()),
        "curves": lambda: selections((4,), link="tanh", tol=1e-8),
        "one": lambda: fits(DeepClassifier, LABELS, (), alpha=0.01),
        "sigmoid": lambda: fits(DeepClassifier, LABELS, (5,), link="sigmoid", alpha=0.003, n_init=2),
        "relu": lambda: fits(DeepRegressor, SIGNAL, (5,), link="relu", alpha=0.01, where=3),
    }
    json.dump({name: record[name]() for name in which}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
