"""Blocks: the maps between two splits, linear in their weights and affine in what they read."""

from deepprox.blocks.contract import Block, Facing
from deepprox.blocks.dense import Dense

__all__ = ["Block", "Dense", "Facing"]
