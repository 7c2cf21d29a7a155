"""Penalties on the weights of a block: a value and its prox, nothing more.

The contract is :class:`Penalty`. The strength ``alpha`` is a leaf, so a path over it compiles
once: a number, or for a penalty that adds up weights an array that broadcasts to them (see
:func:`adaptive`). ``prox`` is the global minimiser for every step, non-convex penalties included.
LassoNet's hierarchy ties the first weights to a linear skip layer, which a block does not have: it
is not here.
"""

from deepprox.penalties.constraints import Box, Mask, NonNegative
from deepprox.penalties.contract import Number, Penalty, soft_threshold
from deepprox.penalties.convex import L1, L2, ElasticNet, Zero, adaptive
from deepprox.penalties.groups import GroupL2, MaxNorm, Nuclear, SparseGroup
from deepprox.penalties.nonconvex import L0, MCP, SCAD, Bridge, CappedL1, HorseshoeLike, LogSum, StudentT

__all__ = [
    "L0",
    "L1",
    "L2",
    "MCP",
    "SCAD",
    "Box",
    "Bridge",
    "CappedL1",
    "ElasticNet",
    "GroupL2",
    "HorseshoeLike",
    "LogSum",
    "Mask",
    "MaxNorm",
    "NonNegative",
    "Nuclear",
    "Number",
    "Penalty",
    "SparseGroup",
    "StudentT",
    "Zero",
    "adaptive",
    "soft_threshold",
]
