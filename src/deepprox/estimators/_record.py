"""What a fit found, as a small readable record."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from deepprox.report.table import Table
from deepprox.solve import Solution


@dataclass(frozen=True)
class FitRecord:
    """Objective, certificate, status and costs of a fit: ``estimator.solution_``.

    ``certificate`` is the largest entry of the prox-gradient fixed-point residual: zero at a stationary
    point. ``primal`` and ``dual`` are the residuals of the split phase, zero once it was joined.
    ``strict`` says whether the Hessian on the live weights is positive definite, None where none was
    formed. ``starts`` holds the objective of every start. ``n_held`` pre-activations count as exactly at a
    kink of their link, where the certificate takes a slope between those of the two sides; ``held_within``
    is how far from it they are at most: rounding, as a rule.
    """

    objective: float
    loss: float
    penalty: float
    certificate: float
    primal: float
    dual: float
    status: str
    message: str
    n_iter: int
    n_nonzero: tuple[int, ...]
    n_held: int
    strict: bool | None
    starts: tuple[float, ...]
    seconds: dict[str, float]
    held_within: float = 0.0

    @classmethod
    def of(cls, solution: Solution) -> "FitRecord":
        """The record of a solution, without its weights and its history."""
        facts = {field.name: getattr(solution, field.name) for field in fields(cls)}
        facts["starts"] = tuple(float(value) for value in np.atleast_1d(facts["starts"]))
        return cls(**facts)

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def keys(self) -> list[str]:
        """Names of the facts: ``dict(record)`` works."""
        return [field.name for field in fields(self)]

    def __str__(self) -> str:
        rows = [(name, _said(self[name])) for name in self.keys()]
        return Table(rows, title="Solution").text()


def _said(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):
        return ", ".join(_said(one) for one in value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {seconds:.3f}" for name, seconds in value.items())
    return str(value)
