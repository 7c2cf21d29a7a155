"""A saved model is the model to the last bit, and a file is data: nothing in it runs."""

import copy
import dataclasses
import io
import json
import os
import tracemalloc
import zipfile
from pathlib import Path

import jax
import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.datasets import load_iris
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline

import deepprox
from deepprox import DeepClassifier, DeepRegressor, saving
from deepprox.activities import ActivityGroup, ActivityL1
from deepprox.links import LpNorm
from deepprox.loading import CLASSES, check
from deepprox.penalties import L1, Penalty, SparseGroup
from deepprox.problem import Network
from deepprox.selection import DeepRegressorCV, DeepRegressorIC
from deepprox.struct import replace, struct
from deepprox.tables import Columns
from fits import changed
from rows import GROUP_LINKS, LINKS, LOSSES, PENALTIES

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def flowers():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return X, np.array(["setosa", "<script>", "käfer \U0001f33c"], object)[y]


@pytest.fixture(scope="module")
def classifier(flowers):
    return DeepClassifier((5,), link="sigmoid", alpha=0.01, random_state=0).fit(*flowers)


@pytest.fixture
def wordy(classifier):
    """The classifier with words that hold numbers, arrays, groups and texts, as parameters and as fitted."""
    penalties = SparseGroup(0.01, by=(0, 1, 1, 0)), L1(np.arange(15.0).reshape(3, 5))
    model = copy.copy(classifier).set_params(
        link=LpNorm(p=3.0),
        activity=ActivityL1(0.01, on="z"),
        penalty=penalties,
        dtype=np.float32,
        random_state=np.int64(3),
    )
    fitted = jax.tree.map(lambda leaf: np.asarray(leaf, float), penalties)
    blocks = [replace(block, penalty=one) for block, one in zip(model.fitted_.network.blocks, fitted)]
    return changed(model, network=Network(tuple(blocks)))


@pytest.fixture
def saved(classifier, tmp_path):
    path = tmp_path / "model.deepprox"
    classifier.save(path)
    return path


def again(model, path):
    model.save(path)
    return deepprox.load(path)


def test_a_classifier_comes_back_to_the_last_bit(classifier, flowers, tmp_path):
    X, _ = flowers
    loaded = again(classifier, tmp_path / "m.deepprox")
    assert type(loaded) is DeepClassifier and loaded.get_params() == classifier.get_params()
    np.testing.assert_array_equal(loaded.predict_proba(X), classifier.predict_proba(X))
    np.testing.assert_array_equal(loaded.predict(X), classifier.predict(X))
    for here, there in zip(loaded.coefs_, classifier.coefs_):
        np.testing.assert_array_equal(here, there, strict=True)
    assert str(loaded.summary()) == str(classifier.summary())
    pd.testing.assert_frame_equal(loaded.history_, classifier.history_, check_exact=True)
    assert dict(loaded.solution_) == dict(classifier.solution_)
    assert dict(loaded.criteria()) == dict(classifier.criteria())
    assert vars(loaded).keys() == classifier.__getstate__().keys() - {"_sklearn_version"}


def test_words_arrays_and_types_come_back(wordy, flowers, tmp_path):
    loaded = again(wordy, tmp_path / "m.deepprox")
    np.testing.assert_array_equal(loaded.predict_proba(flowers[0]), wordy.predict_proba(flowers[0]))
    assert loaded.link == wordy.link and loaded.activity == wordy.activity
    assert loaded.penalty[0] == wordy.penalty[0] == loaded.fitted_.network.blocks[0].penalty
    np.testing.assert_array_equal(loaded.penalty[1].alpha, wordy.penalty[1].alpha, strict=True)
    assert type(loaded.random_state) is np.int64 and loaded.dtype == np.float32
    assert str(loaded.summary()) == str(wordy.summary())


