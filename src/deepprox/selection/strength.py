"""One number for the strength of all penalties that vary along a path."""

import copy
from dataclasses import is_dataclass
from typing import Any, NamedTuple

import numpy as np

from deepprox.estimators._resolve import by_name, resolve_network
from deepprox.network import Network
from deepprox.struct import replace


class Strength(NamedTuple):
    """``alpha`` times ``units[l]`` is the strength of block ``l``; None where it stays as it is.

    Penalties given by name follow ``alpha``, as in an estimator, and objects beside them stay. Where all
    are objects they all follow, in their proportions, and ``alpha`` is the largest of them.
    """

    units: tuple[Any, ...]
    named: bool

    @classmethod
    def of(cls, estimator: Any, n_in: int, n_out: int, dtype: Any) -> "Strength":
        """What varies in an estimator's penalties."""
        given = estimator.penalty
        params = estimator.get_params(deep=False)
        network = resolve_network(params | {"alpha": 1.0} if by_name(given) else params, n_in, n_out, dtype)
        each = given if isinstance(given, tuple | list) else [given] * len(network.blocks)
        named = any(by_name(one) for one in each)
        strengths = [getattr(block.penalty, "alpha", None) for block in network.blocks]
        units = [
            np.asarray(alpha) if alpha is not None and by_name(one) == named else None
            for alpha, one in zip(strengths, each, strict=True)
        ]
        largest = max((float(np.max(unit)) for unit in units if unit is not None), default=0.0)
        if largest == 0.0:
            raise ValueError(
                f"A path needs a penalty whose strength can vary, but penalty={given!r} has none: give one "
                f"by name, such as 'l1', or an object with a positive alpha."
            )
        return cls(tuple(None if unit is None else unit / largest for unit in units), named)

    def apply(self, network: Network, alpha: float) -> Network:
        """The network with this strength."""
        blocks = [
            block if unit is None else replace(block, penalty=_stronger(block.penalty, alpha * unit))
            for block, unit in zip(network.blocks, self.units, strict=True)
        ]
        return Network(tuple(blocks))

    def params(self, estimator: Any, network: Network, alpha: float) -> dict[str, Any]:
        """The estimator's parameters that stand for this strength."""
        if self.named:
            return {"alpha": float(alpha)}
        penalties = tuple(block.penalty for block in network.blocks)
        return {"penalty": penalties if isinstance(estimator.penalty, tuple | list) else penalties[0]}


def _stronger(penalty: Any, alpha: Any) -> Any:
    alpha = np.asarray(alpha, penalty.alpha.dtype)
    if is_dataclass(penalty):
        return replace(penalty, alpha=alpha)
    other = copy.copy(penalty)  # a user's plain class
    other.alpha = alpha
    return other
