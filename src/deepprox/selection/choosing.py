"""How a strength is chosen inside of ``fit``: by what folds leave out, or by a criterion along a path."""

import warnings
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.utils import _safe_indexing

from deepprox.checks import need_jobs, need_name, need_switch
from deepprox.estimators._plain import become
from deepprox.estimators._predict import outputs
from deepprox.selection.fold_networks import FoldNetworks, Task, Walks, fold_networks, truth
from deepprox.selection.held_out import HeldOut
from deepprox.selection.paths import Path, sparsest_within, whole_path
from deepprox.selection.progress import steps
from deepprox.solution import Solution
from deepprox.statistics.names import CRITERIA

RULES = ("min", "1se")


class Chooses:
    """Fits its plain estimator at many strengths and becomes one of these models.

    Parameters
    ----------
    alphas : int or array-like, default=50
        Strengths, or how many; see :func:`deepprox.path`.
    eps : float, default=1e-3
        The weakest strength as a share of that which would empty a lasso, where ``alphas`` is a count.
    relax : bool, default=False
        Whether strengths only choose the inputs, and the model on these has the weakest one: a criterion
        then does not pay for shrinkage with superfluous inputs.

    Attributes
    ----------
    alpha_ : float
        The strength that was chosen.
    alphas_ : ndarray of shape (n_alphas,)
        The strengths.
    path_ : Path
        The path on all data; not part of a pickle.
    """

    alphas: Any
    eps: Any
    relax: Any
    verbose: Any
    _plain: ClassVar[type]
    _own: ClassVar[tuple[str, ...]]  # parameters that the plain estimator does not have

    def _estimator(self) -> Any:
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        return self._plain(**{name: value for name, value in params.items() if name not in self._own})

    def _path(self, plain: Any, X: Any, y: Any, sample_weight: Any) -> Path[Any]:
        settings = {"eps": self.eps, "relax": self.relax, "sample_weight": sample_weight}
        return whole_path(plain, X, y, self.alphas, **settings)

    def _become(self, found: Path[Any], index: int) -> None:
        """Take over the fitted attributes of a model of the path."""
        model = found[index]
        become(self, model)
        self.alpha_, self.alphas_, self.path_ = float(found.alphas[index]), found.alphas, found
        self._warn(model.solution_)

    def _warn(self, found: Solution) -> None:
        """A warning where the network of all rows is not certified."""
        if not found.done:
            warnings.warn(f"{type(self).__name__} {found.message}.", ConvergenceWarning, stacklevel=4)

    def __getstate__(self) -> dict[str, Any]:
        """Without the path, which holds the data."""
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {name: value for name, value in state.items() if name != "path_"}


