"""Laws of a record: fields are leaves, static fields are structure, and no two classes share a structure."""

from itertools import combinations
from typing import Any

import jax
import numpy as np
import pytest

from deepprox.penalties import GroupL2
from deepprox.struct import axis_of_rows, change_rows, replace, rows, static, struct
from rows import LINKS, LOSSES, PENALTIES

RECORDS = [*(r.link for r in LINKS), *(r.loss for r in LOSSES), *(r.penalty for r in PENALTIES)]


def test_structures_of_different_classes_differ():
    # if they compared equal, jit could run the program of another class
    for one, other in combinations(RECORDS, 2):
        if type(one) is not type(other):
            assert jax.tree.structure(one) != jax.tree.structure(other), (one, other)


@pytest.mark.parametrize("record", RECORDS, ids=str)
def test_there_and_back(record):
    leaves, structure = jax.tree.flatten(record)
    assert jax.tree.unflatten(structure, leaves) == record


def test_static_fields_are_structure_and_the_others_leaves():
    record = GroupL2(2.0, "unit")
    assert jax.tree.leaves(record) == [2.0]
    assert jax.tree.structure(record) != jax.tree.structure(replace(record, by="input"))
    assert jax.tree.structure(record) == jax.tree.structure(replace(record, alpha=3.0))


def test_leaves_are_named_by_their_fields():
    [(path, _)] = jax.tree_util.tree_leaves_with_path(GroupL2(2.0))
    assert jax.tree_util.keystr(path) == ".alpha"


@struct
class Observed:
    """A record of which parts have rows."""

    W: Any
    Z: Any = rows()
    weight: Any = rows(axis=-1)
    size: int = static(default=1)


def test_rows_are_told_by_the_record_that_has_them():
    """Not by names: a record inside of another brings its own."""
    inner = Observed(np.zeros((5, 2)), None, np.zeros(5))
    given = {
        "Z": np.zeros((5, 2)),
        "at": Observed((inner, np.zeros((5, 2))), (np.zeros((3, 5, 2)), None), 1.0),
    }
    axes = {
        jax.tree_util.keystr(path): axis_of_rows(path, leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(given)
    }
    assert axes == {
        "['Z']": None,
        "['at'].W[0].W": None,
        "['at'].W[0].weight": 0,
        "['at'].W[1]": None,
        "['at'].Z[0]": 1,  # after the axis of starts
        "['at'].weight": None,  # one number for all
    }


def test_rows_alone_are_changed():
    record = Observed(np.ones((5, 2)), (np.ones((3, 5, 2)), np.float64(1)), np.ones(5), 7)
    fewer = change_rows(lambda array, axis: np.take(array, [0, 1], axis), record)
    assert [np.shape(leaf) for leaf in jax.tree.leaves(fewer)] == [(5, 2), (3, 2, 2), (), (2,)]
    assert type(fewer) is Observed and fewer.size == 7
