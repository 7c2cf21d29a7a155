"""The fitted network, and the attributes of an estimator that are read from it."""

from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np

from deepprox.blocks import Block
from deepprox.design import Design
from deepprox.estimators._observations import padded
from deepprox.estimators._standardize import Scale, to_responses
from deepprox.losses import Loss
from deepprox.network import Network
from deepprox.problem import Problem
from deepprox.runtime import bucket
from deepprox.solution import Solution
from deepprox.solve import in_dtype


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted network, ``estimator.fitted_``: what predictions, tables, statistics, draws and files read.

    All of it is NumPy: a pickle needs no device. ``scale`` is that of the inputs, ``n`` how many observations
    counted, ``one_column`` whether the response was a vector. ``statistics`` are those that were asked for:
    they outlive ``data``, the rows of the problem, which no copy carries. ``stream`` are the sums that
    ``partial_fit`` goes on with.
    """

    network: Network
    loss: Loss
    scale: Scale
    solution: Solution
    n: int
    one_column: bool
    statistics: dict[str, dict[str, Any]] = field(default_factory=dict)
    stream: tuple[tuple[Any, ...], ...] | None = None
    data: tuple[Any, ...] | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls, problem: Problem, scale: Scale, found: Solution, n: int, one_column: bool, stream: Any = None
    ) -> "Fitted":
        """What stays of a solved problem; its data, unless they are only a part of all rows."""
        network, loss = jax.tree.map(np.asarray, (problem.network, problem.loss))
        every_row = problem.allsum.world == 1 and problem.allsum.in_memory and stream is None
        X = problem.X if isinstance(problem.X, Design) else np.asarray(problem.X)
        data = (X, np.asarray(problem.y), np.asarray(problem.weight)) if every_row else None
        return cls(network, loss, scale, found.alone(), n, one_column, stream=stream, data=data)

    @property
    def W(self) -> tuple[np.ndarray, ...]:
        """Weights of every block for standardised inputs, biases in column 0."""
        return self.solution.W

    @property
    def n_weights(self) -> int:
        """How many weights the network has."""
        return self.network.n_weights(self.W)

    def problem(self) -> Problem:
        """The problem that was solved, in double precision."""
        if self.data is None:
            raise ValueError(
                "This needs the data of the fit, which a copied or stored estimator, or one that several "
                "processes fitted together, does not carry: ask for it before you store the estimator, or "
                "fit again."
            )
        X, y, weight = (np.asarray(a) for a in self.data)
        room = bucket(len(X))
        X, y, weight = padded(X, room), padded(y, room), np.pad(weight, (0, room - len(X)))
        problem: Problem = in_dtype(Problem(self.network, self.loss, X, y, weight), np.float64)
        return problem

    def without_data(self) -> "Fitted":
        """What a copy carries."""
        return replace(self, data=None)


class AttributesMixin:
    """The fitted attributes that scikit-learn's users look for; the classes list them."""

    fitted_: Fitted

    @property
    def solution_(self) -> Solution:
        """Objective, certificate, status and costs."""
        return self.fitted_.solution

    @property
    def coefs_(self) -> list[np.ndarray]:
        """Weights of every block for inputs and responses as they were given."""
        return [Block.slopes(w).T for w in self._as_given()]

    @property
    def intercepts_(self) -> list[np.ndarray]:
        """Biases of every block for inputs and responses as they were given."""
        return [Block.biases(w) for w in self._as_given()]

    @property
    def coefs_standardized_(self) -> list[np.ndarray]:
        """Weights of every block for standardised inputs."""
        return [Block.slopes(w).T for w in self.fitted_.W]

    @property
    def intercepts_standardized_(self) -> list[np.ndarray]:
        """Biases of every block for standardised inputs."""
        return [Block.biases(w) for w in self.fitted_.W]

    @property
    def n_layers_(self) -> int:
        """Layers, inputs and outputs included."""
        return len(self.fitted_.W) + 1

    @property
    def n_outputs_(self) -> int:
        """Outputs of the network."""
        return self.fitted_.network.blocks[-1].size

    @property
    def n_iter_(self) -> int:
        """Iterations of all phases."""
        return self.solution_.n_iter

    @property
    def loss_(self) -> float:
        """The mean loss."""
        return self.solution_.loss

    @property
    def objective_(self) -> float:
        """The mean loss plus penalties."""
        return self.solution_.objective

    @property
    def n_nonzero_(self) -> int:
        """Weights that are not exactly zero, biases included."""
        return sum(self.solution_.n_nonzero)

    @property
    def live_(self) -> tuple[np.ndarray, ...]:
        """The inputs, then the units of every hidden layer, that reach the output and vary."""
        return self.solution_.live.reads

    @property
    def selected_features_(self) -> np.ndarray:
        """The inputs that reach the output."""
        return self.solution_.live.inputs

    @property
    def feature_importances_(self) -> np.ndarray:
        """Euclidean norm of the first weights of every input on the scale of the fit; 0 when dead."""
        first = self.fitted_.network.blocks[0]
        return np.where(self.selected_features_, first.norms(self.fitted_.W[0]), 0.0)

    def _as_given(self) -> list[np.ndarray]:
        """Weights of every block for inputs and responses as they were given."""
        fitted, W = self.fitted_, [*self.fitted_.W]
        W[0] = fitted.scale.to_inputs(W[0])
        W[-1] = to_responses(fitted.loss, W[-1])
        return [w.astype(fitted.W[0].dtype) for w in W]
