"""Strict arrays: float64, a few fixed examples (``--hypothesis-profile=many`` explores), no display."""

from itertools import count
from pathlib import Path

import jax
import matplotlib
import pytest
from hypothesis import settings

jax.config.update("jax_enable_x64", True)
matplotlib.use("Agg")
settings.register_profile("few", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("many", max_examples=500, deadline=None)
settings.load_profile("few")

MAPS = Path("/proc/self/maps")
TESTS = count(1)


@pytest.fixture(autouse=True)
def few_programs():
    """Forget compiled programs before they fill the memory map: past 65530 entries XLA ends the process."""
    yield
    if next(TESTS) % 10 == 0 and MAPS.exists() and MAPS.read_bytes().count(b"\n") > 45_000:
        jax.clear_caches()
