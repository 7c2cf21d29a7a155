"""Model files that were damaged or forged: refused in a sentence, or a model that works; nothing runs."""

import pytest

from attack.driver import attack, complain
from attack.mutants import BOMBS

MANY, FEW = 2000, 50  # files made of each of two models
LOADED = 0.08  # of them, at least: forgeries that are all refused at the door try nothing behind it


def end_well(cases, folder):
    """Run the cases, and complain."""
    found = attack("models", cases, folder)
    complain("models", cases, found)
    return found


def test_some_forged_models(tmp_path):
    end_well([[name, number] for name in "ab" for number in range(FEW)], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", "ab")
def test_forged_models(name, tmp_path):
    found = end_well([[name, number] for number in range(MANY)], tmp_path)
    assert sum(note["said"] == "loaded" for note in found) > LOADED * MANY


@pytest.mark.slow
def test_small_files_of_much(tmp_path):
    end_well([["bombs", number] for number in range(len(BOMBS))], tmp_path)
