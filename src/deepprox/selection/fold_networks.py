"""Networks of every strength for every fold, fitted without the rows that it leaves out, which judge them.

There are two ways to them: side by side, as lanes of one program of the batch phase; or on a path of
certified fits for each fold, where the problem is convex or batches have no place. What is done with them is
the same.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone, is_classifier
from sklearn.metrics import r2_score
from sklearn.model_selection import check_cv
from sklearn.utils import indexable

from deepprox.checks import shown
from deepprox.estimators import _resolve
from deepprox.estimators._given import read_new_response
from deepprox.estimators._predict import outputs
from deepprox.estimators._seeds import seed_of
from deepprox.estimators.session import STRENGTHS, WEAKEST, Posed, Rows, Session
from deepprox.folds import FOLDS, STEPS, deal, errors
from deepprox.losses import Loss
from deepprox.memory import need, of_parts, of_path
from deepprox.runtime import precision
from deepprox.selection.paths import Path, check_eps, strengths, whole_path
from deepprox.selection.strength import Strength
from deepprox.solve import as_drawn
from deepprox.spreading import same
from deepprox.struct import replace

WALKED = 50  # strengths of a path

Told = Callable[[int, int], None] | None


class Fold(NamedTuple):
    """How often every row counts for the networks of a fold, and the rows that judge them."""

    weight: np.ndarray
    outside: np.ndarray


class Task(NamedTuple):
    """What is asked of folds: a plain estimator that knows its inputs, the data, and the folds.

    ``X``, ``y`` and ``sample_weight`` are as they were given, ``rows`` as the loss takes them.
    """

    plain: Any
    session: Session
    posed: Posed
    rows: Rows
    X: Any
    y: Any
    sample_weight: Any
    folds: list[Fold]

    @property
    def loss(self) -> Loss:
        """The loss of all rows, on the host."""
        loss: Loss = jax.tree.map(np.asarray, self.posed.problem.loss)
        return loss

    @classmethod
    def of(cls, plain: Any, X: Any, y: Any, sample_weight: Any, cv: Any, groups: Any) -> "Task":
        """The data validated and posed, and the folds that ``cv`` makes of them."""
        session = Session(plain)
        session.chooses = False  # strengths are those of the folds
        rows = session.read(X, y, sample_weight)
        with precision(rows.X.dtype):
            posed = session.pose(rows)
        if posed.problem.allsum.world > 1:
            raise ValueError("Folds need all observations in one process: fit one strength at a time.")
        X, y = indexable(X, read_new_response(y, numbers=False))
        if cv is None:
            seed = seed_of(plain.random_state)
            parts = dealt(posed, seed)
        else:
            parts = splits(cv, X, y, groups, is_classifier(plain))
        folds = [Fold(inside * rows.weight, outside) for inside, outside in parts]
        folds = [fold for fold in folds if rows.weight[fold.outside].any()]
        if not folds:
            raise ValueError(f"cv={shown(cv)} makes no folds with rows to judge by: give their number.")
        return cls(plain, session, posed, rows, X, y, sample_weight, folds)


def dealt(posed: Posed, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Five folds in which responses are spread alike, equal rows together; rows without weight in none."""
    places = posed.places
    n_folds = min(FOLDS, int(np.count_nonzero(posed.problem.weight)))
    number = np.append(deal(posed.problem, np.random.default_rng(seed), n_folds), -1)[places]
    return [((number != k) * 1.0, np.flatnonzero((number == k) & (places >= 0))) for k in range(n_folds)]