def test_estimators_that_chose_their_strength_come_back(flowers, tmp_path):
    X, y = flowers[0].to_numpy()[:, :3], flowers[0].to_numpy()[:, 3]
    chosen = DeepRegressorIC((), alphas=[0.01, 0.1], criterion="aic").fit(X, y)
    folds = DeepRegressorCV((), alphas=[0.01, 0.1], cv=3).fit(X, y)
    for model in (chosen, folds):
        loaded = again(model, tmp_path / "m.deepprox")
        assert type(loaded) is type(model) and loaded.alpha_ == model.alpha_
        assert loaded.get_params() == model.get_params()
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X), strict=True)
        assert str(loaded.summary()) == str(model.summary())
    with pytest.raises(TypeError, match=r"cv is KFold.* joblib"):
        folds.set_params(cv=KFold(3)).save(tmp_path / "m.deepprox")


@pytest.mark.parametrize(
    ("name", "fact"),
    [
        ("estimators_", 3),
        ("estimators_", []),
        ("estimators_", [DeepRegressor(alpha=1e-2)]),
        ("best_estimator_", None),
        ("held_out_", None),
        ("oof_score_", "good"),
        ("loss_path_", [1.0]),
        ("rows", np.array([99])),
        ("fold", np.array([3])),
        ("weight", np.array(["x"])),
        ("truth", np.zeros((1, 2))),
        ("predicted", np.zeros(1)),
    ],
)
def test_networks_of_folds_that_do_not_fit_are_refused(name, fact, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2))
    model = DeepRegressorCV((), alphas=[0.1], cv=[([*range(1, 12)], [0])], rule="min").fit(X, X[:, 0])
    if name.endswith("_"):
        vars(model)[name] = fact
    else:
        model.held_out_ = dataclasses.replace(model.held_out_, **{name: fact})
    monkeypatch.setattr(DeepRegressorCV, "summary", lambda self: None)  # which would not get so far
    model.save(tmp_path / "m.deepprox")
    with pytest.raises(ValueError, match="folds"):
        deepprox.load(tmp_path / "m.deepprox")


def test_runs_generators_and_routing_are_no_facts(classifier, tmp_path):
    model = copy.copy(classifier).set_params(
        checkpoint=tmp_path / "run", resume=True, random_state=np.random.RandomState(0)
    )
    with config_context(enable_metadata_routing=True):
        model.set_fit_request(sample_weight=True)
    loaded = again(model, tmp_path / "m.deepprox")
    assert loaded.checkpoint is None and loaded.resume is False and loaded.random_state is None
    assert str(tmp_path) not in zipfile.ZipFile(tmp_path / "m.deepprox").read("model.json").decode()
    assert model.resume is True and not {*vars(loaded)} - {*vars(classifier)}


def test_a_file_does_not_choose_where_a_later_fit_writes(classifier, tmp_path, monkeypatch):
    model = copy.copy(classifier).set_params(checkpoint=str(tmp_path / "theirs"), resume=True)
    with monkeypatch.context() as patched:
        patched.setattr("deepprox.saving.tree.OF_A_RUN", {})  # as their author might
        model.save(tmp_path / "m.deepprox")
    assert b"theirs" in zipfile.ZipFile(tmp_path / "m.deepprox").read("model.json")
    loaded = deepprox.load(tmp_path / "m.deepprox")
    assert loaded.checkpoint is None and loaded.resume is False


def test_a_loaded_model_fits_on(classifier, flowers, tmp_path):
    loaded = again(classifier, tmp_path / "m.deepprox").set_params(warm_start=True)
    assert loaded.fit(*flowers).objective_ == pytest.approx(classifier.objective_, abs=1e-8)


def test_joblib_as_usual(classifier, flowers, tmp_path):
    joblib.dump(classifier, tmp_path / "m.joblib")
    loaded = joblib.load(tmp_path / "m.joblib")
    np.testing.assert_array_equal(loaded.predict_proba(flowers[0]), classifier.predict_proba(flowers[0]))


