"""A regularisation path: one network for every strength of the penalty, from the full to the null model."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal

import numpy as np

from deepprox.checks import is_number, is_whole, need_name, need_switch, need_verbose, shown
from deepprox.estimators._base import E
from deepprox.estimators._plain import copied, need_plain
from deepprox.estimators._predict import losses_of
from deepprox.estimators._typing import CriterionName, RuleName
from deepprox.estimators.session import Session
from deepprox.memory import need, of_path
from deepprox.runtime import precision
from deepprox.selection.progress import along
from deepprox.selection.walk import Walk, Walked, Way, walk
from deepprox.statistics.names import CRITERIA

if TYPE_CHECKING:
    import pandas as pd

    from deepprox.plotting import RegularizationPathDisplay

DIRECTIONS = ("up", "both")
RULES = (*CRITERIA, "validation", "1se", "loss")
SPACINGS = ("geometric", "inputs")


@dataclass(frozen=True)
class Choice(Generic[E]):
    """One model of a path and the rule that chose it."""

    estimator: E
    alpha: float
    index: int
    rule: RuleName


class Path(Generic[E]):
    """The models of a regularisation path; ``path[i]`` is a fitted estimator.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        Strengths, growing.
    solutions : list of Solution
        What was found at each.
    interrupted : bool
        Whether the walk was interrupted before its end.
    relaxed : bool
        Whether every model has the weakest strength, on the inputs that its own strength left.
    """

    def __init__(
        self,
        problem: Walk,
        walked: Walked,
        data: tuple[Any, ...],
        validation: tuple[Any, ...] | None,
    ) -> None:
        self._problem = problem
        self.alphas, self.solutions, self.interrupted, self.relaxed = walked
        self._data, self._validation = data, validation

    def __len__(self) -> int:
        return len(self.alphas)

    def __iter__(self) -> Iterator[E]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: int) -> E:
        if not -len(self) <= index < len(self):
            raise IndexError(f"This path has {len(self)} models, and no number {index}.")
        return self._models[index % len(self)]

    def __repr__(self) -> str:
        inputs = [int(found.live.inputs.sum()) for found in (self.solutions[0], self.solutions[-1])]
        return (
            f"Path of {len(self)} models: alpha {self.alphas[0]:.3g} to {self.alphas[-1]:.3g}, "
            f"{inputs[0]} to {inputs[1]} inputs" + (" (interrupted)" if self.interrupted else "")
        )

    @cached_property
    def _models(self) -> list[E]:
        return [self._model(i) for i in range(len(self))]

    def _model(self, i: int) -> E:
        model: E = copy.copy(self._problem.model)
        problem, found = self._problem, self.solutions[i]
        relaxed = self.relaxed and found.live.inputs.any()
        alpha = float(self.alphas[0 if relaxed else i])
        with precision(problem.dtype):
            posed = problem.posed(alpha, found.live.inputs if relaxed else None)
            model.set_params(**problem.strength.params(model, posed.problem.network, alpha))
            Session(model).keep(found, posed)
        return model

    @property
    def inputs(self) -> np.ndarray:
        """Which inputs are alive: one row for every strength."""
        return np.array([found.live.inputs for found in self.solutions])

    @property
    def input_norms(self) -> np.ndarray:
        """Euclidean norms of the first-block weights of every input: one row for every strength."""
        return np.array([model.feature_importances_ for model in self])

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs."""
        model = self._problem.model
        given = getattr(model, "feature_names_in_", None)
        return [f"x{j}" for j in range(model.n_features_in_)] if given is None else list(map(str, given))

    @cached_property
    def train_scores(self) -> np.ndarray:
        """The estimator's score of every model on the data of the fit."""
        X, y, sample_weight = self._data
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return np.array([model.score(X, y, **weights) for model in self])

    @cached_property
    def validation_scores(self) -> np.ndarray:
        """The estimator's score of every model on the validation data."""
        X, y = self._need_validation("validation_scores")
        return np.array([model.score(X, y) for model in self])

    @cached_property
    def validation_losses(self) -> np.ndarray:
        """The loss of every model (rows) at every observation of the validation data."""
        X, y = self._need_validation("validation_losses")
        return np.array([losses_of(model, X, y) for model in self])

    def _need_validation(self, name: str) -> tuple[Any, ...]:
        if self._validation is None:
            raise ValueError(f"{name!r} needs validation data: path(..., validation=(X, y)).")
        return self._validation

    @cached_property
    def criteria(self) -> "pd.DataFrame":
        """Degrees of freedom and criteria of every model; an empty DataFrame without a likelihood."""
        import pandas as pd

        names = ("df", *CRITERIA)
        if not self[0].fitted_.loss.likelihood:
            return pd.DataFrame(index=range(len(self)))
        known = [model.criteria() for model in self]
        return pd.DataFrame({name: [getattr(one, name) for one in known] for name in names})

    def frame(self) -> "pd.DataFrame":
        """One row for every strength, as a pandas DataFrame."""
        import pandas as pd

        found = self.solutions
        columns: dict[str, Any] = {
            "alpha": self.alphas,
            "objective": [one.objective for one in found],
            "loss": [one.loss for one in found],
            "certificate": [one.certificate for one in found],
            "status": [one.status for one in found],
            "n_inputs": self.inputs.sum(axis=1),
            "n_nonzero": [sum(one.n_nonzero) for one in found],
        }
        for l in range(len(found[0].W)):
            columns[f"n_nonzero_{l + 1}"] = [one.n_nonzero[l] for one in found]
        columns["train_score"] = self.train_scores
        if self._validation is not None:
            columns["validation_score"] = self.validation_scores
            columns["validation_loss"] = self.validation_losses.mean(axis=1)
        return pd.concat([pd.DataFrame(columns), self.criteria], axis=1)

    def select(self, rule: RuleName = "bic", *, max_inputs: int | None = None) -> Choice[E]:
        """The model that a rule chooses.

        Parameters
        ----------
        rule : {"bic", "aic", "aicc", "ebic", "gcv", "validation", "1se", "loss"}, default="bic"
            The least criterion; the least validation loss; the sparsest model whose validation loss is
            within one standard error of the least, which is 0 where there is one observation; or the least
            loss on the data of the fit, which is of use with ``max_inputs``.
        max_inputs : int, default=None
            Choose among the models with at most so many inputs alive. A path may come back to more inputs
            from one strength to the next, so that the first of them need not be the best.

        Returns
        -------
        choice : Choice
            ``estimator``, ``alpha``, ``index`` and ``rule``.
        """
        need_name("rule", rule, RULES)
        allowed = self._with_inputs(max_inputs)
        if rule in (*CRITERIA,):
            index = _least(self._criterion(rule), allowed, rule)
        elif rule == "loss":
            index = _least(np.array([found.loss for found in self.solutions]), allowed, rule)
        else:
            index = self._by_validation(rule, allowed)
        return Choice(self[index], float(self.alphas[index]), index, rule)

    def _with_inputs(self, most: int | None) -> np.ndarray:
        """Which models have at most so many inputs, and at least one where that is asked for."""
        counts = self.inputs.sum(axis=1)
        if most is None:
            return np.ones(len(self), bool)
        if not is_whole(most):
            raise ValueError(f"max_inputs must be a whole number of at least 1, got {shown(most)}.")
        allowed = (counts <= most) & (counts > 0)
        if not allowed.any():
            fewest = counts[counts > 0].min(initial=self.inputs.shape[1])
            raise ValueError(
                f"No model of this path has 1 to {most} inputs, the sparsest has {fewest}: raise max_inputs, "
                f"or take more strengths or spacing='inputs'."
            )
        return np.asarray(allowed)

    def _criterion(self, rule: str) -> np.ndarray:
        if rule not in self.criteria:
            raise ValueError(
                f"The {rule} needs a likelihood, and {type(self[0].fitted_.loss).__name__.lower()} is none: "
                f"choose by validation, or with cross-validation."
            )
        values: np.ndarray = self.criteria[rule].to_numpy()
        if np.isnan(values).all():
            raise ValueError(
                f"The {rule} is defined at none of the {len(self)} models: {self[0].criteria().message}"
            )
        return values

    def _by_validation(self, rule: str, allowed: np.ndarray) -> int:
        self._need_validation(rule)
        losses = self.validation_losses
        means = losses.mean(axis=1)
        best = _least(means, allowed, rule)
        if rule == "validation":
            return best
        return sparsest_within(losses, best, allowed)

    def plot(self, criterion: CriterionName = "bic") -> "RegularizationPathDisplay":
        """Draw the path: norms of the inputs, non-zeros, criteria and scores against the strength.

        Parameters
        ----------
        criterion : str, default="bic"
            The criterion that is drawn and whose choice is marked, for a loss that is a likelihood.

        Returns
        -------
        display : deepprox.plotting.RegularizationPathDisplay
            The drawing, with its ``figure_`` and ``axes_``.
        """
        from deepprox.plotting import RegularizationPathDisplay

        need_name("criterion", criterion, CRITERIA)
        return RegularizationPathDisplay.from_path(self, criterion=criterion)


