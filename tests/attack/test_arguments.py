"""Hostile values for every argument of everything that is public: a result, or one clear sentence."""

import pytest

from attack.cases import ONCE, Case, all_cases, places
from attack.driver import attack, complain

PARTS = all_cases()
FEW = 60  # of the arguments that are tried with every change


def end_well(cases, folder):
    """Run the cases, and complain."""
    complain("arguments", cases, attack("arguments", cases, folder))


def test_every_argument_is_tried():
    assert sum(map(len, PARTS.values())) >= 1500
    assert all(place.cases() for place in places())


def test_some_arguments(tmp_path):
    cases = PARTS["DeepRegressor"]
    end_well(cases[:: len(cases) // FEW], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_arguments(part, tmp_path):
    end_well(PARTS[part], tmp_path)


@pytest.mark.slow
def test_what_broke_once(tmp_path):
    end_well([Case("None", code) for code in ONCE], tmp_path)
