"""Fits to data that are larger than memory."""

from deepprox.streaming.fitting import fit_stream

__all__ = ["fit_stream"]
