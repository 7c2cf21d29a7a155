"""Fits by a Dask cluster: the plain fit, whatever the data come in, and whatever happens to a worker."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from uuid import uuid4

import dask.array as da
import dask.dataframe as dd
import jax
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

import deepprox
from deepprox.dask import DeepClassifier, DeepRegressor, driver, estimators, meeting, rank
from deepprox.dask.meeting import Sum
from deepprox.dask.pages import Pages
from deepprox.dask.parts import deal, parts_of
from deepprox.diary import Stages
from deepprox.estimators.session import Session
from deepprox.joining.finish import Finish
from deepprox.joining.quasi_newton import State
from deepprox.runtime import precision

# what Dask itself leaves open when a cluster closes
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3))
Y = X[:, 0] - 2 * X[:, 1] + RNG.normal(size=600)
LABELS = np.where(Y > 0.3, "up", "down")
TABLE = pd.DataFrame(X, columns=[*"abc"]).assign(y=LABELS, often=RNG.integers(1, 3, 600))


def here(processes):
    return LocalCluster(n_workers=2, threads_per_worker=1, processes=processes, dashboard_address=":0")


@pytest.fixture(scope="module")
def client():
    """A cluster in this process: one worker that does all that a worker does."""
    with here(processes=False) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def table():
    return dd.from_pandas(TABLE, npartitions=4)


@pytest.fixture(scope="module")
def classifier(client, table):
    return DeepClassifier((), loss="logistic", alpha=0.01).fit(table[[*"abc", "y"]], "y")


def assert_same(fitted, plain):
    assert fitted.solution_.status == plain.solution_.status == "converged"
    np.testing.assert_allclose(fitted.objective_, plain.objective_, rtol=1e-10)
    for a, b in zip(fitted.coefs_, plain.coefs_):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_a_table_is_fitted_as_in_memory(classifier):
    plain = deepprox.DeepClassifier((), loss="logistic", alpha=0.01).fit(TABLE[[*"abc"]], LABELS)
    assert_same(classifier, plain)
    assert [*classifier.feature_names_in_] == [*"abc"] and [*classifier.classes_] == ["down", "up"]
    assert classifier.lost_workers_ == []


def test_predictions_are_collections(classifier, table):
    inputs, local = table[[*"abc"]], classifier.to_local()
    labels = classifier.predict(inputs)
    assert isinstance(labels, dd.Series)
    np.testing.assert_array_equal(labels.compute(), local.predict(TABLE[[*"abc"]]))
    p = classifier.predict_proba(inputs)
    assert isinstance(p, dd.DataFrame) and [*p.columns] == ["down", "up"]
    np.testing.assert_allclose(p.compute(), local.predict_proba(TABLE[[*"abc"]]))
    np.testing.assert_allclose(
        classifier.decision_function(inputs).compute().mean(), np.log(p.up / p.down).mean()
    )
    assert classifier.score(table[[*"abc", "y"]], "y") == local.score(TABLE[[*"abc"]], LABELS)
    np.testing.assert_array_equal(classifier.predict(TABLE[[*"abc"]]), labels.compute())
    none = inputs[inputs.a > 1e9]
    assert len(classifier.predict(none)) == len(classifier.predict_proba(none)) == 0


def test_what_is_left_is_the_plain_estimator(classifier, tmp_path):
    local = classifier.to_local()
    assert type(local) is deepprox.DeepClassifier and local.get_params() == classifier.get_params()
    local.save(tmp_path / "model.deepprox")
    loaded = deepprox.load(tmp_path / "model.deepprox")
    np.testing.assert_array_equal(loaded.predict(TABLE[[*"abc"]]), local.predict(TABLE[[*"abc"]]))


def test_arrays_in_other_chunks_and_weights(client):
    weight = TABLE.often.to_numpy()
    inputs, response = da.from_array(X, chunks=(200, 2)), da.from_array(Y, chunks=150)
    model = DeepRegressor((), alpha=0.1).fit(inputs, response, da.from_array(weight, chunks=600))
    assert_same(model, deepprox.DeepRegressor((), alpha=0.1).fit(X, Y, weight))
    predicted = model.predict(inputs)
    assert isinstance(predicted, da.Array) and predicted.shape == (600,)
    np.testing.assert_allclose(model.score(inputs, response), model.to_local().score(X, Y))


def test_a_second_fit_forgets_the_first(client, table):
    model = DeepRegressor((), alpha=0.1).fit(table[[*"abc", "often"]], "often")
    before = {*vars(model)}
    model.fit(da.from_array(X, chunks=(300, 3)), da.from_array(Y, chunks=300))
    assert before - vars(model).keys() == {"feature_names_in_"}


def test_parquet_files(client, tmp_path):
    for k in range(3):
        TABLE.assign(y=Y)[k::3].to_parquet(tmp_path / f"{k}.parquet")
    plain = deepprox.DeepRegressor((), alpha=0.1).fit(TABLE[[*"abc"]], Y, TABLE.often)
    files = [str(tmp_path / f"{k}.parquet") for k in range(3)]
    for given in (files, tmp_path, str(tmp_path / "?.parquet")):
        assert_same(DeepRegressor((), alpha=0.1).fit(given, "y", "often"), plain)


BAD = [
    (X, Y, None, "X must be a Dask DataFrame, a Dask Array of two dimensions, or Parquet files, got ndarray"),
    ("nowhere/*.parquet", "y", None, "There is no Parquet file nowhere"),
    (["a.parquet"], None, None, "With files, y is the name of the column"),
    ([1], "y", None, "A list must be of Parquet files"),
    ("table", "z", None, "There is no column 'z': the columns are a, b, c, y"),
    ("table", Y, None, "y must be a column name or a Dask collection like X, got ndarray"),
    ("table", "other", None, "X has 4 partitions, but y has 2"),
    ("array", "y", None, "A Dask Array has no column names"),
    ("array", da.zeros(599), None, "X has 600 rows, but y has 599"),
]


@pytest.mark.parametrize(("given", "y", "weight", "said"), BAD)
def test_strange_data_get_one_sentence(client, table, given, y, weight, said):
    if isinstance(given, str) and given in ("table", "array"):
        given = table if given == "table" else da.from_array(X, chunks=200)
    y = table.y.repartition(npartitions=2) if isinstance(y, str) and y == "other" else y
    with pytest.raises((TypeError, ValueError), match=said.replace("*", r"\*")):
        DeepClassifier(()).fit(given, y, weight)


def test_strange_settings_get_one_sentence(client, table):
    for settings, said in [
        ({"devices": "all"}, "devices=None"),
        ({"rho": [np.ones(600)]}, "one number per block"),
    ]:
        with pytest.raises(ValueError, match=said):
            DeepClassifier((), **settings).fit(table, "y")
    with pytest.raises(TypeError, match=r"client must be a distributed\.Client"):
        DeepClassifier(()).fit(table, "y", client="here")


def test_an_error_of_a_worker_is_the_error_of_the_fit(client, table):
    with pytest.raises(ValueError, match="there is only one class: 1"):
        DeepClassifier(()).fit(table[[*"abc"]].assign(y=1), "y")
    plugins = client.run_on_scheduler(
        lambda dask_scheduler: [*dask_scheduler.plugins, *dask_scheduler.handlers]
    )
    assert not [name for name in plugins if name.startswith("deepprox")]


def test_a_fit_without_a_client_is_told(monkeypatch):
    def nobody():
        raise ValueError("No global client found and no address provided")

    monkeypatch.setattr(estimators, "get_client", nobody)
    with pytest.raises(ValueError, match="There is no Dask client"):
        DeepClassifier(()).fit(dd.from_pandas(TABLE, npartitions=1), "y")


def test_sums_are_in_the_order_of_ranks_and_workers_in_step():
    async def add(parts):
        wanted = Sum()
        wanted.brought = {rank: [a] for rank, a in reversed([*enumerate(parts)])}
        wanted.add_up()
        return wanted.found[0]

    parts = [*RNG.normal(size=(7, 50))]
    total = np.zeros(50)
    for part in parts:
        total += part
    np.testing.assert_array_equal(asyncio.run(add(parts)), total)
    with pytest.raises(ValueError, match="out of step"):
        asyncio.run(add([parts[0], parts[1][:3]]))


def test_every_part_has_one_rank(table):
    parts = parts_of(table, "y", None)
    for world in (1, 2, 3, 4):
        dealt = deal(parts, world)
        assert [part for some in dealt for part in some] == parts and min(map(len, dealt)) >= 1


class Gone(Exception):
    """A worker is lost."""


PLACES = {
    "split": lambda stages: stages.begun is not None and len(stages.done) == 1,
    "join": lambda stages: stages.begun is not None and isinstance(stages.begun[0][0], State),
    "newton": lambda stages: isinstance(stages.done[-1][0], Finish) and stages.done[-1][0].n_held,
}


@pytest.mark.parametrize("place", PLACES)
def test_a_run_goes_on_without_what_is_about_rows(place):
    y = np.abs(X[:, 0]) + np.maximum(X[:, 1], 0.5) + 0.1 * np.random.default_rng(1).normal(size=600)
    model = deepprox.DeepRegressor((4,), alpha=0.01, random_state=0)
    session = Session(model)
    four = np.column_stack([X, X[:, 0] * X[:, 1]])  # no zeros beside them in one process, as in a cluster
    rows = session.read(four, y)

    def keep(stages):
        if PLACES[place](stages):
            raise Gone

    with precision(rows.X.dtype):
        posed = session.pose(rows)
        whole = session.run(posed)
        stages = Stages(keep=keep)
        with pytest.raises(Gone):
            session.run(posed, stages=stages)
        n, pages = len(posed.problem.X), Pages.of(stages)
        count = lambda tree: sum(np.shape(leaf)[-2:-1] == (n,) for leaf in jax.tree.leaves(tree))  # noqa: E731
        assert count((stages.done, stages.begun)) == {"split": 4, "join": 0, "newton": 2}[place]
        assert not count(pages)
        found = session.run(posed, stages=pages.stages(posed.problem))
    assert found.status == whole.status == "converged" and found.certificate <= model.tol
    assert len(found.history) >= len(stages.diary.rows(0)) > 0
    np.testing.assert_allclose(found.objective, whole.objective, rtol=0.05)


# ---- workers in processes of their own ----


@pytest.fixture(scope="module")
def cluster():
    with here(processes=True) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(1)
    inputs = rng.normal(size=(4000, 4))
    label = (np.sin(2 * inputs[:, 0]) + np.abs(inputs[:, 1]) > 0.6).astype(int)
    return pd.DataFrame(inputs, columns=[*"abcd"]).assign(y=label)


SETTINGS = {"loss": "logistic", "hidden_layer_sizes": (6,), "link": "tanh", "alpha": 0.005, "random_state": 0}


@pytest.fixture(scope="module")
def undisturbed(cluster, many):
    with Client(cluster) as client:
        model = DeepClassifier(**SETTINGS).fit(dd.from_pandas(many, npartitions=5), "y", client=client)
    return model


@pytest.mark.slow
def test_two_processes_fit_as_one(undisturbed, many):
    assert_same(undisturbed, deepprox.DeepClassifier(**SETTINGS).fit(many[[*"abcd"]], many.y))


def last_worker(cluster):
    return [*cluster.workers.values()][-1]


FAULTS = [
    ("split", signal.SIGKILL, False),
    ("split", signal.SIGKILL, True),
    ("join", signal.SIGKILL, False),
    ("join", signal.SIGSTOP, False),
    ("split", signal.SIGTERM, False),
]


@pytest.mark.slow
@pytest.mark.parametrize(("phase", "number", "files"), FAULTS)
def test_a_lost_worker_is_replaced(cluster, many, undisturbed, tmp_path, phase, number, files):
    seen, struck = [], []

    def strike(event):
        seen.append(event[1]["iteration"])
        if event[1]["phase"] == phase and not struck:
            struck.append(time.monotonic())
            os.kill(last_worker(cluster).process.pid, number)

    with Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        topic = f"test-{uuid4().hex}"
        client.subscribe_topic(topic, strike)
        model = deepprox.DeepClassifier(**SETTINGS, checkpoint=tmp_path if files else None)
        done = driver.fit(client, model, parts_of(dd.from_pandas(many, npartitions=5), "y", None), topic)
        client.unsubscribe_topic(topic)
    assert struck and len(done.lost) == 1
    assert done.model.solution_.status == "converged" and done.model.solution_.certificate <= 1e-6
    np.testing.assert_allclose(done.model.objective_, undisturbed.objective_, rtol=0.05)
    if files:  # from the last that all have, to the same bits
        assert done.model.objective_ == undisturbed.objective_
    else:  # from where it was
        assert seen.count(10) == 1


@pytest.mark.slow
def test_the_others_know_at_once_of_a_lost_worker(cluster):
    """A worker waits for a sum that the other never brings."""
    with Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        addresses = sorted(client.scheduler_info(n_workers=-1)["workers"])
        name = f"test-{uuid4().hex}"
        client.register_plugin(meeting.Meeting(name, client.id, addresses), name=name)

        def bring():
            try:
                meeting.Seat(name, 0).reduce([np.ones(3)])
            except meeting.Lost as lost:
                return str(lost)

        waiting = client.submit(bring, workers=[addresses[0]], pure=False)
        time.sleep(1)
        victim = next(one for one in cluster.workers.values() if one.worker_address == addresses[1])
        began = time.monotonic()
        os.kill(victim.process.pid, signal.SIGKILL)
        assert waiting.result(timeout=30) == addresses[1]
        assert time.monotonic() - began < 5
        client.sync(getattr(client.scheduler, f"{name}_end"))


@pytest.mark.slow
def test_an_error_in_one_process_ends_the_others(cluster, many):
    with Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        table = dd.from_pandas(many.assign(b=many.b.mask(many.index == 3999)), npartitions=5)
        began = time.monotonic()
        with pytest.raises(ValueError, match="contains NaN"):
            DeepClassifier(**SETTINGS).fit(table, "y", client=client)
        assert time.monotonic() - began < 30
        assert client.submit(abs, -1).result(timeout=30) == 1  # the workers are free again


def nanny_and_worker():
    return os.getppid(), os.getpid()


@pytest.mark.slow
@pytest.mark.parametrize("who", [["nanny", "worker"], ["nanny"]], ids=["host", "nanny alone"])
def test_a_host_that_is_gone_leaves_its_rows_to_the_others(many, undisturbed, tmp_path, who):
    """A worker ends with its nanny, so that a lost nanny is a lost host."""
    command = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1", "--no-dashboard"]
    with (
        LocalCluster(n_workers=0, dashboard_address=":0", host="127.0.0.1") as cluster,
        Client(cluster) as client,
    ):
        command += [cluster.scheduler_address, "--local-directory", str(tmp_path)]
        nannies = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(2)]
        struck = []

        def strike(event):
            if not struck:
                struck.append(time.monotonic())
                for pid in family[: len(who)]:
                    os.kill(pid, signal.SIGKILL)

        try:
            client.wait_for_workers(2, timeout=60)
            family = client.run(nanny_and_worker)[max(client.scheduler_info(n_workers=-1)["workers"])]
            client.subscribe_topic("strike", strike)
            model = deepprox.DeepClassifier(**SETTINGS)
            parts = parts_of(dd.from_pandas(many, npartitions=5), "y", None)
            done = driver.fit(client, model, parts, "strike")
        finally:
            for nanny in nannies:
                nanny.terminate()
                nanny.wait(30)
    assert struck and len(done.lost) == 1
    assert done.model.solution_.status == "converged" and done.model.solution_.certificate <= 1e-6
    np.testing.assert_allclose(done.model.objective_, undisturbed.objective_, rtol=0.05)


DRIVER = """
import sys
from distributed import Client
import deepprox
from deepprox.dask import driver
from deepprox.dask.parts import parts_of
client = Client(sys.argv[1])
client.subscribe_topic("rows", lambda event: print(event[1]["phase"], flush=True))
model = deepprox.DeepRegressor((20, 20), alpha=1e-4, tol=1e-14, max_iter=10**6, random_state=0)
driver.fit(client, model, parts_of(sys.argv[2], "y", None), "rows")
"""


def ranks_at_work():
    """How many threads of this worker are in a fit."""
    frames, count = [*sys._current_frames().values()], 0
    for frame in frames:
        while frame is not None:
            count += frame.f_code is rank.run.__code__
            frame = frame.f_back
    return count


@pytest.mark.slow
def test_workers_are_free_soon_after_their_driver_is_gone(cluster, many, undisturbed, tmp_path):
    for k in range(4):
        many[k::4].to_parquet(tmp_path / f"{k}.parquet")
    command = [sys.executable, "-c", DRIVER, cluster.scheduler_address, str(tmp_path)]
    with Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        gone = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert gone.stdout.readline() == "split\n"
            assert [*client.run(ranks_at_work).values()] == [1, 1]
        finally:
            began = time.monotonic()
            gone.kill()
            gone.communicate()
        while any(client.run(ranks_at_work).values()):
            assert time.monotonic() - began < 30
            time.sleep(0.2)
        model = DeepClassifier(**SETTINGS).fit(dd.from_pandas(many, npartitions=5), "y", client=client)
        left = client.run_on_scheduler(
            lambda dask_scheduler: [*dask_scheduler.plugins, *dask_scheduler.handlers]
        )
    assert_same(model, undisturbed)
    assert not [name for name in left if name.startswith("deepprox")]
