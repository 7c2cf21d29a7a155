"""Losses: negative log-likelihoods of a response given the last pre-activation ``eta``.

The contract is :class:`Loss`. A new loss is one class with ``value`` and ``mean``; a closed
``prox`` is an acceleration of the default and is tested against a generic minimiser.

A loss is a sum over observations. Cox's partial likelihood is not: the risk set of an event couples
the observations, its prox has no observation of its own, and so it has no place here. Grouped
survival times fit as :class:`Poisson` (piecewise exponential) or :class:`Logistic` (discrete hazards).
"""

from deepprox.losses.classes import Hinge, Logistic, Softmax, SquaredHinge
from deepprox.losses.contract import Loss
from deepprox.losses.positive import Gamma, NegativeBinomial, Poisson
from deepprox.losses.real import Huber, Quantile, Squared

__all__ = [
    "Gamma",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "NegativeBinomial",
    "Poisson",
    "Quantile",
    "Softmax",
    "Squared",
    "SquaredHinge",
]
