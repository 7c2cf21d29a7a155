"""What processes say together on the host is what one that has all rows says."""

import threading

import numpy as np
import pandas as pd
import pytest

from deepprox import losses
from deepprox.cli.together import agree
from deepprox.estimators._response import all_classes
from deepprox.estimators._standardize import measured, scale_of
from deepprox.joining.candidates import N_CANDIDATES, nearest_of_all
from deepprox.problem import Network, Problem
from deepprox.spreading import Reducer, same
from deepprox.tables import Columns

WORLD = 3


def together(work):
    """``work(allsum)`` of every process, which here are threads that meet at a table."""
    table, meet = [None] * WORLD, threading.Barrier(WORLD, timeout=30)
    out = [None] * WORLD

    def add(rank, arrays):
        table[rank] = arrays
        meet.wait()
        sums = [sum(parts) for parts in zip(*table, strict=True)]
        meet.wait()
        return sums

    def run(rank):
        try:
            out[rank] = work(Reducer(lambda arrays: add(rank, arrays), rank, WORLD))
        except BaseException as error:
            out[rank] = error
            meet.abort()

    threads = [threading.Thread(target=run, args=[rank]) for rank in range(WORLD)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in out:
        if isinstance(one, BaseException) and not isinstance(one, threading.BrokenBarrierError):
            raise one
    return out


def test_gathering():
    def work(allsum):
        table = allsum.gather(np.full((2, 2), allsum.rank + 1))
        words = allsum.collect({"ä": "x" * allsum.rank})
        return table.tolist(), words, int(allsum.first(10 + allsum.rank)), allsum.room(5 + allsum.rank)

    each = together(work)
    assert each[0] == each[1] == each[2]
    table, words, first, room = each[0]
    assert [rows[0][0] for rows in table] == [1, 2, 3]
    assert words == [{"ä": ""}, {"ä": "x"}, {"ä": "xx"}] and first == 10 and room == 7


def test_scales_and_widths():
    rng = np.random.default_rng(0)
    X, weight = rng.normal(2, 3, (31, 4)), rng.uniform(0.1, 1, 31)
    X[:, 2] = 7.0
    weight /= weight.sum()

    def of(X, weight, allsum=same):
        Y, loss = X[:, :2], losses.Quantile()
        return scale_of(X, weight, True, allsum), measured(
            loss, Y, weight, scale_of(Y, weight, True, allsum), allsum
        )

    whole, quantile = of(X, weight)
    for scale, loss in together(
        lambda allsum: of(X[allsum.rank :: WORLD], weight[allsum.rank :: WORLD], allsum)
    ):
        np.testing.assert_allclose(scale.mean, whole.mean, rtol=1e-13)
        np.testing.assert_allclose(scale.spread, whole.spread, rtol=1e-13)
        np.testing.assert_array_equal(scale.constant, [False, False, True, False])
        np.testing.assert_allclose(loss.width, quantile.width, rtol=1e-12)
        np.testing.assert_allclose(loss.centre, quantile.centre, rtol=1e-12)
        np.testing.assert_allclose(loss.spread, quantile.spread, rtol=1e-12)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["b", "a", "longer than the others"]),
        np.array(["b", "a", "longer than the others"], object),
        np.array([3, 1, 2], np.int32),
        np.array([0.5, -1.0, 2.0]),
        np.array([True, False, True]),
    ],
)
def test_classes(labels):
    for classes in together(lambda allsum: all_classes(np.unique(labels[allsum.rank :][:1]), allsum)):
        np.testing.assert_array_equal(classes, np.unique(labels))
        assert classes.dtype == np.unique(labels).dtype


def problem(allsum):
    return Problem(Network(()), losses.Squared(), None, None, None, allsum)


def candidates(seed):
    """Candidates of every process: offset, unit, row or -1, row, jump; and all of them as one has them."""
    rng = np.random.default_rng(seed)
    own, biases = [], np.round(rng.normal(size=6), 2)
    for _ in range(WORLD):
        n = int(rng.integers(0, 400))
        rows = rng.permutation(1000)[:n]
        own.append(np.stack([rng.normal(size=n), rng.integers(0, 6, n), rows, rows, rng.normal(size=n)]))
        units = np.flatnonzero(rng.random(6) < 0.5)  # those of which this process has entries at the bias
        zeros = np.stack([biases[units], units, -np.ones(len(units)), units, rng.normal(size=len(units))])
        own[-1] = np.concatenate([own[-1], zeros], axis=1)
        own[-1] = own[-1][:, np.lexsort(own[-1][[2, 1, 0]])]
    every = np.concatenate(own, axis=1)
    owner = np.repeat(np.arange(WORLD), [one.shape[1] for one in own])
    every[2] = np.where(every[2] < 0, -1, every[2] + 1000 * owner)
    frame = pd.DataFrame(every[[0, 1, 2, 4]].T, columns=["offset", "unit", "alone", "jump"])
    return own, frame.groupby(["offset", "unit", "alone"], as_index=False).jump.sum()


@pytest.mark.parametrize("seed", range(5))
def test_kinks_are_chosen_among_those_of_all(seed):
    own, every = candidates(seed)
    best = every[every.jump > 0].sort_values("offset", key=np.abs).head(N_CANDIDATES)
    each = together(lambda allsum: nearest_of_all(problem(allsum), own[allsum.rank]))
    for found, went in each:
        np.testing.assert_array_equal(found[0], best.offset)
        np.testing.assert_array_equal(found[1], best.unit)
        np.testing.assert_allclose(found[4], best.jump, rtol=1e-12)
        rank = next(k for k, one in enumerate(each) if one[1] is went)
        mine = went >= 0
        np.testing.assert_array_equal(own[rank][:2, mine], found[:2, went[mine]])
        lone = mine & (own[rank][2] >= 0)
        np.testing.assert_array_equal(own[rank][3, lone], found[3, went[lone]])  # rows of its own
    owners = np.sum([found[3] >= 0 for found, _ in each], axis=0)
    assert (owners == 1).all()  # each has its row with one process


def test_kinks_of_one_process_are_its_nearest():
    own, _ = candidates(0)
    found, went = nearest_of_all(problem(same), own[0])
    convex = np.flatnonzero(own[0][4] > 0)
    best = convex[np.argsort(np.abs(own[0][0, convex]), kind="stable")[:N_CANDIDATES]]
    np.testing.assert_array_equal(found, own[0][:, best])
    np.testing.assert_array_equal(went[best], np.arange(best.size))


def test_columns():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=20), "c": rng.choice(["u", "v"], 20)})
    table.loc[19, "c"] = "rare"
    table.loc[0, "c"] = None
    table.loc[3:7, "x"] = np.nan
    whole = Columns("mean").fit(table)

    def work(allsum):
        part = table.iloc[allsum.rank :: WORLD]
        columns = Columns("mean").fit(part)
        agree(columns, part, allsum)
        return columns

    for columns in together(work):
        assert columns.levels_ == whole.levels_
        np.testing.assert_allclose(columns.means_, whole.means_)


def test_columns_of_two_kinds_are_refused():
    table = pd.DataFrame({"x": [1, 2, "three"]})

    def work(allsum):
        part = table.iloc[[allsum.rank]].infer_objects()
        columns = Columns(factors=["x"] if allsum.rank == 2 else []).fit(part)
        agree(columns, part, allsum)

    with pytest.raises(ValueError, match="Column 'x' is numbers in some rows and text in others"):
        together(work)