@pytest.mark.parametrize(
    "word",
    [
        *(row.link for row in LINKS + GROUP_LINKS),
        *(row.loss for row in LOSSES),
        *(row.penalty for row in PENALTIES),
        ActivityGroup(0.5),
    ],
    ids=str,
)
def test_every_word_of_the_vocabulary_comes_back(word):
    arrays = []
    text = json.dumps(saving.encode(word, arrays), allow_nan=False)
    loaded = saving.decode(json.loads(text), arrays, CLASSES, check)
    assert type(loaded) is type(word)
    fresh = []
    assert json.dumps(saving.encode(loaded, fresh)) == text
    assert all(np.array_equal(a, b) for a, b in zip(arrays, fresh, strict=True))


def test_equal_models_make_equal_files(classifier, tmp_path):
    for name in ("a", "b"):
        classifier.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_numpy_opens_the_file_too(saved, classifier):
    with np.load(saved, allow_pickle=False) as arrays:
        assert any(
            np.array_equal(arrays[name], classifier.fitted_.W[0]) for name in arrays if name != "model.json"
        )


def test_columns_and_network_load_as_a_pipeline(classifier, flowers, tmp_path):
    columns = Columns().fit(flowers[0])
    saving.save(classifier, tmp_path / "m", columns, {"command": "fit"})
    loaded = deepprox.load(tmp_path / "m")
    assert isinstance(loaded, Pipeline)
    np.testing.assert_array_equal(loaded.predict(flowers[0]), classifier.predict(flowers[0]))
    saving.save(classifier, tmp_path / "m", Columns().fit(flowers[0].iloc[:, :3]))
    with pytest.raises(ValueError, match="columns are not those"):
        deepprox.load(tmp_path / "m")


def test_unfitted_and_foreign_models_are_refused(classifier, tmp_path):
    @struct
    class Mine(Penalty):
        """``0``."""

        def value(self, w):
            return 0 * w.sum()

        def prox(self, v, step):
            return v

    with pytest.raises(ValueError, match="not fitted"):
        DeepRegressor(alpha=1e-2).save(tmp_path / "m")
    with pytest.raises(TypeError, match=r"penalty is .*Mine.* joblib"):
        copy.copy(classifier).set_params(penalty=Mine()).save(tmp_path / "m")
    assert not [*tmp_path.iterdir()]


def test_a_failed_write_keeps_the_old_file(classifier, saved, monkeypatch):
    before = saved.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("the disk is full")))
    with pytest.raises(OSError, match="disk is full"):
        classifier.save(saved)
    assert saved.read_bytes() == before and [*saved.parent.iterdir()] == [saved]


@pytest.mark.parametrize(
    ("name", "objective", "first"),
    [
        ("fit", 0.5770947864320652, [[0.9293086096759431, 0.0678109824841906, 0.0028804078398663373]]),
        ("stream", 0.070424009877951, [[1.4268047588246473, 0.249427491409155]]),
    ],
)
def test_files_of_the_first_format_are_read(flowers, tmp_path, name, objective, first):
    X = flowers[0][:1] if name == "fit" else flowers[0].to_numpy()[:1, :3]
    old = deepprox.load(Path(__file__).with_name(f"format_1_{name}.deepprox"))
    for model in (old, again(old, tmp_path / "m")):
        found = model.predict_proba(X) if name == "fit" else model.predict(X)
        np.testing.assert_allclose(found, first, rtol=1e-12)
        assert model.objective_ == objective and len(model.history_) == model.n_iter_
        assert str(model.summary()) == str(old.summary())
    if name == "stream":
        assert old.partial_fit(X, first).fitted_.n == 151


def test_a_strange_file_of_the_first_format_is_refused(tmp_path):
    whole = Path(__file__).with_name("format_1_fit.deepprox").read_bytes()
    for name in ("_network", "_scale", "_n", "solution_", "live_", "_history", "classes_"):
        for change in (without(name), fitted(**{name: "x"})):
            refused(rewritten(_with(tmp_path / "m", whole), change), "cannot be loaded")


# Damaged and hostile files


def rewritten(path, change=None, drop=(), add=None):
    """The file with its document changed, entries dropped, or entries added."""
    with zipfile.ZipFile(path) as packed:
        entries = {name: packed.read(name) for name in packed.namelist() if name not in drop}
    if change is not None:
        document = json.loads(entries["model.json"].decode())
        change(document)
        entries["model.json"] = json.dumps(document).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in (entries | (add or {})).items():
            packed.writestr(name, data)
    return path


