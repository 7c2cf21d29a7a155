"""Strict arrays: float64, a few fixed examples (``--hypothesis-profile=many`` explores), no display."""

import jax
import matplotlib
from hypothesis import settings

jax.config.update("jax_enable_x64", True)
matplotlib.use("Agg")
settings.register_profile("few", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("many", max_examples=500, deadline=None)
settings.load_profile("few")
