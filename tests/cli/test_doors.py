"""What comes from outside is told in sentences, all at once, and does no harm where it is shown."""

import json
import os
import signal
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deepprox.cli import main
from deepprox.cli.predicting import csv_of, inert
from deepprox.loading import read
from deepprox.tables import read_table

COUNTRIES = ["NA", "DE", "FR"]
LINEAR = ("--hidden", "none", "--alpha", "0.02")
posix = pytest.mark.skipif(os.name != "posix", reason="devices, links and signals of POSIX")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("doors")
    rng = np.random.default_rng(0)
    n = 60
    table = pd.DataFrame({"x": rng.normal(size=n).round(3), "z": rng.normal(size=n).round(3)})
    table["country"] = rng.choice(COUNTRIES, n)
    table["label"] = np.where(table["x"] > 0, '=HYPERLINK("http://x")', np.where(table["z"] > 0, "-1", "@me"))
    table.to_csv(place / "t.csv", index=False)
    table.assign(
        code=rng.permutation(n) + 100,
        day=pd.date_range("2026-01-01", periods=n).astype(str),
        hole=table["x"].where(table["x"] > 0),
    ).to_csv(place / "bad.csv", index=False)
    return place


@pytest.fixture
def model(run):
    run("fit", "t.csv", "-t", "label", *LINEAR, "--na-values", "", "--out", "m.deepprox")
    return "m.deepprox"


def test_all_refusals_of_a_table_come_at_once(run):
    words = ("fit", "bad.csv", "--target", "country", "--task", "regression", *LINEAR)
    lines = run(*words, code=2).stderr.splitlines()
    told = lines.index("deepprox: The table is refused for 4 reasons:")
    starts = ["The response 'country' is missing", "Column 'code' has 60", "Column 'day'", "Column 'hole'"]
    assert [line[: len(start)] for line, start in zip(lines[told + 1 :], starts)] == starts
    assert json.loads(run(*words, "--json", code=2).stdout)["error"].count("\n") == len(starts)


def test_texts_that_are_missing_are_a_choice_that_the_model_keeps(run, folder):
    fit = ("fit", "t.csv", "-t", "country", "--hidden", "none", "--alpha", "0.02", "--drop", "label")
    assert "The response 'country' is missing in row" in run(*fit, code=2).stderr
    run(*fit, "--na-values", "", "--out", "c.deepprox")
    assert [*read("c.deepprox").network.classes_] == sorted(COUNTRIES)
    run("report", "c.deepprox", "t.csv", "--out", "c.html")  # as the fit read it
    told = run("report", "c.deepprox", "t.csv", "--out", "c.html", "--na-values", "NA").stderr
    assert "rows are left out: 'country' is missing" in told
    table = read_table("t.csv", na_values=["DE", "?"])
    assert table["country"].isna().sum() == (read_table("t.csv", na_values=[])["country"] == "DE").sum() > 0
    Path("holes.csv").write_text("a,b\n1,\n?,x\n")
    assert read_table("holes.csv", na_values=["?"]).isna().to_numpy().tolist() == [
        [False, True],
        [True, False],
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--target", "label", "--drop", "label"),
            "--drop leaves out 'label', which --target wants predicted",
        ),
        (("--target", "label", "--factor", "label"), "--factor is for inputs, and 'label' is none"),
        (("--target", "label", "--drop", "x", "--number", "x"), "--number is for inputs, and 'x' is none"),
        (("--target", "nope", "--drop", "nada"), "no column 'nope' and no 'nada': it has 'x'"),
    ],
)
def test_options_that_contradict_are_a_sentence(run, words, said):
    assert said in run("fit", "t.csv", *words, code=2).stderr


@posix
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fit", "http://localhost/t.csv", "-t", "y"), "t.csv is an address, and a table is a file of this"),
        (("fit", "s3://bucket/t.parquet", "-t", "y"), "is an address"),
        (("fit", "zero.csv", "-t", "y"), "zero.csv is a device, and not a regular file that can be read"),
        (("fit", "pipe.csv", "-t", "y"), "pipe.csv is a pipe"),
        (("predict", "/dev/zero", "t.csv"), "/dev/zero is a device"),
        (
            ("fit", "t.csv", "-t", "label", "--out", "null"),
            "null is a device, and only a regular file can be",
        ),
        (("path", "t.csv", "-t", "label", "--plot", "null"), "null is a device, and only"),
        (("path", "t.csv", "-t", "label", "--out", "x.txt"), "unknown kind '.txt'"),
        (
            ("fit", "t.csv", "-t", "label", "--out", "."),
            ". is a folder, and only a regular file can be replaced",
        ),
        (("fit", "torn.csv.gz", "-t", "label"), "torn.csv.gz is damaged: it cannot be unpacked"),
    ],
)
def test_what_is_no_file_is_a_sentence(run, folder, words, said):
    for name, place in (("zero.csv", "/dev/zero"), ("null", os.devnull)):
        if not Path(name).is_symlink():
            Path(name).symlink_to(place)
    if not Path("pipe.csv").exists():
        os.mkfifo("pipe.csv")
    pd.read_csv("t.csv").to_csv("torn.csv.gz", index=False)
    Path("torn.csv.gz").write_bytes(Path("torn.csv.gz").read_bytes()[:200])
    assert said in run(*words, code=2).stderr.splitlines()[-1]
    assert Path("null").is_char_device()


