"""What a user's type checker sees of the front."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import deepprox
from deepprox.estimators import _fitted, _resolve, _typing
from deepprox.selection.paths import RULES
from deepprox.statistics.names import CRITERIA

HERE = Path(__file__).parent


def test_a_users_file_is_typed(tmp_path):
    pytest.importorskip("mypy")
    strict = ["--strict", "--config-file=", "--follow-imports=silent", f"--cache-dir={tmp_path}"]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *strict, str(HERE / "users_file.py")],
        env=os.environ | {"MYPYPATH": str(HERE.parents[1] / "src")},
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(
    ("names", "known"),
    [
        (_typing.LinkName, _resolve.LINKS),
        (_typing.PenaltyName, _resolve.PENALTIES),
        (_typing.ClassifierLossName, _resolve.CLASSIFICATION_LOSSES),
        (_typing.RegressorLossName, _resolve.REGRESSION_LOSSES),
        (_typing.CriterionName, CRITERIA),
        (_typing.RuleName, RULES),
    ],
    ids=["links", "penalties", "losses of classes", "losses of numbers", "criteria", "rules"],
)
def test_names_that_types_allow_are_those_that_are_known(names, known):
    assert {*get_args(names)} == {*known}


@pytest.mark.parametrize("name", ["DeepClassifier", "DeepRegressorIC", "DeepClassifierCV"])
def test_every_parameter_and_attribute_is_described(name):
    cls = getattr(deepprox, name)
    said = inspect.getdoc(cls)
    described = [line.split(" : ")[0] for line in said.splitlines() if re.match(r"\S.* : ", line)]
    names = [*inspect.signature(cls).parameters]
    assert described[: len(names)] == names
    attributes = {one for entry in described[len(names) :] for one in entry.split(", ")}
    assert attributes >= {one for one in vars(_fitted.AttributesMixin) if one.endswith("_") and one[0] != "_"}
    assert said.count("\n----------\n") == 2
