"""Forked processes: predictions are those of the parent, and what needs JAX says so in place of waiting."""

import multiprocessing
import os
import pickle
import select
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest

import deepprox
from deepprox import DeepClassifier

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
PATIENCE = 60  # seconds, where JAX would wait for ever


def in_fork(work):
    """What ``work`` returns or raises in a forked child; an error if the child is not done in time."""
    told, telling = os.pipe()
    with warnings.catch_warnings(action="ignore"):  # JAX and Python both warn of forks beside threads
        child = os.fork()
    if child == 0:
        try:
            out = work()
        except BaseException as error:
            out = error
        with os.fdopen(telling, "wb") as pipe:
            pickle.dump(out, pipe)
        os._exit(0)
    os.close(telling)
    with os.fdopen(told, "rb") as pipe:
        in_time = bool(select.select([pipe], [], [], PATIENCE)[0])
        if not in_time:
            os.kill(child, signal.SIGKILL)
        out = pipe.read()
    os.waitpid(child, 0)
    assert in_time, "the child waits for ever"
    return pickle.loads(out)


@pytest.fixture(scope="module")
def flowers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4))
    return X, np.array(["a", "b", "c"])[np.argmax(X[:, :3] + 0.1 * rng.normal(size=(90, 3)), axis=1)]


@pytest.fixture(scope="module")
def model(flowers):
    """Fitted, and so JAX has run; it has not predicted yet."""
    return DeepClassifier((4,), alpha=0.01, random_state=0).fit(*flowers)


def test_a_child_predicts_as_its_parent(model, flowers):
    X, y = flowers
    asked = lambda: [model.predict(X), model.predict_proba(X), model.decision_function(X), model.score(X, y)]  # noqa: E731
    for theirs, ours in zip(in_fork(asked), asked(), strict=True):
        np.testing.assert_array_equal(theirs, ours)


def test_a_child_loads_and_predicts(model, flowers, tmp_path):
    from deepprox import load

    model.save(tmp_path / "m")
    theirs = in_fork(lambda: load(tmp_path / "m").predict_proba(flowers[0]))
    np.testing.assert_array_equal(theirs, model.predict_proba(flowers[0]))


@pytest.mark.parametrize(
    "ask",
    [
        lambda model, X, y: model.fit(X, y),
        lambda model, X, y: model.partial_fit(X, y, classes=[*"abc"]),
        lambda model, X, y: model.degrees_of_freedom("perturbation"),
        lambda model, X, y: model.sample_posterior("laplace"),
        lambda model, X, y: deepprox.path(model, X, y, 3),
        lambda model, X, y: deepprox.compare([model, model], X, y),
        lambda model, X, y: deepprox.stability_selection(model, X, y),
        lambda model, X, y: deepprox.DeepClassifierCV((), alphas=3, cv=2).fit(X, y),
    ],
)
def test_a_child_says_that_jax_cannot_run(model, flowers, ask):
    error = in_fork(lambda: ask(model, *flowers))
    assert isinstance(error, RuntimeError) and "'spawn' or 'forkserver'" in str(error)


def test_pools_of_forked_processes_predict(model, flowers):
    with warnings.catch_warnings(action="ignore"), multiprocessing.get_context("fork").Pool(2) as pool:
        halves = pool.map_async(model.predict, np.split(flowers[0], 2)).get(PATIENCE)
    np.testing.assert_array_equal(np.concatenate(halves), model.predict(flowers[0]))


FRESH = """
import os, sys
import numpy as np
from deepprox import DeepRegressor

X = np.random.default_rng(0).normal(size=(40, 3))
child = os.fork()
model = DeepRegressor((), alpha=0.01).fit(X, X[:, 0])
print(f"{model.solution_.status}:{model.coefs_[0].tobytes().hex()}", flush=True)
if child:
    sys.exit(os.waitpid(child, 0)[1])
os._exit(0)
"""


def test_a_child_from_before_the_first_fit_fits():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FRESH], capture_output=True, text=True, timeout=5 * PATIENCE
    )
    assert done.returncode == 0, done.stderr
    ours, theirs = done.stdout.split()
    assert ours == theirs and ours.startswith("converged:")