def refused(path, reason):
    with pytest.raises(ValueError, match=reason) as caught:
        deepprox.load(path)
    said = str(caught.value)
    assert said.startswith(f"{path} cannot be loaded: ") and said.endswith(".") and "\n" not in said


def record(document):
    """The fields of the record of a fit."""
    return document["model"]["fitted"]["fitted_"]["fields"]


def solution(document):
    """The fields of its solution."""
    return record(document)["solution"]["fields"]


def npy(array):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=True)
    return file.getvalue()


def fitted(**facts):
    return lambda document: document["model"]["fitted"].update(facts)


def recorded(**facts):
    return lambda document: record(document).update(facts)


def without(*names):
    return lambda document: [document["model"]["fitted"].pop(name) for name in names]


def parameter(**values):
    return lambda document: document["model"]["parameters"].update(values)


HOSTILE = {
    "newer": (lambda d: d.update(format=3), r"format 3 .* load it with the version that wrote it"),
    "no format": (lambda d: d.pop("format"), "does not say its format"),
    "no model": (lambda d: d.pop("model"), "holds no fitted network"),
    "no notes": (lambda d: d.pop("notes"), "notes are missing"),
    "unfitted": (lambda d: d["model"].update(fitted={}), "holds no fitted network"),
    "other class": (lambda d: d["model"].update(estimator="os.system"), "names 'os.system'"),
    "other word": (
        parameter(penalty={"record": "penalties.Evil", "fields": {}}),
        "names 'penalties.Evil', which is no class",
    ),
    "abstract word": (parameter(link={"record": "links.Link", "fields": {}}), "no class"),
    "strange field": (parameter(link={"record": "links.ReLU", "fields": {"x": 1}}), "fields of ReLU"),
    "strange parameter": (parameter(evil=1), "fields of DeepClassifier"),
    "a method": (fitted(predict="x"), "'predict' is not a fitted attribute"),
    "a class": (fitted(__class__="x"), "'__class__' is not a fitted attribute"),
    "unknown form": (recorded(n={"eval": "1"}), "unknown form"),
    "no such array": (recorded(n={"array": 999}), "array 999 is missing"),
    "negative array": (recorded(n={"array": -1}), "array -1 is missing"),
    "missing fact": (without("fitted_"), "holds no fitted network"),
    "missing scale": (lambda d: record(d).pop("scale"), "fields of Fitted do not fit"),
    "strange record": (fitted(fitted_=3), "holds no fitted network"),
    "text for a number": (recorded(n="many"), "n is not of the type int"),
    "data": (recorded(data={"tuple": []}), "it holds data"),
    "no solution": (recorded(solution=1), "the solution is not one"),
    "a memory": (lambda d: solution(d).update(memory=[1.0]), "solution_.memory is of the wrong type"),
    "more inputs": (fitted(n_features_in_=7), "do not have the shapes"),
    "more classes": (
        fitted(classes_={"objects": ["a", "b"], "shape": [2]}),
        "classes_ does not fit the outputs",
    ),
    "names": (fitted(feature_names_in_={"objects": [1, 2, 3, 4], "shape": [4]}), "more than texts"),
    "objects": (fitted(feature_names_in_={"objects": ["a"], "shape": [4]}), "do not fit the shape"),
    "no statistics": (recorded(statistics=None), "statistics are missing"),
    "strange statistics": (recorded(statistics={"dict": {"df": {"dict": {"x": 1}}}}), "DegreesOfFreedom"),
    "strange notes": (lambda d: d.update(notes={"target": 7}), "notes are not texts"),
    "no path": (lambda d: d.update(notes={"path": [1]}), "path is not one"),
    "uneven path": (
        lambda d: d.update(
            notes={"path": {"frame": {"alpha": [1], "n_nonzero": []}, "norms": {}, "picks": {}}}
        ),
        "columns of its path",
    ),
    "text in a record": (
        lambda d: solution(d).update(certificate="small"),
        "solution_.certificate is of the wrong type",
    ),
    "text in a word": (
        lambda d: record(d)["network"]["fields"]["blocks"]["tuple"][0]["fields"]["penalty"]["fields"].update(
            alpha="strong"
        ),
        "holds no numbers",
    ),
    "no history": (lambda d: solution(d).update(history=[]), "history is missing"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_document_is_refused(saved, case):
    change, reason = HOSTILE[case]
    refused(rewritten(saved, change), reason)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'{"format": NaN}', "NaN is not JSON"),
        (b'{"format": 1e999}', "not a finite number"),
        (b'{"format": 1, "format": 1}', "given twice"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"format": ' + b"1" * 5000 + b"}", "cannot be read"),
        (b"\xff\xfe", "cannot be read"),
        (b"[]", "does not say its format"),
        (b'{"format": 1, "model": ' + b"[" * 60 + b"]" * 60 + b"}", "nested more than 40"),
    ],
)
def test_hostile_json_is_refused(saved, text, reason):
    refused(rewritten(saved, add={"model.json": text}), reason)


