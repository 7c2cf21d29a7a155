"""The command line does what the library does, tells every choice, and ends with the right code."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import deepprox
from deepprox import DeepClassifier
from deepprox.applications import iris
from deepprox.cli.training import task_of
from deepprox.loading import read
from deepprox.tables import read_table

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def flowers():
    data = load_iris(as_frame=True)
    return data.data.assign(species=data.target.map(dict(enumerate(data.target_names))))


@pytest.fixture(scope="module")
def people():
    """Numbers, a factor that matters, one that does not, true and false, and holes."""
    rng = np.random.default_rng(0)
    n = 150
    table = pd.DataFrame(
        {
            "age": rng.normal(45, 12, n).round(1),
            "colour": rng.choice(["red", "green", "blue"], n),
            "town": rng.choice(list("abcdef"), n),
            "smokes": rng.random(n) < 0.3,
            HOSTILE: rng.normal(size=n),
        }
    )
    signal = table["age"] / 12 + 2 * (table["colour"] == "red") + table[HOSTILE]
    return table.assign(cost=(signal + 0.3 * rng.normal(size=n)).round(4))


@pytest.fixture(scope="module")
def folder(tmp_path_factory, flowers, people):
    place = tmp_path_factory.mktemp("cli")
    flowers.to_csv(place / "flowers.csv", index=False)
    people.to_csv(place / "people.csv", index=False)
    people.assign(age=people["age"].where(people.index % 50 > 0)).to_csv(place / "holes.csv", index=False)
    return place


@pytest.fixture
def said(run):
    """The JSON that a command prints, and nothing else on standard output."""
    return lambda *words, **options: json.loads(run(*words, "--json", **options).stdout)


FLOWERS = ("fit", "flowers.csv", "--target", "species", "--hidden", "none", "--alpha", "0.01")
PEOPLE = ("fit", "people.csv", "--target", "cost", "--hidden", "none", "--alpha", "0.05")


def test_fit_is_the_estimator(said, flowers):
    record = said(*FLOWERS, "--out", "flowers.deepprox")
    X = flowers.drop(columns="species")
    ours = DeepClassifier((), alpha=0.01, random_state=0).fit(X, flowers["species"])
    assert record["objective"] == ours.objective_ and record["converged"] is True
    assert record["selected"] == [*X.columns[ours.selected_features_]]
    assert record["criteria"]["bic"] == ours.criteria().bic
    loaded = deepprox.load("flowers.deepprox")
    np.testing.assert_array_equal(loaded.predict_proba(flowers), ours.predict_proba(X))
    table = said("predict", "flowers.deepprox", "flowers.csv", "--probabilities")
    assert table["prediction"] == ours.predict(X).tolist()
    np.testing.assert_array_equal(table["p(setosa)"], ours.predict_proba(X)[:, 0])


def test_outputs_without_a_bias(run):
    run(*FLOWERS, "--no-intercept", "--out", "through-zero.deepprox")
    assert not read("through-zero.deepprox").network.intercepts_[0].any()


def test_the_summary_is_printed_and_remarks_go_to_standard_error(run):
    result = run(*FLOWERS)
    assert result.stdout.startswith("DeepClassifier: 4 - 3 softmax")
    assert result.stdout.endswith("Saved in model.deepprox.\n")
    assert "Taken as classification: the response is text" in result.stderr
    assert run(*FLOWERS, "--quiet").stderr == ""


def test_a_factor_enters_or_leaves_as_a_whole(said, run, people):
    stays = {}
    for alpha in ("0.002", "0.2"):
        said(*PEOPLE[:-1], alpha, "--out", "people.deepprox")
        saved = read("people.deepprox")
        groups = np.array(saved.columns.groups_)
        alive = saved.network.selected_features_
        stays[alpha] = {k: {*alive[groups == k]} for k in range(groups.max() + 1)}
        assert all(len(lives) == 1 for lives in stays[alpha].values())
    names = saved.columns.names_
    left = {name for name, lives in zip(names, stays["0.2"].values()) if lives == {True}}
    assert left == {"age", "colour", HOSTILE}
    assert sum(lives == {True} for lives in stays["0.002"].values()) > 3
    predicted = run("predict", "people.deepprox", "people.csv").stdout.split()[1:]
    np.testing.assert_array_equal(
        np.array(predicted, float), deepprox.load("people.deepprox").predict(people)
    )


def test_a_network_with_hidden_units(said):
    record = said(*FLOWERS[:4], "--hidden", "5", "--link", "sigmoid", "--alpha", "0.01")
    assert record["class"] == "DeepClassifier" and record["task"] == "classification"
    assert record["n_weights"] == 5 * (1 + 4) + 3 * (1 + 5)


def test_the_record_says_where_a_model_came_from(said, folder):
    said(*PEOPLE)
    notes = read("model.deepprox").notes
    assert notes["command"].startswith("deepprox fit people.csv --target cost")
    assert (notes["rows"], notes["rows_used"], notes["target"]) == (150, 150, "cost")
    assert len(notes["sha256"]) == 64


def test_a_loss_tells_the_task():
    asked = {"task": "auto", "loss": "poisson"}
    assert task_of(asked) == "regression" and task_of(asked | {"loss": "hinge"}) == "classification"
    assert task_of(asked | {"loss": None}) == "auto"
    assert task_of(asked | {"task": "classification"}) == "classification"


def test_standard_input(run, said, flowers):
    text = flowers.to_csv(index=False)
    record = said("fit", "-", *FLOWERS[2:], stdin=text)
    assert record["data"] == "-"
    few = "\n".join(text.splitlines()[:4])
    assert said("predict", "model.deepprox", "-", stdin=few)["prediction"] == ["setosa"] * 3


def test_missing_values_are_a_choice(run, said):
    holes = ("fit", "holes.csv", *PEOPLE[2:])
    result = run(*holes, code=2)
    assert result.stderr.splitlines()[-1].startswith(
        "deepprox: Column 'age' has 3 missing values, the first in"
    )
    dropped = run(*holes, "--missing", "drop")
    assert "3 of 150 rows are left out: a value is missing." in dropped.stderr
    filled = run(*holes, "--missing", "mean", "--out", "filled.deepprox")
    assert "Missing values are filled in 'age'." in filled.stderr
    assert len(run("predict", "filled.deepprox", "holes.csv").stdout.split()) == 151
    assert "has 3 missing values" in run("predict", "model.deepprox", "holes.csv", code=2).stderr
    blank = run("predict", "model.deepprox", "holes.csv", "--missing", "blank", "--json")
    assert "3 of 150 predictions are empty" in blank.stderr
    values = json.loads(blank.stdout)["prediction"]
    assert [i for i, value in enumerate(values) if value is None] == [0, 50, 100]


def test_a_missing_response_is_a_choice_too(run, folder, people):
    people.assign(cost=people["cost"].where(people.index > 0)).to_csv("no_cost.csv", index=False)
    words = ("fit", "no_cost.csv", *PEOPLE[2:])
    assert "The response 'cost' is missing in row 1: fill it, or" in run(*words, code=2).stderr
    assert "1 of 150 rows are left out: 'cost' is missing" in run(*words, "--missing", "mean").stderr


def test_unknown_levels_are_a_choice(run, people):
    run(*PEOPLE)
    people.head(3).assign(colour="violet").to_csv("new.csv", index=False)
    told = run("predict", "model.deepprox", "new.csv", code=2).stderr
    assert "the level 'violet', which the fit did not see" in told
    run("predict", "model.deepprox", "new.csv", "--unknown", "ignore")
    people.drop(columns=["age", "town"]).to_csv("new.csv", index=False)
    assert "lacks the columns 'age', 'town'" in run("predict", "model.deepprox", "new.csv", code=2).stderr


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "feather"])
def test_predictions_go_to_files(run, ending):
    run(*FLOWERS)
    run("predict", "model.deepprox", "flowers.csv", "--out", f"out.{ending}")
    found = read_table(f"out.{ending}")
    assert found.shape == (150, 1) and found["prediction"][0] == "setosa"
    told = run("predict", "model.deepprox", "flowers.csv", "-o", "x.xlsx", code=2).stderr
    assert "unknown kind '.xlsx'" in told


def test_a_model_of_python_predicts_tables(run, said, flowers):
    X, y = flowers.drop(columns="species"), flowers["species"]
    model = DeepClassifier((), alpha=0.01, random_state=0).fit(X, y)
    model.save("named.deepprox")
    assert said("predict", "named.deepprox", "flowers.csv")["prediction"] == model.predict(X).tolist()
    assert "no column 'sepal length (cm)'" in run("predict", "named.deepprox", "people.csv", code=2).stderr
    DeepClassifier((), alpha=0.01, random_state=0).fit(X.to_numpy(), y).save("plain.deepprox")
    told = run("predict", "plain.deepprox", "flowers.csv", code=2).stderr
    assert "reads 4 columns, but the table has 5" in told


def test_not_converged_is_code_3_and_written(run, folder):
    result = run(*FLOWERS, "--max-iter", "1", "--out", "poor.deepprox", code=3)
    assert "Not converged: the fit stopped at max_iter" in result.stderr
    assert (folder / "poor.deepprox").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fit", "flowers.csv", "--target", "specie"), "no column 'specie': it has 'sepal length (cm)'"),
        (("fit", "absent.csv", "--target", "x"), "absent.csv: No such file or directory."),
        (("fit", "flowers.xls", "--target", "x"), "unknown kind '.xls'"),
        ((*FLOWERS, "--drop", "petals"), "no column 'petals'"),
        ((*FLOWERS, "--penalty", "l7"), "Unknown penalty 'l7': known names are"),
        ((*FLOWERS, "--link", "rely", "--hidden", "3"), "Unknown link 'rely'"),
        ((*FLOWERS, "--task", "regression"), "is text, as in 'setosa', which no regression can take"),
        ((*FLOWERS, "--loss", "poisson"), "is text, as in 'setosa', which no regression can take"),
        ((*FLOWERS, "--loss", "poison"), "Unknown loss 'poison'"),
        ((*FLOWERS, "--starts", "0"), "n_init must be a whole number of at least 1"),
        ((*FLOWERS, "--alpha", "-1"), "alpha must be 'auto' or a finite number of at least 0"),
        ((*FLOWERS, "--out", "nowhere/m.deepprox"), "There is no folder"),
        ((*FLOWERS[:-1], "auto", "--out", "nowhere/m.deepprox"), "There is no folder"),
        (("report", "flowers.csv", "flowers.csv"), "flowers.csv cannot be loaded: it is damaged or not"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_code_2(run, said, words):
    stderr = run(*words, code=2).stderr
    told = stderr.splitlines()[-1]
    assert told.startswith("deepprox: ") and said in told and "Traceback" not in stderr
    record = json.loads(run(*words, "--json", code=2).stdout)
    assert said in record["error"]


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "flowers.csv"),
        (*FLOWERS, "--hidden", "a,b"),
        (*FLOWERS, "--alpha", "little"),
        (*FLOWERS, "--task", "clustering"),
        ("unfit",),
    ],
)
def test_wrong_usage_is_code_2(run, words):
    assert run(*words, code=2).stderr.startswith("Usage: ")


def test_the_same_seed_makes_the_same_file(run, folder):
    for name in ("a", "b"):
        run(*PEOPLE, "--seed", "7", "--out", "same.deepprox")
        (folder / "same.deepprox").rename(folder / name)
    one, other = (deepprox.load(folder / name)["network"] for name in "ab")
    assert all(np.array_equal(a, b) for a, b in zip(one.fitted_.W, other.fitted_.W))


def test_a_path_and_its_choice(run, said, people):
    words = (*PEOPLE[1:6], "--alphas", "8")
    record = said("path", *words, "--out", "path.csv")
    frame = pd.DataFrame(record["frame"])
    np.testing.assert_allclose(frame["alpha"], read_table("path.csv")["alpha"])
    assert (frame["alpha"].diff()[1:] > 0).all() and frame["n_inputs"].iloc[-1] == 0
    assert record["picks"]["bic"]["index"] == frame["bic"].argmin()
    assert "What each rule chooses" in run("path", *words).stdout

    fit = said("fit", *words, "--out", "chosen.deepprox")
    saved = read("chosen.deepprox")
    assert fit["criteria"]["bic"] == pytest.approx(frame["bic"].min())
    assert saved.notes["rule"] == "bic" and saved.notes["path"]["picks"] == record["picks"]
    # one strength for all: that of a number column, and sqrt(k) times it for a factor of k levels
    alpha, sizes = record["picks"]["bic"]["alpha"], np.bincount(saved.columns.groups_)
    np.testing.assert_allclose(saved.network.penalty[0].alpha, alpha * np.sqrt(sizes))
    said("fit", *words[:5], "--alpha", alpha, "--out", "given.deepprox")
    assert read("given.deepprox").network.objective_ == pytest.approx(saved.network.objective_, rel=1e-6)
    run("report", "chosen.deepprox", "people.csv", "--out", "chosen.html")
    assert "This model is the choice of bic" in Path("chosen.html").read_text()


def test_a_loss_without_likelihood_chooses_by_folds(run):
    words = (*PEOPLE[1:6], "--alphas", "4", "--loss", "huber", "--json")
    result = run("select", *words)
    assert "1se chooses alpha" in result.stderr and json.loads(result.stdout)["converged"]
    record = read("model.deepprox").notes["path"]
    losses, picks = np.array(record["frame"]["fold_loss"]), record["picks"]
    assert (
        picks.keys() == {"1se", "min"} and picks["min"]["index"] == losses.argmin() <= picks["1se"]["index"]
    )
    told = run("select", *words, "--criterion", "bic", code=2).stderr
    assert "bic needs a likelihood" in told


def test_architectures_side_by_side(run, said, flowers):
    words = ("compare", *FLOWERS[1:4], "--hidden", "none", "--hidden", "5", "--link", "sigmoid")
    record = said(*words, "--alpha", "0.01")
    frame = pd.DataFrame(record["frame"])
    assert [*frame["model"]] == ["none", "5 sigmoid"] and record["best"] == frame["model"][
        frame["bic"].argmin()
    ]
    X, y = flowers.drop(columns="species"), flowers["species"]
    one = DeepClassifier((), alpha=0.01, random_state=0).fit(X, y)
    assert frame["bic"][0] == pytest.approx(one.criteria().bic)
    result = run(*words, "--alpha", "0.01", "--by", "aic", "--out", "best.deepprox")
    best = read("best.deepprox").network
    assert best.criteria().aic == pytest.approx(frame["aic"].min())
    assert "Best by aic" in result.stderr and result.stdout.endswith("Saved in best.deepprox.\n")


def test_report(run, people, folder):
    run(*PEOPLE)
    assert "has 3 missing values" in run("report", "model.deepprox", "holes.csv", code=2).stderr
    told = run("report", "model.deepprox", "holes.csv", "--missing", "drop").stderr
    assert "3 of 150 rows are left out: a value is missing." in told
    run("report", "model.deepprox", "people.csv", "--out", "people.html", "--title", "Costs & <ages>")
    text = (folder / "people.html").read_text()
    assert "<h1>Costs &amp; &lt;ages&gt;</h1>" in text
    assert "deepprox fit people.csv --target cost" in text and "<script" not in text.lower()


def test_help_needs_neither_jax_nor_pandas():
    program = (
        "import sys\nfrom deepprox.cli import main\n"
        "for words in (['--help'], ['fit', '--help'], ['--version']):\n"
        "    main(words, standalone_mode=False)\n"
        "print({*sys.modules} & {'jax', 'numpy', 'pandas', 'sklearn', 'matplotlib', 'rich'})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("set()\n") and "Fit a network" in done.stdout


def test_iris_passes_its_options_on(run, monkeypatch):
    given = {}

    def study(splits, quick, out, seed, console):
        given.update(splits=splits, quick=quick, out=out, seed=seed)
        console.print("tables")
        verdict = iris.study.Verdict("a claim", "met", "evidence")
        return iris.Result(None, [], [verdict], ["a note"], [out / "tables.md"])

    monkeypatch.setattr(iris, "run", study)
    assert run("iris", "--splits", "1", "--quick", "--out", "there", "--seed", "4").stdout == "tables\n"
    assert given == {"splits": 1, "quick": True, "out": Path("there"), "seed": 4}
    result = run("iris", "--json")
    record = json.loads(result.stdout)
    assert record["verdicts"][0]["outcome"] == "met" and record["files"] == ["build/iris/tables.md"]
    assert result.stderr == "tables\n"
