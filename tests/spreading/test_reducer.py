"""A blocking function that adds what several processes send is enough to fit together."""

import multiprocessing
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

from deepprox import links, losses, penalties
from deepprox.blocks import Dense
from deepprox.problem import Network, Problem
from deepprox.solve import Options, initial, solve
from deepprox.spreading import Reducer, same

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = (np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=80))[:, None]
LINKS = {
    1: links.ReLU(),
    2: links.Tanh(),
}  # of as many starts: they look around in float32, which kinks notice


def network(link):
    return Network((Dense(4, link, penalties.L1(0.01)), Dense(1, links.Identity(), penalties.L1(0.01))))


def posed(rows, link, allsum=same):
    weight = np.full(len(rows), 1 / len(X))
    return Problem(network(link), losses.Squared(), X[rows], Y[rows], weight, allsum)


def ask(line, arrays):
    """Send arrays to the driver and wait for the sums."""
    line.send(arrays)
    return line.recv()


def worker(line, rank, world, n_starts):
    """Fit with a share of the rows."""
    import jax

    with jax.enable_x64(True):
        allsum = Reducer(partial(ask, line), rank, world)
        problem = posed(np.arange(rank, len(X), world), LINKS[n_starts], allsum)
        found = solve(problem, initial(problem, 0, n_starts), Options())
    line.send(("done", found.objective, phases(found), found.status, found.W))
    line.recv()  # a process that was spawned may linger at its end: the driver ends it


def phases(found):
    """The way that a fit took."""
    return [row["phase"] for row in found.history]


def drive(n_starts, world=2):
    """The driver: adds what all send until all are done."""
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(world)]
    given = [(there, k, world, n_starts) for k, (_, there) in enumerate(pipes)]
    workers = [context.Process(target=worker, args=args, daemon=True) for args in given]
    for process in workers:
        process.start()
    while True:
        told = [here.recv() for here, _ in pipes]
        if isinstance(told[0], tuple):  # done
            break
        sums = [sum(arrays) for arrays in zip(*told, strict=True)]
        for here, _ in pipes:
            here.send(sums)
    for process in workers:
        process.kill()
        process.join()
    return told


@pytest.mark.slow
@pytest.mark.parametrize("n_starts", [1, 2])
def test_two_processes_and_a_driver_fit_as_one(n_starts):
    problem = posed(np.arange(len(X)), LINKS[n_starts])
    whole = solve(problem, initial(problem, 0, n_starts), Options())
    one, other = drive(n_starts)
    assert one[3] == other[3] == whole.status == "converged"
    assert one[2] == other[2] and {*one[2]} == {*phases(whole)} >= {"split", "join"}
    assert n_starts > 1 or "prune" in one[2]
    for a, b in zip(one[4], other[4], strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(one[1], whole.objective, rtol=1e-9)


ONE_CORE = """
import os, warnings
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
warnings.simplefilter("ignore")
import numpy as np
from deepprox import DeepRegressor
from deepprox.spreading import Reducer
X = np.random.default_rng(0).normal(size=(300, 100))
sizes = []
def reduce(arrays):
    sizes.append(sum(a.nbytes for a in arrays))
    return arrays
for n_init in (1, 2):
    model = DeepRegressor((50,), join=False, max_iter=10, n_init=n_init, devices=Reducer(reduce, 0, 1))
    model.fit(X, X[:, 0])
print(max(sizes))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="pins a process to a core")
def test_large_sums_do_not_hang_on_one_core():
    done = subprocess.run([sys.executable, "-c", ONE_CORE], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 2 * 100 * 2**10  # what XLA copies in another thread


def test_a_fit_through_a_reducer_takes_the_way_of_one_without():
    found, sums = [], []
    inputs = np.column_stack([X, np.zeros(80)])  # as many as a solve without a reducer takes
    for allsum in (same, Reducer(lambda arrays: sums.append(len(arrays)) or arrays, 0, 1)):
        weight = np.full(len(inputs), 1 / len(inputs))
        problem = Problem(network(links.ReLU()), losses.Squared(), inputs, Y, weight, allsum)
        found.append(solve(problem, initial(problem, 0, 1), Options()))
    one, other = found
    assert phases(one) == phases(other) and {*phases(one)} == {"split", "join", "prune", "newton"}
    np.testing.assert_allclose(other.objective, one.objective, rtol=1e-9)
    assert len(sums) < 3 * one.n_iter  # each is a message: a step takes one or two


def test_segments_have_no_order():
    blocks = network(links.ReLU()).blocks
    deep = Network((blocks[0], *blocks))
    problem = Problem(deep, losses.Squared(), X, Y, np.full(80, 1 / 80), Reducer(lambda a: a, 0, 1))
    with pytest.raises(ValueError, match="adds in one order, and segments have none"):
        solve(problem, [deep.init(RNG, 3)], Options(splits=(1,)))


def test_a_reducer_alone_is_the_identity():
    reducer = Reducer(lambda arrays: arrays, 0, 1)
    assert reducer({"a": np.arange(3.0)})["a"].tolist() == [0, 1, 2] and reducer.room(5) == 5