def test_arrays_are_checked(saved):
    document = json.loads(zipfile.ZipFile(saved).read("model.json").decode())
    weights = f"arrays/{solution(document)['W']['tuple'][0]['array']}.npy"
    whole = saved.read_bytes()

    def swapped(data, reason):
        saved.write_bytes(whole)
        refused(rewritten(saved, add={weights: data}), reason)

    swapped(npy(np.zeros((9, 9))), "do not have the shapes")
    swapped(npy(np.full((5, 5), np.nan)), "not finite")
    swapped(npy(np.zeros((5, 5), int)), "do not have the shapes")
    swapped(npy(np.array([print, None], object)), "an array of object")
    swapped(b"\x93NUMPY\x07\x00", "version")
    swapped(npy(np.zeros((5, 5)))[:-8], "does not fit its entry")
    huge = npy(np.zeros((5, 5))).replace(b"(5, 5)", b"(10**9, 5)"[:6])
    swapped(huge, "cannot be read")
    swapped(npy(np.zeros(1)).replace(b"(1,), }", b"(99999999999,), }"), "cannot be read")


def test_entries_are_checked(saved):
    whole = saved.read_bytes()
    refused(rewritten(saved, drop=["arrays/0.npy"]), "numbered arrays")
    saved.write_bytes(whole)
    refused(rewritten(saved, add={"../../evil.py": b"print()"}), "numbered arrays")
    saved.write_bytes(whole)
    refused(rewritten(saved, drop=["model.json"]), "numbered arrays")


def test_a_bomb_is_not_unpacked(saved):
    bomb = rewritten(saved, add={"model.json": b" " * 50_000_000})
    assert bomb.stat().st_size < 100_000
    with pytest.raises(ValueError, match=r"unpacks to 5.* and the limit is 1000000"):
        deepprox.load(bomb, max_bytes=1_000_000)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'{"format": 1, "x": [' + b"[]," * 2_000_000 + b"[]]}", "model.json has 6000007 parts"),
        (b" " * 70_000_000, "model.json unpacks to 70000000 bytes"),
        (b'{"format": 1, "x": ' + b"[" * 200 + b"]" * 200 + b"}", "nested too deep"),
        (b'{"x": "' + b'\\"' * 2_000_000, "Unterminated string"),
    ],
    ids=["lists", "spaces", "levels", "quotes"],
)
def test_a_document_is_measured_before_it_is_parsed(saved, text, reason):
    bomb = rewritten(saved, add={"model.json": text})
    tracemalloc.start()
    try:
        refused(bomb, reason)
        assert tracemalloc.get_traced_memory()[1] < 8 * len(text) + 2**20
    finally:
        tracemalloc.stop()


