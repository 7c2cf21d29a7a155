"""The benchmark suites: one judge for every system, and a transcribed peer that does what its paper says."""

from pathlib import Path

import numpy as np
import pytest
from benchmarks.suites import race, report, sparse_nets, tasks
from benchmarks.suites.systems import AT_LEVELS, DENSE, LINEAR, SPARSE, dladmm

from deepprox import DeepClassifier


@pytest.fixture(scope="module")
def task():
    """Three classes on five inputs, one hidden layer, every weight and bias penalised."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = (np.maximum(X @ rng.normal(size=(5, 6)), 0) @ rng.normal(size=(6, 3))).argmax(1)
    return tasks.Task("small", X[:40], y[:40], X[40:], y[40:], (4,), 1.0, "penalised")


def test_the_judge_agrees_with_the_library(task):
    model = DeepClassifier(
        task.hidden,
        alpha=task.gamma / 40,
        penalize_bias=True,
        standardize=False,
        splits="none",
        tol=0.1,
        random_state=0,
    ).fit(task.X, task.y)
    W = [np.column_stack([b, w.T]) for w, b in zip(model.coefs_, model.intercepts_)]
    judged = tasks.judge(task, W)
    assert judged["objective"] == pytest.approx(40 * model.objective_, rel=1e-12)
    assert judged["nonzero"] == model.n_nonzero_
    assert judged["accuracy"] == model.score(task.X_test, task.y_test)


def test_one_logistic_column_is_two_classes(task):
    y = (task.y > 0).astype(int)
    binary = task._replace(y=y, hidden=(), bias="free")
    w = np.random.default_rng(1).normal(size=(1, 6))
    both = np.vstack([-w / 2, w / 2])
    assert tasks.objective(binary, [w]) == pytest.approx(tasks.objective(binary, [both]), rel=1e-12)


def test_a_task_survives_its_file(task, tmp_path):
    tasks.save(task, tmp_path / "task.npz")
    again = tasks.load(tmp_path / "task.npz")
    assert (again.name, again.hidden, again.gamma, again.bias) == ("small", (4,), 1.0, "penalised")
    assert (again.X == task.X).all() and (again.y_test == task.y_test).all()


def lagrangian(split):
    """What dlADMM minimises in turn."""
    last, total = len(split.W) - 1, split.gamma * sum(np.abs(W).sum() for W in split.W)
    for l, (W, b, z) in enumerate(zip(split.W, split.b, split.z)):
        r = z - split.a[l] @ W.T - b
        total += split.rho / 2 * (r**2).sum()
        if l < last:
            total += split.rho / 2 * ((split.a[l + 1] - np.maximum(z, 0)) ** 2).sum()
        else:
            total += (split.u * r).sum()
    eta = split.z[-1]
    return total + (np.log(np.exp(eta).sum(1)) - (eta * split.Y).sum(1)).sum()


def test_no_step_of_dladmm_ascends(task):
    split = dladmm.Split(task, 0)
    split.u = 0.1 * np.random.default_rng(2).normal(size=split.u.shape)
    for _ in range(3):
        for l in (1, 0):
            for step in (split.step_z, split.step_b, split.step_W, *([split.step_a] if l else [])):
                before = lagrangian(split)
                step(l)
                assert lagrangian(split) <= before + 1e-9 * abs(before)


def test_dladmm_fits(task):
    few, many = (tasks.objective(task, dladmm.dladmm(task, 0, k)) for k in (1, 60))
    assert many < 0.8 * few


def point(seed, effort, seconds, objective):
    return {
        "seed": seed,
        "effort": effort,
        "seconds": seconds,
        "objective": objective,
        "nonzero": 3,
        "accuracy": 0.5,
    }


def test_starts_that_end_elsewhere_count_as_what_they_cost():
    points = [point(0, 1, 5.0, 100.5), point(0, 2, 7.0, 100.0), point(1, 1, 2.0, 100.9)]
    lost = [point(2, 1, 1.0, 400.0), point(2, 2, 4.0, 300.0), point(2, 3, 9.0, 299.0)]
    found = race.standing(points + lost, 101.0)
    assert found == ((5.0 + 2.0 + 4.0) / 2, 2, 3, points[2])
    assert race.standing(lost, 101.0) == (race.NEVER, 0, 1, None)


def test_a_race_is_for_the_best_of_all():
    rows = [
        {"system": "deepprox", "points": [point(0, 1, 2.0, 100.0)], "trouble": "", "cold": 9.0},
        {"system": "near", "points": [point(0, 1, 6.0, 100.9)], "trouble": "", "cold": 7.0},
        {"system": "far", "points": [point(0, 1, 1.0, 102.0)], "trouble": "", "cold": None},
        {"system": "broken", "points": [], "trouble": "it broke", "cold": None},
    ]
    found = race.Race("task", 1, 0.01, rows)
    assert found.best == 100.0 and found.fastest() == (6.0, "near")
    cells = found.table("1 %").rows
    assert (
        [row[3] for row in cells[:2]] == [1.0, 3.0] and cells[2][4] == "0 of 1" and cells[3][1] == "it broke"
    )
    assert sparse_nets.against_gradients(found)[1:] == ("3.0 times near", False)


def test_cells_say_nothing_where_there_is_nothing():
    assert [report.cell(v) for v in (None, float("inf"), float("nan"), 0.123456, 7, "x")] == [
        "-", "-", "-", "0.1235", "7", "x",
    ]  # fmt: skip


def test_every_system_has_its_function():
    folder = Path(tasks.__file__).parent / "systems"
    for system in (*LINEAR, *SPARSE, *DENSE, *AT_LEVELS):
        assert f"def {system.function}(" in (folder / f"{system.module}.py").read_text()
