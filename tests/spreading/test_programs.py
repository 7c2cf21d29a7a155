"""The law of spreading: every field of what a program returns is the same on one device and on three."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

DRAWN = "deepprox.batches.chunk"  # in single precision


@pytest.fixture(scope="module")
def found():
    """What the script finds of every program of the package, in a process with three devices."""
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=3"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, str(Path(__file__).with_name("every_program.py"))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_program_has_a_case(found):
    assert len(found) >= 6 and DRAWN in found
    assert not [name for name, cases in found.items() if not cases], "add a case to every_program.py"


def test_every_field_of_every_program_is_the_same_on_three_devices(found):
    apart = [
        f"{name} returns {field} {there}"
        for name, cases in found.items()
        for fields in cases
        for field, there in fields.items()
        if not isinstance(there, float) or there > (1e-5 if name == DRAWN else 1e-11)
    ]
    assert not apart
    assert all(fields for cases in found.values() for fields in cases)
