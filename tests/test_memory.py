"""Memory is asked for in words before it is taken: estimates are true, and what cannot fit never begins."""

import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.model_selection import ShuffleSplit

from deepprox import (
    DeepRegressor,
    DeepRegressorCV,
    fit_stream,
    memory,
    path,
    stability_selection,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = X[:, 0] + 0.1 * RNG.normal(size=40)
WIDE = np.lib.stride_tricks.as_strided(X, (40, 100_000), (8, 0))  # no memory of its own
HUGE = 10**9
PLAIN = DeepRegressor(())


def drawn(**counts):
    return DeepRegressor((), alpha=0.1).fit(X, Y).sample_posterior("laplace", **counts)


ASKED = {
    "units": (lambda: DeepRegressor(HUGE).fit(X, Y), "units with each other .* set splits='none'"),
    "units without sweeps": (lambda: DeepRegressor(HUGE, splits="none").fit(X, Y), "narrower hidden layers"),
    "more units than any float": (lambda: DeepRegressor(10**400).fit(X, Y), "units with each other"),
    "products of units": (
        lambda: DeepRegressor(100_000).fit(X, Y),
        "products of 100000 units with each other",
    ),
    "products of inputs": (
        lambda: DeepRegressor(5, penalty="l2", alpha=0.01).fit(WIDE, Y),
        "of 100000 inputs with each other",
    ),
    "rows of a batch": (lambda: DeepRegressor(5, batch_size=HUGE).fit(X, Y), "smaller batch_size"),
    "starts": (lambda: DeepRegressor(5, n_init=HUGE).fit(X, Y), r"fewer starts \(n_init\)"),
    "starts of one block": (lambda: DeepRegressor((), n_init=HUGE).fit(X, Y), r"fewer starts \(n_init\)"),
    "a path": (lambda: path(PLAIN, X, Y, 10**7), "take fewer alphas"),
    "folds": (
        lambda: DeepRegressorCV((), alphas=2, cv=ShuffleSplit(HUGE)).fit(X, Y),
        r"fewer of them \(cv\)",
    ),
    "halves": (
        lambda: stability_selection(PLAIN, X, Y, n_pairs=HUGE),
        r"fewer of them \(n_pairs\)",
    ),
    "draws": (lambda: drawn(n_draws=HUGE), "take fewer n_draws or n_chains"),
    "chains": (lambda: drawn(n_chains=HUGE), "take fewer n_draws or n_chains"),
    "moving sums": (lambda: DeepRegressor(100_000).partial_fit(X, Y), "sums over the rows"),
    "a stream": (lambda: fit_stream(DeepRegressor(HUGE), X, Y), "units with each other"),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("what", ASKED)
def test_what_cannot_fit_is_told(what, monkeypatch):
    monkeypatch.setattr(memory, "_free", lambda: 16e9)
    work, change = ASKED[what]
    with pytest.raises(ValueError, match=rf"^This would take about .* GB of memory, .*: .*{change}|{change}"):
        work()


def test_what_is_there_is_the_least_of_what_system_and_groups_leave(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_free", lambda: 9e9)
    own, group = tmp_path / "cgroup", tmp_path / "job" / "step"
    group.mkdir(parents=True)
    own.write_text("0::/job/step\n")
    of_groups = memory._left_in_groups
    left = lambda: [*of_groups(tmp_path, own)]  # noqa: E731
    assert min(left()) == np.inf  # nothing is limited
    for folder, most, used in ((group, "max", 5), (group.parent, "3000000000", 10**9)):
        (folder / "memory.max").write_text(f"{most}\n")
        (folder / "memory.current").write_text(f"{used}\n")
        (folder / "memory.stat").write_text("anon 5\ninactive_file 500000000\n")
    assert min(left()) == 2.5e9
    monkeypatch.setattr(memory, "_left_in_groups", left)
    assert memory.available() == 2.5e9
    memory.need(memory.Cost(2 * 10**9, "this", "change it"))
    with pytest.raises(ValueError, match=r"about 3 GB of memory, most of it for this, and 2.5 GB are free"):
        memory.need(memory.Cost(10**9, "that", "that"), memory.Cost(2 * 10**9, "this", "change it"))


def test_older_groups(tmp_path):
    own, group = tmp_path / "cgroup", tmp_path / "memory" / "job"
    group.mkdir(parents=True)
    own.write_text("5:cpu:/job\n4:memory:/job\n")
    (group / "memory.limit_in_bytes").write_text("3000\n")
    (group / "memory.usage_in_bytes").write_text("1000\n")
    (group / "memory.stat").write_text("total_inactive_file 200\n")
    assert min(memory._left_in_groups(tmp_path, own)) == 2200


@pytest.mark.skipif(sys.platform != "linux", reason="where limits count what is told of a process")
@pytest.mark.parametrize("limit", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_limits_of_the_process_count(limit, monkeypatch):
    import resource

    ours = getattr(resource, limit)
    most = 2**50, resource.RLIM_INFINITY
    monkeypatch.setattr(memory, "_free", lambda: float(2**60))
    monkeypatch.setattr(memory, "_left_in_groups", lambda: iter(()))
    assert memory.available() == 2**60
    monkeypatch.setattr(
        resource, "getrlimit", lambda which: most if which == ours else (resource.RLIM_INFINITY,) * 2
    )
    assert 2**50 - 2**38 < memory.available() < 2**50
    most = 0, resource.RLIM_INFINITY
    assert memory.available() == 0


def test_there_is_memory_here():
    assert 2**20 < memory.available() < 2**50


MEASURED = """
import json, sys, warnings
import numpy as np
from deepprox import DeepRegressor, memory

def held(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

warnings.simplefilter("ignore")
given = json.loads(sys.argv[1])
n, p = given.pop("n"), given.pop("p")
X = np.random.default_rng(0).normal(size=(n, p))
settings = {"max_iter": 12, "random_state": 0, "alpha": 0.01}
DeepRegressor(2, **settings).fit(X[:40, :2], X[:40, 0])
asked, before = [], held("VmRSS")
need = memory.of_fit
import deepprox.estimators.session as session
session.of_fit = lambda *shapes: asked.extend(need(*shapes)) or asked
DeepRegressor(**settings | given).fit(X, X[:, 0])
print(sum(cost.size for cost in asked), held("VmHWM") - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells the peak")
@pytest.mark.parametrize(
    "given",
    [
        {"n": 60, "p": 4000, "hidden_layer_sizes": 3},
        {"n": 60, "p": 3, "hidden_layer_sizes": 4000},
        {"n": 60, "p": 3, "hidden_layer_sizes": 100_000, "splits": "none"},
    ],
    ids=["inputs", "units", "weights"],
)
def test_estimates_are_true_within_a_factor_of_about_two(given):
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, json.dumps(given)], capture_output=True, text=True, check=True
    )
    told, took = map(float, done.stdout.split())
    assert told / 2.2 < took < 2.2 * told
