"""Observations over four devices: the same sweeps, the same fit, and one message where one is enough."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from sklearn.base import clone

from deepprox import DeepClassifier, DeepRegressor, DeepRegressorCV, load, path
from deepprox.activities import ActivityGroup
from deepprox.spreading import Devices, same


def on_devices(*which):
    """What the script finds in a process with four devices."""
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, str(Path(__file__).with_name("on_devices.py")), *which]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def found():
    return on_devices("one", "lines", "devices", "ties", "drawn")  # programs are kept from the first fit on


def test_sweeps_are_the_same(found):
    assert found["devices"]["count"] == 4
    chunk = found["devices"]["chunk"]
    assert chunk["weights_apart"] <= 1e-12 and chunk["rows_apart"] <= 1e-11


def test_values_that_tie_to_rounding_are_told_apart_alike(found):
    assert len(found["ties"]) == 17 and max(found["ties"]) <= 1e-12


def test_steps_on_rows_drawn_everywhere_are_those_on_their_mean(found):
    assert found["drawn"] <= 1e-5  # in single precision


def test_a_sweep_sends_one_message_for_all_blocks_and_one_for_the_rest(found):
    chunk = found["devices"]["chunk"]
    assert not chunk["others"]
    assert chunk["sums"] == len(chunk["sums_in_loop"]) == 2
    lengths = sorted(int(shape.split("[")[1].split("]")[0]) for shape in chunk["sums_in_loop"])
    assert lengths[0] <= 10 and lengths[1] == chunk["length"]  # sum_l (d_l^2 + m_l d_l)


def assert_same_fit(one, other):
    assert one[2] == other[2] == "converged" and max(one[1], other[1]) <= 1e-6
    np.testing.assert_allclose(other[0], one[0], rtol=1e-9)
    assert one[3] == other[3]
    np.testing.assert_allclose(other[4], one[4], rtol=1e-6)


def test_a_fit_without_hidden_layers_is_the_same(found):
    assert_same_fit(*found["one"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sigmoid", "relu"])
def test_fits_of_two_starts_and_through_kinks_are_the_same(name):
    assert_same_fit(*on_devices(name)[name])


def assert_same_selections(one, other):
    assert one["parts"] == [1, 1, 1] and other["parts"] == [2, 2, 2]
    for name in ("objectives", "df", "chosen", "losses"):
        np.testing.assert_allclose(other[name], one[name], rtol=1e-5)


def test_paths_folds_and_criteria_are_the_same_over_two_devices(found):
    assert_same_selections(*found["lines"])


@pytest.mark.slow
def test_paths_folds_and_criteria_of_networks_are_the_same_over_two_devices():
    assert_same_selections(*on_devices("curves")["curves"])


X = np.random.default_rng(0).normal(size=(20, 2))
Y = X[:, 0] > 0


def test_one_device_is_a_fit_like_any_other():
    fits = [DeepRegressor((), alpha=0.1, devices=d).fit(X, X[:, 0]) for d in (None, 1, "all", jax.devices())]
    # the last bit depends on where the arrays lie in memory
    np.testing.assert_allclose([fit.objective_ for fit in fits], fits[0].objective_, rtol=1e-12)


@pytest.mark.parametrize("devices", ["some", 0, len(jax.devices()) + 1, True, [1], {}])
def test_strange_devices_are_refused(devices):
    with pytest.raises(ValueError, match="devices must be None, 'all', a number of devices from 1 to"):
        DeepClassifier((3,), devices=devices, alpha=1e-2).fit(X, Y)


def test_an_activity_that_ties_observations_is_refused():
    with pytest.raises(ValueError, match="ActivityGroup ties observations together"):
        DeepClassifier((3,), activity=ActivityGroup(0.1), devices="all", alpha=1e-2).fit(X, Y)


def test_what_is_here_gathers_to_itself():
    table = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(same.gather(table), table[None])
    assert same.collect({"a": [1, "b"]}) == [{"a": [1, "b"]}] and same.first(3) == 3


def test_paths_and_folds_take_devices():
    model = DeepRegressor((), devices=1, alpha=1e-2)
    plain, spread = (path(m, X, X[:, 0], 5) for m in (DeepRegressor((), alpha=1e-2), model))
    np.testing.assert_allclose(
        [found.objective for found in spread.solutions],
        [found.objective for found in plain.solutions],
        rtol=1e-9,
    )
    chosen = DeepRegressorCV((), alphas=5, cv=2, devices="all").fit(X, X[:, 0])
    assert chosen.path_._problem.base.problem.allsum == Devices(jax.devices())


def test_models_over_devices_clone_pickle_and_save(tmp_path):
    model = clone(DeepClassifier((), devices="all", alpha=1e-2)).fit(X, Y)
    copy = pickle.loads(pickle.dumps(model))
    model.save(tmp_path / "model")
    for other in (copy, load(tmp_path / "model")):
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    assert model.degrees_of_freedom().defined  # its data are here