def test_a_wide_model_with_its_path_is_within_the_limits(saved, classifier, tmp_path):
    names = [f"gene {number:05d}" for number in range(10_000)]
    record = {"frame": {"alpha": [1.0] * 50}, "norms": dict.fromkeys(names, [0.125] * 50), "picks": {}}
    document = {"format": saving.FORMAT, "notes": {"path": record}}
    archive = saving.Archive(document, [np.zeros(6 * len(names))])
    saving.write(tmp_path / "wide", archive)
    assert saving.read(tmp_path / "wide", 100_000_000).document == document
    with pytest.raises(ValueError, match="raise max_bytes if you trust it"):
        saving.read(tmp_path / "wide", 40_000_000)


def test_half_of_a_character_is_no_text(classifier, saved, tmp_path):
    for fact, where in (("classes_", "classes_"), ("feature_names_in_", "feature_names_in_")):
        for kind in (object, str):
            model = copy.copy(classifier)
            names = ["a", "b", "\ud800", "d"][: len(getattr(model, fact))]
            setattr(model, fact, np.array(names, kind))
            with pytest.raises(ValueError, match=f"{where} has half of a character in .*: rename it"):
                model.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()
    whole = saved.read_bytes()
    for array in (np.array(["a", "b", "\ud800"]), np.frombuffer(b"\xff\xff\xff\x00" * 3, "<U1")):
        refused(
            rewritten(saved, add={"arrays/0.npy": npy(array)}),
            "an array cannot be read .it has half of a character",
        )
        saved.write_bytes(whole)
    names = {"objects": ["a", "b", "c", "\ud800"], "shape": [4]}
    refused(rewritten(saved, fitted(feature_names_in_=names)), "surrogates not allowed")


def test_a_directory_that_leads_elsewhere_is_refused(saved):
    data = bytearray(saved.read_bytes())
    end = data.rindex(b"PK\x05\x06")
    place = int.from_bytes(data[end + 16 : end + 20], "little")
    data[end + 16 : end + 20] = (place + 10**6).to_bytes(4, "little")
    refused(_with(saved, bytes(data)), "cannot be loaded")
    directory = data[:end].rindex(b"PK\x01\x02")
    data[end + 16 : end + 20] = place.to_bytes(4, "little")
    data[directory + 42 : directory + 46] = (2**31).to_bytes(4, "little")
    refused(_with(saved, bytes(data)), "cannot be loaded")


@pytest.mark.skipif(os.name != "posix", reason="devices of POSIX")
def test_a_path_that_cannot_be_opened_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        deepprox.load(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        deepprox.load(tmp_path)
    (tmp_path / "zero").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe")
    for name, kind in (("zero", "a device"), ("pipe", "a pipe")):
        with pytest.raises(OSError, match=f"{name} is {kind}, and not a regular file that can be read"):
            deepprox.load(tmp_path / name)


@pytest.mark.skipif(os.name != "posix", reason="devices of POSIX")
def test_saving_replaces_regular_files_only_and_keeps_links(classifier, saved, tmp_path):
    (tmp_path / "null").symlink_to(os.devnull)
    with pytest.raises(OSError, match="null is a device, and only a regular file can be replaced"):
        classifier.save(tmp_path / "null")
    (tmp_path / "link").symlink_to(saved)
    saved.write_bytes(b"old")
    classifier.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and deepprox.load(saved).n_nonzero_ == classifier.n_nonzero_


def test_damage_anywhere_is_noticed(saved, classifier):
    whole, rng = saved.read_bytes(), np.random.default_rng(0)
    refused(_with(saved, b""), "damaged or not a deepprox file")
    refused(_with(saved, b"not a zip"), "damaged or not a deepprox file")
    for length in rng.integers(1, len(whole), 40):
        refused(_with(saved, whole[:length]), "cannot be loaded")
    noticed = 0
    for place in rng.integers(0, len(whole), 150):
        data = bytearray(whole)
        data[place] ^= 1 << int(rng.integers(8))
        _with(saved, bytes(data))
        try:
            loaded = deepprox.load(saved)
        except ValueError as error:
            assert str(error).startswith(f"{saved} cannot be loaded: ")
            noticed += 1
        else:  # a time stamp or the like: the model is unharmed
            assert all(np.array_equal(a, b) for a, b in zip(loaded.fitted_.W, classifier.fitted_.W))
    assert noticed > 100


def _with(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path