class ByFolds(Chooses):
    """The strength whose networks predict best what folds leave out.

    With hidden layers the networks of all strengths and folds take steps on random rows side by side, in one
    program, and the network of all rows is then fitted so at the strength that was chosen, and joined.
    Without hidden layers, with ``relax``, and where ``splits``, ``rho``, ``join``, ``batch_size=None`` or
    ``devices`` ask for another first phase, they are the certified ones of a path on all rows and of one for
    each fold.

    Parameters
    ----------
    alphas : "auto", int or array-like, default="auto"
        Strengths, or how many: of networks side by side 10 by default, up to 0.1 for standardised data; of a
        path 50, up to the null model (:func:`deepprox.path`).
    eps : float, default=1e-3
        The weakest strength as a share of the strongest, where ``alphas`` is no array.
    cv : int, splitter or iterable, default=None
        Folds, as in scikit-learn; they may overlap, be repeated or need ``groups``. By default five, drawn at
        random so that responses are spread alike and equal rows stay together. Folds without a row of
        positive weight to judge by are left out.
    rule : {"min", "1se"}, default="min"
        The strength of the least mean error over the folds, or the strongest within one standard error of it.
        Of one fold the standard error is 0, and both rules are the same.
    scoring : str or callable, default=None
        What networks are judged by, a scorer of scikit-learn; by default the loss, of classes with
        probabilities their squared error, which over-confident networks do not decide alone.
    average : bool, default=True
        Whether predictions are those of ``estimators_``, averaged, or of ``best_estimator_``.
    n_jobs : int, default=None
        Paths of folds that are walked at a time, in threads.

    Attributes
    ----------
    best_estimator_ : DeepClassifier or DeepRegressor
        The network of all rows at the strength that was chosen. The summary, report, weights, statistics and
        draws of this estimator are those of that network.
    estimators_ : list of DeepClassifier or DeepRegressor
        The network of every fold at that strength.
    loss_path_, score_path_ : ndarray of shape (n_alphas, n_folds)
        Mean error and score (accuracy, R squared, or that of ``scoring``) on what each fold leaves out.
    alpha_min_, alpha_1se_ : float
        The choices of both rules.
    oof_score_ : float
        Accuracy or R squared of ``oof_prediction_``; with ``scoring`` the mean score over the folds.
    selection_frequency_ : ndarray of shape (n_features_in_,)
        In what share of ``estimators_`` every input is live.
    held_out_ : HeldOut
        What the networks said of every row in a test fold, and the truth: intervals and sets are made of it.
    path_ : Path
        The path on all data, where one was walked; not part of a pickle.
    """

    cv: Any
    rule: Any
    n_jobs: Any
    scoring: Any
    average: Any
    best_estimator_: Any
    estimators_: list[Any]
    held_out_: HeldOut
    n_outputs_: int
    _as_mean: Callable[[], bool]
    _columns: Callable[[np.ndarray], np.ndarray]
    _score: Callable[[HeldOut], float]
    _own = ("alphas", "eps", "relax", "cv", "rule", "scoring", "average", "n_jobs")

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit networks without each fold, choose the strength, and fit the network of all rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Response.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the observations, in the fits and in the errors of the folds.
        groups : array-like of shape (n_samples,), default=None
            Groups of observations that stay together, for a splitter in ``cv`` that asks for them.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        need_name("rule", self.rule, RULES)
        need_jobs(self.n_jobs)
        for name in ("relax", "average"):
            need_switch(name, getattr(self, name))
        plain = self._estimator()
        scorer = None if self.scoring is None else check_scoring(plain, self.scoring)
        task = Task.of(plain, X, y, sample_weight, self.cv, groups)
        with steps("folds", self.verbose) as told:
            found = fold_networks(task, self.alphas, self.eps, bool(self.relax), self.n_jobs, told)
        losses, scores = (np.array(rows).T for rows in zip(*map(found.judged, range(len(task.folds)))))
        if scorer is not None:
            scores = np.array([found.scored(k, scorer) for k in range(len(task.folds))]).T
        costs = losses if scorer is None else -scores
        costs = np.where(np.isfinite(costs), costs, np.inf)
        if np.isinf(costs.mean(axis=1)).all():
            raise ValueError("No strength predicts every fold by numbers: give larger alphas or other folds.")
        best, within = choices(costs)
        index = best if self.rule == "min" else within
        self._take(found, index)
        self.loss_path_, self.score_path_ = losses, scores
        self.alpha_min_, self.alpha_1se_ = (float(found.alphas[k]) for k in (best, within))
        held = self.held_out_ = self._held_out(task)
        self.oof_score_ = self._score(held) if scorer is None else float(scores[index].mean())
        return self

    def check_fitted(self) -> None:
        """ValueError unless the parts of a loaded estimator fit each other."""
        facts = vars(self)
        held, classes, paths = facts.get("held_out_"), facts.get("classes_"), facts.get("loss_path_")
        each: Any = facts.get("estimators_")
        ours = [*each, facts.get("best_estimator_")] if isinstance(each, list) else []
        right = len(ours) > 1 and isinstance(held, HeldOut)
        right = right and isinstance(paths, np.ndarray) and paths.ndim == 2
        numbers = (facts.get(name) for name in ("alpha_", "alpha_min_", "oof_score_"))
        right = right and all(type(number) is float for number in numbers)
        right = right and all(type(one) is self._plain and "fitted_" in vars(one) for one in ours)
        sizes = {(one.n_features_in_, one.n_outputs_) for one in (self, *ours)} if right else set()
        if not right or len(sizes) > 1:
            raise ValueError("the networks of its folds are missing, or of another shape")
        width = self.n_outputs_ if classes is None else len(classes)
        self.held_out_.check(len(ours) - 1, width, classes is not None)

    def _take(self, found: FoldNetworks, index: int) -> None:
        """Become the network of all rows at a strength, with those of the folds."""
        model, folds = found.whole(index), range(len(found.task.folds))
        become(self, model)
        self.best_estimator_ = model
        self.estimators_ = [found.model(k, index) for k in folds]
        self.alpha_, self.alphas_ = float(found.alphas[index]), found.alphas
        self.selection_frequency_ = np.mean([one.selected_features_ for one in self.estimators_], axis=0)
        if isinstance(found, Walks):
            self.path_ = found.path
        self._warn(model.solution_)

    def _held_out(self, task: Task) -> HeldOut:
        """What the network of every fold says of the rows that it has not seen."""
        outside = [fold.outside for fold in task.folds]
        predicted = [
            self._columns(outputs(model, _safe_indexing(task.X, rows), self._as_mean()))
            for model, rows in zip(self.estimators_, outside)
        ]
        return HeldOut.of(outside, predicted, [truth(task, rows) for rows in outside], task.rows.weight)


def choices(costs: np.ndarray) -> tuple[int, int]:
    """The numbers of the strength of least mean cost over folds and of the strongest near it."""
    means = costs.mean(axis=1)
    best = int(np.flatnonzero(means == means.min())[-1])  # of equals the strongest
    return best, sparsest_within(costs, best)


class ByCriterion(Chooses):
    """The strength with the least information criterion.

    Parameters
    ----------
    criterion : {"bic", "aic", "aicc", "ebic", "gcv"}, default="bic"
        What is to be least.

    Attributes
    ----------
    criterion_ : ndarray of shape (n_alphas,)
        The criterion of every model.
    """

    criterion: Any
    _own = ("alphas", "eps", "relax", "criterion")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the path, choose the strength by the criterion, and keep its model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Response.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the observations.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        need_name("criterion", self.criterion, CRITERIA)
        found = self._path(self._estimator(), X, y, sample_weight)
        choice = found.select(self.criterion)
        self._become(found, choice.index)
        self.criterion_ = found.criteria[self.criterion].to_numpy()
        return self