def _least(values: np.ndarray, allowed: np.ndarray, rule: str) -> int:
    """The number of the least value that is allowed, and a number."""
    values = np.where(allowed, values, np.nan)
    if np.isnan(values).all():
        raise ValueError(
            f"The {rule} is defined at none of the {len(values)} models: frame() has the status of each."
            if allowed.all()
            else f"The {rule} is defined at no model with so few inputs: raise max_inputs, or take 'loss'."
        )
    return int(np.nanargmin(values))


def sparsest_within(losses: np.ndarray, best: int, allowed: Any = True) -> int:
    """The strongest of the models (rows) whose mean loss is within one standard error of the best one's."""
    means, n = losses.mean(axis=1), losses.shape[1]
    error = losses[best].std(ddof=1) / np.sqrt(n) if n > 1 else 0.0
    return int(np.flatnonzero(allowed & (means <= means[best] + error)).max())


def whole_path(*args: Any, **settings: Any) -> Path[Any]:
    """A path that Ctrl-C ends: no choice is made among some of its models."""
    found = path(*args, **settings)
    if found.interrupted:
        raise KeyboardInterrupt
    return found


def path(
    estimator: E,
    X: Any,
    y: Any,
    alphas: Any = 50,
    *,
    validation: Any = None,
    eps: float = 1e-3,
    spacing: Literal["geometric", "inputs"] = "geometric",
    direction: Literal["up", "both"] = "up",
    relax: bool = False,
    max_iter: int | None = None,
    sample_weight: Any = None,
    verbose: int | None = None,
) -> Path[E]:
    """Fit a network for every strength of its penalty, from the full to the null model, each from the last.

    Parameters
    ----------
    estimator : DeepClassifier or DeepRegressor
        What to fit. Penalties given by name follow the strength, and objects beside them stay; where all
        are objects, all follow in proportion.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Inputs.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Response.
    alphas : int or array-like, default=50
        Strengths, or how many. A number of them is spread geometrically up to the null model, which has no
        input and is found automatically; the path ends there, so there may be a few more or less.
    validation : tuple (X, y), default=None
        Data to score every model on.
    eps : float, default=1e-3
        The weakest strength as a share of that which would empty a lasso, where ``alphas`` is a count.
    spacing : {"geometric", "inputs"}, default="geometric"
        Where a count of strengths is put: in equal ratios, or where inputs leave, so that few numbers of
        inputs are passed over. "inputs" stops early when there is a model for every number.
    direction : {"up", "both"}, default="up"
        "both" also walks back from the sparse end and keeps the lower objective at every strength.
    relax : bool, default=False
        Whether each model is, in place of the one whose penalty chose the inputs, the one of the weakest
        strength on these inputs: the path then chooses inputs without shrinking what they do (Meinshausen
        2007). Goes with direction="up".
    max_iter : int, default=None
        Most iterations at every strength after the first; by default those of the estimator. Few make a
        rough path fast; the status of each model says what was reached.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the observations.
    verbose : int, default=None
        1 shows a progress bar; by default as the estimator says.

    Returns
    -------
    path : Path
        Interrupted by Ctrl-C, it holds what is done. With ``checkpoint`` every solution is kept in that
        folder, and with ``resume`` a path goes on after those that it has there.
    """
    need_plain(estimator, "path")
    need_name("direction", direction, DIRECTIONS)
    need_name("spacing", spacing, SPACINGS)
    need_switch("relax", relax)
    if relax and direction == "both":
        raise ValueError("relax=True goes with direction='up': there is nothing to compare on the way back.")
    if max_iter is not None and not is_whole(max_iter):
        raise ValueError(f"max_iter must be a whole number of at least 1, got {shown(max_iter)}.")
    need_verbose(estimator.verbose if verbose is None else verbose)
    if validation is not None and not (isinstance(validation, tuple | list) and len(validation) == 2):
        raise ValueError(
            "validation must be a pair (X, y) of inputs and responses that the path has not seen."
        )
    given = strengths(alphas)
    if spacing == "inputs" and not isinstance(given, int):
        raise ValueError("spacing='inputs' finds the strengths: give their number in place of alphas.")
    problem = Walk(copied(estimator), X, y, sample_weight)
    counted = isinstance(given, int)
    need(of_path(given if counted else len(given), problem.n_weights))
    way = Way(counted, spacing == "inputs", direction == "both", bool(relax), max_iter)
    show = estimator.verbose if verbose is None else verbose
    grid = problem.grid(given, check_eps(eps)) if isinstance(given, int) else given
    with along("path", show) as told, problem.keeping(grid, way) as problem.stages:
        walked = walk(problem, list(map(float, grid)), way, told)
    return Path(problem, walked, (X, y, sample_weight), None if validation is None else tuple(validation))


def strengths(alphas: Any) -> Any:
    """A count of strengths, or the strengths themselves, each once and in growing order."""
    if is_whole(alphas, -np.inf):
        if alphas < 2:
            raise ValueError(f"A path needs at least 2 strengths, got alphas={shown(alphas)}.")
        return int(alphas)
    try:
        given = np.asarray(alphas)
        values = np.unique(given.astype(float)) if given.dtype.kind in "iufO" else np.zeros(0)
    except (TypeError, ValueError, OverflowError):
        values = np.zeros(0)
    if not values.size or not np.all(np.isfinite(values) & (values > 0)):
        raise ValueError(
            f"alphas must be a whole number or an array of positive numbers, got {shown(alphas)}."
        )
    return values


def check_eps(eps: Any) -> float:
    """A share strictly between 0 and 1."""
    if not is_number(eps) or not 0 < eps < 1:
        raise ValueError(f"eps must be between 0 and 1, got {shown(eps)}.")
    return float(eps)
