"""Every example runs, and shows what it promises."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"

PROMISES = {
    "classification": lambda accuracy: accuracy > 0.95,
    "poisson": lambda deviance: deviance["network"] < 0.25 * deviance["linear"],
    "feature_selection": lambda found: found[0] < 15 and found[1] > 0.95,
    "architecture": lambda found: (
        found[0].weights("bic")[0] < 0.01 and found[1]["average"] > found[1]["linear"] + 0.05
    ),
    "diabetes": lambda found: (
        found["ours"] > max(found["RandomForestRegressor"], found["LassoCV"] - 0.03)
        and found["covered"] > 0.8
    ),
    "own_penalty": lambda used: {"s3", "s5"} <= {*used[0]} and not {"s3", "s5"} & {*used[1]},
}
SLOW = {"architecture", "diabetes", "poisson", "feature_selection"}  # each compiles networks of its own
ELSEWHERE = {"iris"}  # tested with the application


def test_every_example_has_a_promise():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*PROMISES, *ELSEWHERE}
    for name in PROMISES:  # what it imports is there
        assert callable(runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"])


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in PROMISES]
)
def test_examples(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found = runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]()
    assert PROMISES[name](found)
    assert capsys.readouterr().out.count("\n") > 1
