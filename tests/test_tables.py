"""The tables that estimators are compared on, and the page of their scores."""

import numpy as np
import pytest
from benchmarks.tables.drawn import DRAWN
from benchmarks.tables.page import page, scores
from benchmarks.tables.record import Table, table_of
from benchmarks.tables.run import makers, one, wanted
from benchmarks.tables.sets import LOADERS, load, store, stored


def test_there_are_as_many_tables_as_are_said():
    assert len(LOADERS) - len(DRAWN) == 42 and len(DRAWN) == 5


def test_words_become_indicators_and_rare_classes_leave():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": np.arange(21.0), "same": 1, "word": list("abc") * 7})
    frame["y"] = ["often"] * 10 + ["too"] * 10 + ["once"]
    found = table_of("t", "here", frame, "y", True)
    assert found.X.shape == (20, 3) and set(found.y) == {0, 1}


@pytest.mark.parametrize("name", list(DRAWN))
def test_the_truth_of_drawn_tables_predicts_best_and_other_inputs_do_not_matter(name):
    table = DRAWN[name]()
    if table.classes:
        assert (table.best == table.y).mean() > max(np.bincount(table.y)) / len(table.y) + 0.15
    else:
        assert np.var(table.y - table.best) < 0.4 * np.var(table.y)
    acting = np.abs(np.corrcoef(table.X.T, table.best)[-1, :-1])
    assert table.truth.sum() >= 2 and acting[~table.truth].mean() < 0.2


def test_a_split_is_the_same_twice_and_tests_three_tenths():
    table = DRAWN["logits"]()
    (train, test), again = table.split(3), table.split(3)
    np.testing.assert_array_equal(train, again[0])
    assert len(test) == 180 and not set(train) & set(test)


def test_tables_come_back_from_their_file(tmp_path):
    tables = [DRAWN["line"](), load(["iris"])[0][0]]
    store(tables, tmp_path / "tables.npz")
    for a, b in zip(tables, stored(tmp_path / "tables.npz"), strict=True):
        assert (a.name, a.source, a.classes, a.held) == (b.name, b.source, b.classes, b.held)
        np.testing.assert_array_equal(a.X, b.X)
        assert (a.truth is None) == (b.truth is None)


def test_a_line_says_what_the_lasso_kept():
    row = one(DRAWN["line"](), 0, "linear")
    assert row["test"] > 0.5 and set(row["truth"]) <= set(row["inputs"]) and row["n_nonzero"] < 41


def test_what_is_there_is_not_done_again():
    tables = [Table("t", "here", np.zeros((9, 2)), np.zeros(9), False)]
    done = [{"table": "t", "split": 0, "model": "svm"}]
    left = list(wanted({"models": "svm;forest", "splits": "2"}, tables, done))
    assert [task[1:] for task in left] == [(0, "forest"), (1, "svm"), (1, "forest")]
    with pytest.raises(SystemExit, match="no model tree"):
        list(wanted({"models": "tree"}, tables, []))


def test_the_page_means_over_splits_and_ranks_ties_alike():
    about = {"held": False, "classes": True, "source": "here", "truth": None, "n": 9, "p": 2, "seconds": 1.0}
    rows = [
        about | {"table": "t", "split": s, "model": m, "test": x}
        for m in "ab"
        for s, x in ((0, 0.5), (1, 0.7))
    ]
    rows += [about | {"table": "t", "split": 0, "model": "c", "test": -9.0}]
    assert scores(rows)["a"]["t"] == pytest.approx(0.6) and scores(rows)["c"]["t"] == -1
    text = page(rows)
    assert "| a | 0.600 | 0.600 | 1.5 |" in text and "| c | -1.000 | -1.000 | 3.0 |" in text


def test_every_model_can_be_made_for_classes_and_for_numbers():
    for make in makers().values():
        assert all(hasattr(make(classes), "fit") for classes in (True, False))
