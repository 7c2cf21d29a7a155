"""What a fit found: one record, from the solver to ``estimator.solution_``."""

from typing import Any, ClassVar

import numpy as np

from deepprox.joining.live import Live
from deepprox.joining.quasi_newton import Memory
from deepprox.network import Network
from deepprox.splitting.state import State
from deepprox.struct import replace, struct


@struct
class Solution:
    """What was found and how sure it is: objective, certificate, status and costs of a fit.

    ``certificate`` is the largest entry of the prox-gradient fixed-point residual: zero at a stationary
    point. ``primal`` and ``dual`` are the residuals of the split phase, zero once it was joined. ``strict``
    says whether the Hessian on the live weights is positive definite, None where none was formed. ``starts``
    holds the objective of every start. ``n_held`` pre-activations count as exactly at a kink of their link,
    where the certificate takes a slope between those of the two sides; ``held_within`` is how far from it
    they are at most: rounding, as a rule.

    ``dict(solution)`` has these facts. Beside them are the weights ``W``, what is ``live`` and the
    ``history``, and what a fit nearby may begin with: ``memory`` is what was learnt of the curvature, or,
    without a join phase, the variables of the split phase; ``lasts`` how many times as strong the penalty may
    be until a unit no longer pays. ``held`` is the network with the zeros that were held so that there are
    not too many weights; the certificate is that of the others.
    """

    FACTS: ClassVar = (
        "objective",
        "loss",
        "penalty",
        "certificate",
        "primal",
        "dual",
        "status",
        "message",
        "n_iter",
        "n_nonzero",
        "n_held",
        "strict",
        "starts",
        "seconds",
        "held_within",
    )

    W: tuple[np.ndarray, ...]
    live: Live
    objective: float
    loss: float
    penalty: float
    certificate: float
    primal: float
    dual: float
    status: str
    message: str
    n_iter: int
    n_held: int
    strict: bool | None
    starts: tuple[float, ...]
    history: list[dict[str, Any]]
    seconds: dict[str, float]
    held_within: float = 0.0
    memory: Memory | State | None = None
    lasts: float | None = None
    held: Network | None = None

    @property
    def n_nonzero(self) -> tuple[int, ...]:
        """Non-zero weights of every block, biases included."""
        return tuple(int(np.count_nonzero(w)) for w in self.W)

    @property
    def done(self) -> bool:
        """Whether the fit reached its tolerance."""
        return self.status in ("converged", "settled")

    def alone(self) -> "Solution":
        """Without what only a fit nearby needs."""
        return replace(self, memory=None, lasts=None, held=None)

    def keys(self) -> tuple[str, ...]:
        """Names of the facts: ``dict(solution)`` works."""
        return self.FACTS

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def __repr__(self) -> str:
        return f"Solution({', '.join(f'{name}={self[name]!r}' for name in self.FACTS)})"

    def __str__(self) -> str:
        width = max(map(len, self.FACTS))
        return "\n".join(["Solution", *(f"{name:<{width}}   {_said(self[name])}" for name in self.FACTS)])


def _said(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):
        return ", ".join(_said(one) for one in value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {seconds:.3f}" for name, seconds in value.items())
    return str(value)
