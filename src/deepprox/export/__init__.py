"""Fitted networks in the formats of other programs."""

from deepprox.export.onnx_model import to_onnx

__all__ = ["to_onnx"]
