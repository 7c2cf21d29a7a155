"""Rows that come a chunk at a time: the same sums, the same steps, the same solution, in bounded memory."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Lasso

from deepprox import DeepClassifier, DeepRegressor, losses
from deepprox.estimators._standardize import Moments, scale_of
from deepprox.estimators.session import Session
from deepprox.joining import join
from deepprox.joining.descent import begin, descend
from deepprox.joining.hessian import hessian
from deepprox.joining.kinks import no_slopes
from deepprox.joining.point import look
from deepprox.runtime import precision
from deepprox.spreading import program
from deepprox.streaming import fit_stream, fitting, passes
from deepprox.streaming.passes import Passes
from deepprox.streaming.spool import Labels, Sample
from deepprox.struct import replace
from spreading.kills import killed

RNG = np.random.default_rng(0)
N = 1000
X = RNG.normal([0, 5, 0], [1, 2, 1], size=(N, 3))
Y = np.sin(X[:, 0]) + np.abs(X[:, 1] - 5) + 0.1 * RNG.normal(size=N)
WEIGHT = RNG.integers(1, 4, N).astype(float)
SMALL = {"CHUNK": 80, "SAMPLE": 300, "PROGRAMS": 0}
TABLE = pd.DataFrame(X, columns=[*"abc"]).assign(y=Y, often=WEIGHT)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Chunks and samples that are small enough for there to be many."""
    for name, value in SMALL.items():
        monkeypatch.setattr(fitting, name, value)


@pytest.fixture(scope="module")
def posed():
    model = DeepRegressor((4,), link="tanh", alpha=0.01, random_state=0)
    with precision(np.float64):
        session = Session(model)
        posed = session.pose(session.read(X[:300], Y[:300]))  # as many as a sample: it compiles once
        problem = posed.problem
        W = session.starts(problem, posed.scale)[0][0]
    n = len(problem.X) // 4

    def chunks():
        for k in range(4):
            some = slice(k * n, (k + 1) * n)
            yield tuple(np.asarray(a)[some] for a in (problem.X, problem.y, problem.weight))

    first = dict(zip(("X", "y", "weight"), next(chunks())))
    return problem, replace(problem, **first, allsum=Passes(chunks, 300)), W


def test_a_pass_sees_what_the_whole_sees(posed):
    whole, streamed, W = posed
    a, b = (look(problem, W, no_slopes(problem), 0.5) for problem in (whole, streamed))
    for name in ("objective", "loss", "gradient", "moved", "certificate"):
        np.testing.assert_allclose(getattr(b, name), getattr(a, name), rtol=1e-12, atol=1e-15)
    before = streamed.allsum.passes
    look(streamed, W, no_slopes(streamed), 0.5)
    assert streamed.allsum.passes == before + 1


def test_steps_by_passes_are_the_steps(posed):
    whole, streamed, W = posed
    a, b = (
        descend(problem, W, begin(problem, [W]), 1e-9, 10, lambda at: False) for problem in (whole, streamed)
    )
    assert a.total == b.total == len(a.rows) == 10
    for name in ("w", "objective", "certificate", "step"):
        np.testing.assert_allclose(getattr(b.state, name), getattr(a.state, name), rtol=1e-9, atol=1e-12)
    for one, other in zip(a.rows, b.rows, strict=True):
        np.testing.assert_allclose([*other.values()], [*one.values()], rtol=1e-9)


def test_second_derivatives_by_passes_are_those_of_the_whole(posed, monkeypatch):
    whole, streamed, W = posed
    live = np.arange(0, sum(w.size for w in W), 2)
    before = streamed.allsum.passes
    a, b = (hessian(problem, W, no_slopes(problem), live).full for problem in (whole, streamed))
    np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-13)
    assert streamed.allsum.passes == before + 1
    monkeypatch.setattr(passes, "TELLING", 100)
    rough = hessian(streamed, W, no_slopes(streamed), live).full
    assert 1e-6 < np.abs(rough - a).max() < 0.5 * np.abs(a).max()


def test_kinks_bend_what_many_rows_say():
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(20_000, 2))
    y = np.maximum(inputs[:, 0], 0) + 2 * np.exp(-(inputs[:, 0] ** 2))  # what misses is largest at the kink
    model = DeepRegressor((1,), link="relu", alpha=0.01, standardize=False)
    with precision(np.float64):
        session = Session(model)
        whole = session.pose(session.read(inputs, y)).problem
        rows = tuple(np.asarray(a) for a in (whole.X, whole.y, whole.weight))
        streamed = replace(whole, allsum=Passes(lambda: iter([rows]), len(inputs)))
        W, live = (np.array([[0.0, 1.0, 0.0]]), np.array([[0.0, 1.0]])), np.arange(5)
        smooth, blurred = (hessian(p, W, no_slopes(p), live).full[0, 0] for p in (whole, streamed))
        ends = [(np.array([[shift, 1.0, 0.0]]), W[1]) for shift in (-0.2, 0.2)]
        slopes = [look(whole, end, no_slopes(whole), 1.0).gradient[0] for end in ends]
    found = (slopes[1] - slopes[0]) / 0.4
    assert abs(blurred - found) < 0.1 * abs(found) and abs(smooth - found) > 0.5 * abs(found)


