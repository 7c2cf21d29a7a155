"""Laws of a record: fields are leaves, static fields are structure, and no two classes share a structure."""

from itertools import combinations

import jax
import pytest

from deepprox.penalties import GroupL2
from deepprox.struct import replace
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