def splits(cv: Any, X: Any, y: Any, groups: Any, classes: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """The folds of a splitter of scikit-learn: how often every row is inside, and the rows outside."""
    n = len(y)
    try:
        splitter = check_cv(cv, y, classifier=classes)
    except TypeError as error:
        raise TypeError(f"cv must be a number, a splitter or a list of folds: {error}.") from error
    need(of_parts(splitter.get_n_splits(X, y, groups), n, "cv"))
    try:
        folds = [[np.arange(n)[part] for part in fold] for fold in splitter.split(X, y, groups)]
    except IndexError as error:
        raise ValueError(f"cv={shown(cv)} names rows that are not among the {n}: {error}.") from error
    return [(np.bincount(inside, minlength=n) * 1.0, outside) for inside, outside in folds]


class FoldNetworks(ABC):
    """Networks of all strengths for every fold, and what they cost on the rows that it leaves out."""

    task: Task
    alphas: np.ndarray

    @abstractmethod
    def outputs(self, k: int) -> tuple[np.ndarray, Loss]:
        """``eta`` of the networks of fold ``k`` on what it leaves out, by strength, and their loss."""

    @abstractmethod
    def model(self, k: int, index: int) -> Any:
        """The network of one fold and one strength as a plain estimator."""

    @abstractmethod
    def whole(self, index: int) -> Any:
        """The network of all rows at one strength, fitted to the end, as a plain estimator."""

    def judged(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Mean errors and scores of the networks of a fold, strength by strength, on what it leaves out."""
        task, outside = self.task, self.task.folds[k].outside
        eta, own = self.outputs(k)
        y, weight = task.rows.y[outside], task.rows.weight[outside]
        each = np.where(weight > 0, errors(task.loss, own, eta, y), 0.0)
        if is_classifier(task.plain):
            scores = (chosen(eta) == chosen(2 * y - 1)) @ weight / weight.sum()
        else:
            scores = np.array([r_squared(y, np.asarray(own.mean(one)), weight) for one in eta])
        return each @ weight / weight.sum(), scores

    def scored(self, k: int, scorer: Any) -> list[float]:
        """The scores that a scorer of scikit-learn gives the networks of a fold on what it leaves out."""
        models = (self.model(k, index) for index in range(len(self.alphas)))
        return [score_of(scorer, model, self.task, self.task.folds[k].outside) for model in models]


def chosen(eta: np.ndarray) -> np.ndarray:
    """The number of the class that outputs speak for."""
    return eta[..., 0] > 0 if eta.shape[-1] == 1 else eta.argmax(-1)


def r_squared(y: np.ndarray, predicted: np.ndarray, weight: np.ndarray) -> float:
    """R squared, nan of predictions that are no numbers and of a single row."""
    if len(y) < 2 or not np.isfinite(predicted).all():
        return np.nan
    return float(r2_score(y, predicted, sample_weight=weight))


def score_of(scorer: Any, model: Any, task: Task, rows: np.ndarray) -> float:
    """What a scorer says of a model on some rows, with their weights where these were given."""
    from sklearn.utils import _safe_indexing as take

    weights = {} if task.sample_weight is None else {"sample_weight": task.rows.weight[rows]}
    return float(scorer(model, take(task.X, rows), take(task.y, rows), **weights))


class SideBySide(FoldNetworks):
    """Networks of the batch phase, as lanes of one program."""

    def __init__(self, task: Task, alphas: Any, eps: float, told: Told = None) -> None:
        self.task, session, problem = task, task.session, task.posed.problem
        dtype, places = problem.X.dtype, task.posed.places
        given = strengths(STRENGTHS if is_auto(alphas) else alphas)
        count = given if isinstance(given, int) else len(given)
        need(of_path(count, sum(a * b for a, b in problem.network.shapes(problem.X.shape[1]))))
        with precision(dtype):
            self.strength = Strength.of(task.plain, problem.X.shape[1], problem.y.shape[1], dtype)
            self.alphas = session.strengths(problem, given, eps) if isinstance(given, int) else given
            self.networks = [self.strength.apply(problem.network, alpha) for alpha in self.alphas]
            there = places >= 0
            weights = [
                np.bincount(places[there], fold.weight[there], len(problem.weight)) for fold in task.folds
            ]
            batch = session.batch(task.posed)
            self.unseen = session.unseen(task.posed, weights, self.networks, batch, told)

    @staticmethod
    def suits(task: Task) -> bool:
        """Whether there are hidden layers, all rows are here, and a batch phase has a place."""
        settings, problem = task.session.settings, task.posed.problem
        here = problem.allsum == same and len(problem.network.blocks) > 1
        return here and bool(_resolve.resolve_batch(settings, problem, _resolve.MANY))

    def outputs(self, k: int) -> tuple[np.ndarray, Loss]:
        places = self.task.posed.places[self.task.folds[k].outside]
        X = np.asarray(self.task.posed.problem.X)[places]
        with precision(X.dtype):
            return self.unseen.outputs(k, X), self.unseen.parts[k].posed.problem.loss

    def model(self, k: int, index: int) -> Any:
        part = self.unseen.parts[k].posed
        dtype = part.problem.X.dtype
        W = tuple(np.asarray(w[index], dtype) for w in self.unseen.lanes.W[k])
        model, session = self._plain(index)
        with precision(dtype):
            problem = replace(part.problem, network=self.networks[index])
            session.keep(as_drawn(problem, W, STEPS), part._replace(problem=problem))
        return alone(model)

    def whole(self, index: int) -> Any:
        posed = self.task.posed
        model, session = self._plain(index)
        with precision(posed.problem.X.dtype):
            posed = posed._replace(problem=replace(posed.problem, network=self.networks[index]))
            session.keep(session.run(posed), posed)
        return model

    def _plain(self, index: int) -> tuple[Any, Session]:
        """A plain estimator of this strength that fits by batches, and its session."""
        model, task = copy.copy(self.task.plain), self.task
        params = self.strength.params(model, self.networks[index], float(self.alphas[index]))
        model.set_params(**params, batch_size=task.session.batch(task.posed))
        return model, Session(model)


class Walks(FoldNetworks):
    """Certified networks, on a path of all rows, which finds the strengths, and one of every fold's."""

    def __init__(
        self,
        task: Task,
        alphas: Any,
        eps: float = WEAKEST,
        relax: bool = False,
        n_jobs: int | None = None,
        told: Told = None,
    ) -> None:
        self.task, self.path = task, self._walk(task, alphas, task.sample_weight, relax, eps)
        self.alphas = self.path.alphas
        run = Parallel(n_jobs=n_jobs, prefer="threads", require="sharedmem", return_as="generator")
        quiet = task._replace(plain=clone(task.plain).set_params(verbose=0))
        jobs = (delayed(self._models)(quiet, self.alphas, fold.weight, relax) for fold in task.folds)
        self.models: list[list[Any]] = []
        for models in run(jobs):
            self.models.append(models)
            if told:
                told(len(self.models), len(task.folds))

    @staticmethod
    def _walk(task: Task, alphas: Any, weight: Any, relax: bool, eps: float = WEAKEST) -> Path[Any]:
        given = WALKED if is_auto(alphas) else alphas
        return whole_path(task.plain, task.X, task.y, given, eps=eps, relax=relax, sample_weight=weight)

    @classmethod
    def _models(cls, task: Task, alphas: np.ndarray, weight: np.ndarray, relax: bool) -> list[Any]:
        return [alone(model) for model in cls._walk(task, alphas, weight, relax)]

    def outputs(self, k: int) -> tuple[np.ndarray, Loss]:
        from sklearn.utils import _safe_indexing as take

        models, X = self.models[k], take(self.task.X, self.task.folds[k].outside)
        return np.stack([outputs(model, X, as_mean=False) for model in models]), models[0].fitted_.loss

    def model(self, k: int, index: int) -> Any:
        return self.models[k][index]

    def whole(self, index: int) -> Any:
        return self.path[index]


def is_auto(alphas: Any) -> bool:
    """Whether the strengths are left to us."""
    return isinstance(alphas, str) and alphas == "auto"


def alone(model: Any) -> Any:
    """A fitted estimator without its rows."""
    vars(model)["fitted_"] = model.fitted_.without_data()
    return model


def fold_networks(
    task: Task, alphas: Any, eps: Any, relax: bool, n_jobs: int | None, told: Told = None
) -> FoldNetworks:
    """Side by side where that has a place, else on paths."""
    share = check_eps(eps)
    if SideBySide.suits(task) and not relax:
        return SideBySide(task, alphas, share, told)
    return Walks(task, alphas, share, relax, n_jobs, told)


def truth(task: Task, rows: np.ndarray) -> np.ndarray:
    """The responses of some rows: numbers, or the number of the class in one column."""
    y = task.rows.y[rows]
    return chosen(2 * y - 1).astype(float)[:, None] if is_classifier(task.plain) else np.asarray(y, float)