def test_a_program_with_two_sums_is_refused(posed):
    _, streamed, W = posed

    @program()
    def twice(problem, W):
        return problem.objective(W) + problem.objective(W)

    with pytest.raises(TypeError, match="twice has 2 sums over observations, not one"):
        twice(streamed, W)


@pytest.fixture(scope="module")
def lasso():
    scaled = (X - X.mean(0)) / X.std(0)
    found = Lasso(alpha=0.1, tol=1e-12).fit(scaled, Y)
    return found.coef_ / X.std(0)


@pytest.mark.parametrize("kind", ["arrays", "npy", "parquet", "csv", "list"])
def test_one_block_is_the_lasso_from_any_source(lasso, tmp_path, kind):
    table, given = TABLE[[*"abc", "y"]], tmp_path
    for k in range(3):
        if kind in ("parquet", "list"):
            table[k::3].to_parquet(tmp_path / f"{k}.parquet", row_group_size=100)
        elif kind == "csv":
            table[k::3].to_csv(tmp_path / f"{k}.csv", index=False)
    if kind == "list":
        given = [tmp_path / f"{k}.parquet" for k in range(3)]
    y = "y"
    if kind == "npy":
        given, y = str(tmp_path / "X.npy"), tmp_path / "y.npy"
        np.save(given, X)
        np.save(y, Y)
    if kind == "arrays":
        given, y = X, Y
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    unscaled = losses.Squared(centre=0.0, spread=1.0)
    model = fit_stream(DeepRegressor((), loss=unscaled, alpha=0.1), given, y, scratch=scratch)
    assert model.solution_.status == "converged" and model.n_passes_ > 0
    np.testing.assert_allclose(model.coefs_[0][:, 0], lasso, atol=1e-5)
    assert not [*scratch.iterdir()]
    if kind in ("parquet", "csv", "list"):
        assert [*model.feature_names_in_] == [*"abc"]
        np.testing.assert_allclose(model.predict(table[[*"abc"]]), model.predict(table[[*"abc"]]), rtol=1e-12)


def test_a_network_is_certified_over_all_rows():
    model = DeepRegressor((4,), link="tanh", alpha=0.01, random_state=0)
    fit_stream(model, X, Y, WEIGHT)
    assert model.solution_.status == "converged" and model.solution_.certificate <= 1e-6
    plain = DeepRegressor((4,), link="tanh", alpha=0.01)
    with precision(np.float64):
        session = Session(plain)
        problem = session.pose(session.read(X, Y, WEIGHT)).problem
        at = look(problem, model.fitted_.W, no_slopes(problem), 1.0)
    np.testing.assert_allclose(model.objective_, at.objective, rtol=1e-10)
    assert at.certificate <= 2e-6  # of another step length
    assert model.fitted_.n == N and model.n_features_in_ == 3
    with pytest.raises(ValueError, match="needs the data of the fit"):
        model.criteria()


@pytest.mark.slow  # of 20000 rows; the tests of kinks and of a network over all rows are its parts
def test_a_relu_network_is_certified_by_few_passes():
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(20_000, 4))
    y = np.maximum(inputs @ rng.normal(size=(4, 5)) + 0.3, 0) @ np.array([1.0, -1.0, 2.0, 1.0, -1.0])
    y += 0.3 * rng.normal(size=len(y))
    loss = losses.Squared(centre=0.0, spread=1.0)
    model = DeepRegressor((6,), link="relu", loss=loss, alpha=0.01, tol=1e-4, random_state=0)
    fit_stream(model, inputs, y)
    assert model.solution_.status == "converged" and model.live_[1].sum() >= 4
    assert (model.history_.phase == "newton").any() and model.n_passes_ <= 60


def test_classes_that_come_late():
    labels = np.where(Y > 2, "high", "low").astype(object)
    labels[-3:] = "another"
    model = fit_stream(DeepClassifier((), alpha=0.01, random_state=0), X, labels)
    plain = DeepClassifier((), alpha=0.01, random_state=0).fit(X, labels)
    assert [*model.classes_] == ["another", "high", "low"] and model.solution_.status == "converged"
    np.testing.assert_allclose(model.objective_, plain.objective_, rtol=1e-8)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-4)


