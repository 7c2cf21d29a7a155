"""Run with three forced host devices: every program on one device and on three, field by field, as JSON."""

import json
import pkgutil
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

import jax
import numpy as np

import deepprox
from deepprox import activities, batches, links, losses, penalties
from deepprox.blocks import Dense
from deepprox.joining import one_block, point, quasi_newton
from deepprox.joining.descent import begin, stack
from deepprox.joining.kinks import Slopes
from deepprox.problem import Network, Problem
from deepprox.runtime import keep_programs
from deepprox.splitting import admm, state
from deepprox.splitting.segments import group, grouped
from deepprox.spreading import Devices, program, same
from deepprox.struct import replace

jax.config.update("jax_enable_x64", True)
keep_programs()
RNG = np.random.default_rng(0)
N, INPUTS = 12, 3
X = RNG.normal(size=(N, INPUTS))
Y = np.stack([np.abs(X[:, 0]) + X[:, 1], X[:, 2]], axis=1)
WEIGHT = np.r_[np.full(N - 1, 1 / (N - 1)), 0.0]  # the last row is padding
TOL, STEPS = np.float64(1e-9), np.int32(4)


class Case(NamedTuple):
    """A program with the arguments of one device, and the problem that says the same over three."""

    run: Any
    problem: Problem
    spread: Problem
    args: tuple
    static: dict[str, Any]


def programs() -> dict[str, Any]:
    """All functions of the package that ``program`` made."""
    made = program()(lambda problem: None).__code__
    found = {}
    for module in pkgutil.walk_packages(deepprox.__path__, "deepprox."):
        if not module.name.endswith("__main__"):
            for value in vars(import_module(module.name)).values():
                if getattr(value, "__code__", None) is made:
                    found[f"{value.__module__}.{value.__qualname__}"] = value
    return found


def posed(*hidden: Dense, loss: Any = None, penalty: Any = None) -> Problem:
    """A network with these hidden blocks and two outputs."""
    last = Dense(2, links.Identity(), penalty or penalties.L1(0.01))
    return Problem(Network((*hidden, last)), loss or losses.Squared(), X, Y, WEIGHT)


def starts(problem: Problem, n: int) -> list[tuple]:
    """Weights for it."""
    return [problem.network.init(np.random.default_rng(seed), INPUTS) for seed in range(n)]


def case(run: Any, problem: Problem, *args: Any, **static: Any) -> Case:
    """The same rows over three devices."""
    return Case(run, problem, replace(problem, allsum=Devices(jax.devices())), args, static)


def deep() -> Problem:
    """A hidden block with kinks and an activity, and one with neither."""
    charged = Dense(3, links.ReLU(), penalties.L1(0.01), activity=activities.ActivityL1(0.01))
    return posed(charged, Dense(2, links.Tanh(), penalties.L2(0.01)))


def held(problem: Problem) -> Slopes:
    """Slopes of their own at every fifth entry."""
    shapes = [(N, block.size) for block in problem.network.blocks[:-1]]
    return Slopes(
        tuple(np.arange(n * m).reshape(n, m) % 5 == 0 for n, m in shapes),
        tuple(RNG.uniform(0, 1, shape) for shape in shapes),
    )


def sweeps() -> Iterator[Case]:
    """With a constraint weight for every observation, and with a segment and two starts."""
    problem, splits, rule = deep(), (1,), {"inner": admm.Inner(2, 1, 3), "sweeps": 2}
    [W] = starts(problem, 1)
    Z = tuple(np.asarray(z) for z in problem.network.forward(W, X))
    rho = np.float64(0.1), RNG.uniform(0.05, 0.2, (N, 1)), np.float64(0.2)
    yield case(admm.chunk, problem, state.start(W, Z, rho), admm.Pace(), lanes=False, **rule)
    W = stack(starts(problem, 2))
    Z = jax.vmap(problem.network.forward, (0, None))(W, X)
    at = state.start(group(W, splits), tuple(np.asarray(Z[l]) for l in (0, 2)), (np.full(2, 0.1),) * 2)
    yield case(admm.chunk, grouped(problem, splits), at, admm.Pace(), lanes=True, **rule)


def points() -> Iterator[Case]:
    """At chosen slopes, and where a step leads."""
    problem = deep()
    W, V = starts(problem, 2)
    yield case(point._look, problem, W, held(problem), np.float64(0.5), np.asarray(True))
    yield case(point._leap, problem, W, V, held(problem), np.float64(0.5))


def quasi_newton_steps() -> Iterator[Case]:
    """Of two starts, and with a penalty that has kinks away from zero."""
    problem = deep()
    W = starts(problem, 2)
    yield case(quasi_newton.chunk, problem, stack(W), begin(problem, W), TOL, STEPS, lanes=True)
    problem = posed(Dense(3, links.Tanh(), penalties.Nuclear(0.02)), penalty=penalties.Nuclear(0.02))
    W = starts(problem, 1)
    yield case(quasi_newton.chunk, problem, W[0], begin(problem, W), TOL, STEPS, lanes=False)
    yield case(quasi_newton.trial, problem, W[0], begin(problem, W))


def newton_steps() -> Iterator[Case]:
    """Of one block, with a loss that bends."""
    problem = replace(posed(loss=losses.Poisson()), y=np.round(np.exp(Y / 4)))
    yield case(one_block._descend, problem, starts(problem, 1)[0], TOL, STEPS)


def draws() -> Iterator[Case]:
    """Every device draws the same of its rows: where these are copies, three draw what one does."""
    alone = replace(deep(), weight=np.full(N, 1 / N))
    three = {"X": np.tile(X, (3, 1)), "y": np.tile(Y, (3, 1)), "weight": np.full(3 * N, 1 / (3 * N))}
    at = batches.start(stack(starts(alone, 2)))
    rest = at, np.int32(0), np.int32(2 * batches.STEPS)
    static = {"batch": 4, "lanes": True, "products": batches.PRODUCTS}
    yield Case(batches.chunk, alone, replace(alone, **three, allsum=Devices(jax.devices())), rest, static)


def compared(one: Case) -> dict[str, Any]:
    """How far every field that a program returns is from that of one device, or what both have for it."""
    ends = [one.run(problem, *one.args, **one.static) for problem in (one.problem, one.spread)]
    assert one.problem.allsum == same and one.spread.allsum.parts == 3
    alone, three = (dict(jax.tree_util.tree_leaves_with_path(jax.tree.map(np.asarray, end))) for end in ends)
    names = {jax.tree_util.keystr(path): path for path in [*alone, *three]}
    return {name: apart(alone.get(path), three.get(path)) for name, path in names.items()}


def apart(one: np.ndarray | None, other: np.ndarray | None) -> Any:
    """The largest difference as a share of the largest number, or two shapes."""
    if one is None or other is None or (one.shape, one.dtype) != (other.shape, other.dtype):
        return [None if a is None else f"{a.dtype}{[*a.shape]}" for a in (one, other)]
    if one.dtype.kind == "f":
        return float(np.abs(one - other).max() / max(np.abs(one).max(), 1.0))
    return float((one != other).sum())


def main() -> None:
    """Print one record."""
    names = {value: name for name, value in programs().items()}
    record: dict[str, Any] = {name: [] for name in names.values()}
    for some in (sweeps, points, quasi_newton_steps, newton_steps, draws):
        for one in some():
            record[names[one.run]].append(compared(one))
    json.dump(record, sys.stdout)


if __name__ == "__main__":
    main()