@posix
def test_a_folder_of_the_name_of_a_scheme_is_a_folder(run, folder):
    (folder / "http:").mkdir(exist_ok=True)
    (folder / "http:" / "t.csv").write_bytes((folder / "t.csv").read_bytes())
    assert read_table("http://t.csv").shape == (60, 4)


def test_labels_are_no_formulas(run, model):
    rows = run("predict", model, "t.csv").stdout.splitlines()
    assert {*rows[1:]} == {'"\'=HYPERLINK(""http://x"")"', "'@me", "-1"}
    run("predict", model, "t.csv", "--out", "p.tsv")
    assert {*read_table("p.tsv")["prediction"]} == {'\'=HYPERLINK("http://x")', "'@me", "-1"}
    run("predict", model, "t.csv", "--out", "p.parquet")
    assert "@me" in {*read_table("p.parquet")["prediction"]}
    assert "@me" in json.loads(run("predict", model, "t.csv", "--json").stdout)["prediction"]


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1"]
)
def test_what_a_spreadsheet_runs_is_quoted(text):
    assert inert(text) == f"'{text}"


@pytest.mark.parametrize("value", ["-1.5", "+3", "-1e-3", "a=b", "", "a-b", -1.5, None, True])
def test_what_it_does_not_run_stays(value):
    assert inert(value) is value


def test_numbers_of_a_table_stay_as_they_are():
    frame = pd.DataFrame({"a": [-1.5, 2.0], "b": [-1, 3], "c": [True, False], "d": ["-x", None]})
    assert csv_of(frame) == "a,b,c,d\n-1.5,-1,True,'-x\n2.0,3,False,\n"


def test_a_model_keeps_no_folder_of_its_author(run, folder, tmp_path):
    (tmp_path / "t.csv").write_bytes((folder / "t.csv").read_bytes())
    out, kept = tmp_path / "m.deepprox", tmp_path / "run"
    words = ("fit", tmp_path / "t.csv", "-t", "label", *LINEAR, "--na-values", "", f"--out={out}")
    run(*words, "--checkpoint", kept)
    saved = read(out)
    assert saved.notes["command"].split()[2] == "t.csv"
    assert saved.notes["command"].endswith("--out=m.deepprox --checkpoint run")
    with zipfile.ZipFile(out) as packed:
        assert str(tmp_path) not in packed.read("model.json").decode()


def test_names_move_no_cursor(run, folder):
    table = pd.read_csv("t.csv", na_values=[], keep_default_na=False)
    table.rename(columns={"x": "x\x1b[2J\u202e"}).to_csv("names.csv", index=False)
    words = ("fit", "names.csv", "-t", "label", "--na-values", "", *LINEAR)
    shown = run(*words)
    assert "x\\u001b[2J\\u202e" in shown.stdout
    record = run(*words, "--json")
    assert "x\x1b[2J\u202e" in json.loads(record.stdout)["selected"]
    told = run("fit", "names.csv", "-t", "\x1b[2J", code=2)
    for text in (shown.output, record.output, told.output):
        assert not {*text} & {"\x1b", "\u202e"}


@posix
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_full_standard_output_is_a_sentence(model, monkeypatch, capsys, more):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(SystemExit) as ended:
            main(["predict", model, "t.csv", *more])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "deepprox: standard output: No space left on device.\n"


@posix
@pytest.mark.parametrize("device", ["/dev/zero", os.devnull])
def test_a_device_as_standard_input_is_a_sentence(monkeypatch, device):
    with open(device) as endless:
        monkeypatch.setattr(sys, "stdin", endless)
        with pytest.raises(ValueError, match="Standard input is a device and not a table"):
            read_table("-")
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ValueError, match="There is no standard input"):
        read_table("-")


def test_signals_end_with_their_codes(run, monkeypatch):
    def stop(error):
        def fit(*_):
            error.add_note("It can go on.")
            raise error

        monkeypatch.setattr("deepprox.cli.fitting.fit_and_save", fit)

    words = ("fit", "t.csv", "-t", "label", "--alpha", "1")
    for error, code in ((KeyboardInterrupt(), 130), (SystemExit(128 + signal.SIGTERM), 143)):
        stop(error)
        assert run(*words, code=code).stderr == "deepprox: Interrupted. It can go on.\n"
    stop(MemoryError("Unable to allocate 1 TiB"))
    told = run(*words, code=2).stderr
    assert told == "deepprox: There is not enough memory. Unable to allocate 1 TiB. It can go on.\n"