def test_a_plain_fit_forgets_the_passes():
    model = fit_stream(DeepRegressor((), alpha=0.1), X, Y)
    assert model.n_passes_ > 0
    assert vars(model.fit(X, Y)).keys() == vars(DeepRegressor((), alpha=0.1).fit(X, Y)).keys()


def test_moments_are_those_of_all_rows():
    moments = Moments.none(3)
    for some in np.array_split(np.arange(N), 7):
        moments = moments.added(X[some], WEIGHT[some])
    a, b = moments.scale(True, np.float64), scale_of(X, WEIGHT / WEIGHT.sum(), True)
    np.testing.assert_allclose(a.mean, b.mean, rtol=1e-12)
    np.testing.assert_allclose(a.spread, b.spread, rtol=1e-12)
    constant = Moments.none(1)
    for _ in range(5):
        constant = constant.added(np.full((10, 1), 0.1), np.ones(10))
    assert constant.scale(True, np.float64).constant.all()


def test_a_sample_is_fair_and_has_what_it_must():
    rng, counts = np.random.default_rng(0), np.zeros(40)
    for _ in range(500):
        sample = Sample(10, rng)
        for some in np.array_split(np.arange(40), 6):
            sample.add(some, always=np.flatnonzero(some == 39))
        assert len(sample.rows[0]) == 10 and 39 in sample.rows[0]
        counts[sample.rows[0]] += 1
    expected = 500 * 9 / 39
    assert np.abs(counts[:39] - expected).max() < 5 * np.sqrt(expected)


def test_labels_keep_their_numbers():
    labels = Labels()
    first, new = labels.code(np.array(["b", "a", "b"]))
    second, more = labels.code(np.array(["c", "b"]))
    np.testing.assert_array_equal(labels.classes[first[:, 0].astype(int)], ["b", "a", "b"])
    np.testing.assert_array_equal(labels.classes[second[:, 0].astype(int)], ["c", "b"])
    assert {*new} == {0, 1} and {*more} == {0}


def table_with(tmp_path, **columns):
    TABLE.assign(**columns).to_parquet(tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


BAD_TABLES = [
    ({"a": np.where(np.arange(N) == 700, np.nan, X[:, 0])}, "Column 'a' is missing or infinite in row 700"),
    ({"y": np.where(np.arange(N) == 700, np.inf, Y)}, "The response is missing or infinite in row 700"),
    ({"b": "text"}, "Column 'b' of .* is not of numbers"),
    ({"y": "text"}, "The response is not of numbers: fit classes with DeepClassifier"),
    ({"often": -1.0}, "A sample_weight is negative"),
    ({"often": 0.0}, "none with a positive weight"),
]


@pytest.mark.parametrize(("columns", "said"), BAD_TABLES)
def test_strange_rows_get_one_sentence(tmp_path, columns, said):
    with pytest.raises(ValueError, match=said):
        fit_stream(DeepRegressor(()), table_with(tmp_path, **columns), "y", "often", scratch=tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["t.parquet"]


LETTERS = np.where(Y > 2, "high", "low").astype(object)
BAD_LABELS = [
    (np.where(np.arange(N) == 700, None, LETTERS), "The response is missing or infinite in row 700: fill"),
    (np.where(np.arange(N) == 700, np.nan, Y > 2), "The response is missing or infinite in row 700: fill"),
    (np.where(np.arange(N) == 700, 3, LETTERS), "texts in some rows and numbers in others"),
    (np.where(np.arange(N) < 512, 3, LETTERS), "texts in some rows and numbers in others"),
]


@pytest.mark.parametrize(("labels", "said"), BAD_LABELS)
def test_strange_labels_get_one_sentence(labels, said):
    with pytest.raises(ValueError, match=said):
        fit_stream(DeepClassifier(()), X, labels)


def test_a_response_that_the_loss_cannot_take_is_told():
    y = np.ones(N)
    y[700] = -1
    with pytest.raises(ValueError, match=r"loss='poisson' takes responses that are .* but one of them is -1"):
        fit_stream(DeepRegressor((), loss="poisson"), X, y)


BAD_CALLS = [
    (X, Y, {"max_memory": "much"}, "max_memory must be bytes, as a number or like '2GB', got 'much'"),
    (X, Y, {"max_memory": "100MB"}, "max_memory is too little: the process has"),
    (X, Y[:-1], {}, "their shapes are"),
    (X, "y", {}, "With an array X, y is an array or a .npy file, got str"),
    ("nowhere", "y", {}, "There is no file nowhere"),
    ("t.parquet", "z", {}, "There is no column 'z': the columns are a, b, c, y, often"),
    ("t.parquet", Y, {}, "With files, y is the name of the column"),
    ("t.txt", "y", {}, "is of an unknown kind"),
    (1, "y", {}, "X must be files or an array, got int"),
]


@pytest.mark.parametrize(("given", "y", "more", "said"), BAD_CALLS)
def test_strange_calls_get_one_sentence(tmp_path, monkeypatch, given, y, more, said):
    monkeypatch.chdir(tmp_path)
    table_with(tmp_path)
    (tmp_path / "t.txt").touch()
    with pytest.raises((ValueError, TypeError), match=said):
        fit_stream(DeepRegressor(()), given, y, **more)


@pytest.mark.parametrize("settings", [{"warm_start": True}, {"devices": "all"}, {"join": False}])
def test_settings_that_cannot_be_are_told(settings):
    with pytest.raises(ValueError, match=f"A streamed fit needs {next(iter(settings))}="):
        fit_stream(DeepRegressor((), **settings), X, Y)


def streaming(folder=None, **more):
    return DeepRegressor((4,), link="tanh", alpha=0.01, checkpoint=folder, **{"random_state": 0} | more)


@pytest.fixture(scope="module")
def whole_fits():
    """Fits that nothing interrupted, with Newton steps and by quasi-Newton steps alone."""
    models = {}
    for few in (join.FEW, 0):
        with pytest.MonkeyPatch.context() as patch:
            for name, value in SMALL.items():
                patch.setattr(fitting, name, value)
            patch.setattr(join, "FEW", few)
            models[few] = fit_stream(streaming(), X, Y)
    return models


@pytest.mark.parametrize(("few", "after"), [(join.FEW, 1), (join.FEW, 3), (0, 2), (0, 5), (0, 27), (0, 31)])
def test_a_streamed_fit_goes_on_to_the_same_bits(monkeypatch, whole_fits, tmp_path, few, after):
    uninterrupted = whole_fits[few]
    assert (uninterrupted.history_.phase == "newton").any() == (few > 0)
    monkeypatch.setattr(join, "FEW", few)
    assert killed(after, fit_stream, streaming(tmp_path), X, Y)
    monkeypatch.setattr(fitting, "SAMPLE", 310)  # what fits now is not what fitted then
    model = fit_stream(streaming(tmp_path, resume=True), X, Y)
    for a, b in zip(model.fitted_.W, uninterrupted.fitted_.W, strict=True):
        np.testing.assert_array_equal(a, b)
    assert model.objective_ == uninterrupted.objective_
    columns = [name for name in model.history_ if name != "seconds"]
    assert model.history_[columns].equals(uninterrupted.history_[columns])
    if after == 31:
        assert model.n_passes_ < uninterrupted.n_passes_


def test_checkpoints_of_other_streams_are_refused(monkeypatch, tmp_path):
    assert killed(3, fit_stream, streaming(tmp_path, random_state=None), X, Y)
    other = X.copy()
    other[900:] += 1  # hardly in the sample
    with pytest.raises(ValueError, match="it is of other data, other settings"):
        fit_stream(streaming(tmp_path, random_state=None, resume=True), other, Y)
    with pytest.raises(ValueError, match="it is of other data, other settings"):
        fit_stream(streaming(tmp_path, random_state=None, resume=True, max_iter=99), X, Y)
    monkeypatch.setattr(fitting, "SAMPLE", 200)
    with pytest.raises(ValueError, match="This fit began with more memory"):
        fit_stream(streaming(tmp_path, random_state=None, resume=True), X, Y)
    monkeypatch.setattr(fitting, "SAMPLE", SMALL["SAMPLE"])
    assert (
        fit_stream(streaming(tmp_path, random_state=None, resume=True), X, Y).solution_.status == "converged"
    )
    (tmp_path / "stream.json").write_text("[300")
    with pytest.raises(ValueError, match=r"stream.json is damaged"):
        fit_stream(streaming(tmp_path, random_state=None, resume=True), X, Y)


SCRIPT = r"""
import json, re, sys
from pathlib import Path
import numpy as np
from deepprox import DeepRegressor
from deepprox.streaming import fit_stream
model = DeepRegressor((10,), alpha=0.01, random_state=0)
fit_stream(model, sys.argv[1], sys.argv[2], max_memory="1GB")
# not ru_maxrss, which begins with the memory of the process that started this one
peak = int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024
print(json.dumps([peak, model.solution_.status, model.fitted_.n]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")
def test_memory_is_bounded(tmp_path):
    n, width = 1_000_000, 200  # 1.6 GB
    inputs = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float64, (n, width))
    y = np.zeros(n)
    for some in np.array_split(np.arange(n), 50):
        inputs[some] = RNG.normal(size=(len(some), width))
        y[some] = np.abs(inputs[some, 0]) + 0.1 * RNG.normal(size=len(some))
    del inputs
    np.save(tmp_path / "y.npy", y)
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "X.npy"), str(tmp_path / "y.npy")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    peak, status, seen = json.loads(done.stdout)
    assert status == "converged" and seen == n and peak <= 2**30
