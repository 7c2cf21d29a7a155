"""How a strength is chosen inside of ``fit``: a path, then folds or a criterion."""

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv
from sklearn.utils import indexable
from sklearn.utils.validation import _check_sample_weight

from deepprox.checks import need_jobs, need_name, shown
from deepprox.estimators._given import read_new_response
from deepprox.estimators._plain import become
from deepprox.estimators._predict import losses_of
from deepprox.memory import need, of_parts
from deepprox.selection.paths import Path, sparsest_within, whole_path
from deepprox.selection.progress import along
from deepprox.statistics.names import CRITERIA

RULES = ("min", "1se")


class Chooses:
    """Fits a path of its plain estimator and becomes one of its models.

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
        The strengths of the path.
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
        if not model.solution_.done:
            warnings.warn(
                f"{type(self).__name__} {model.solution_.message}.", ConvergenceWarning, stacklevel=3
            )

    def __getstate__(self) -> dict[str, Any]:
        """Without the path, which holds the data."""
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {name: value for name, value in state.items() if name != "path_"}


class ByFolds(Chooses):
    """The strength with the least loss on what each fold leaves out, or the 1-standard-error rule.

    The path of all data gives the strengths; each fold walks them on its own part. Folds run in threads.

    Parameters
    ----------
    cv : int, splitter or iterable, default=None
        Folds, as in scikit-learn: five by default, with every class in its proportion.
    rule : {"1se", "min"}, default="1se"
        The sparsest model within one standard error of the least mean loss, or that of the least. Of one
        fold the standard error is 0, and both rules are the same.
    n_jobs : int, default=None
        Folds that run at a time, in threads.

    Attributes
    ----------
    loss_path_, score_path_ : ndarray of shape (n_alphas, n_folds)
        Mean loss and score on what each fold leaves out.
    alpha_min_, alpha_1se_ : float
        The choices of both rules.
    """

    cv: Any
    rule: Any
    n_jobs: Any
    _own = ("alphas", "eps", "relax", "cv", "rule", "n_jobs")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the path, choose the strength by cross-validation, and keep its model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Response.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the observations, in the fits and in the losses of the folds.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        need_name("rule", self.rule, RULES)
        need_jobs(self.n_jobs)
        plain = self._estimator()
        found = self._path(plain, X, y, sample_weight)
        X, y = indexable(X, read_new_response(y, numbers=False))
        try:
            splitter = check_cv(self.cv, y, classifier=is_classifier(self))
        except TypeError as error:
            raise TypeError(f"cv must be a number, a splitter or a list of folds: {error}.") from error
        need(of_parts(splitter.get_n_splits(X, y), len(y), "cv"))
        folds = list(splitter.split(X, y))
        if not folds:
            raise ValueError(f"cv={shown(self.cv)} makes no folds: give their number.")
        with along("folds", self.verbose) as told:
            run = Parallel(n_jobs=self.n_jobs, prefer="threads", require="sharedmem")
            given = plain, X, y, sample_weight, found.alphas, self.relax
            jobs = (delayed(_fold)(*given, fold) for fold in folds)
            done = []
            for k, one in enumerate(run(jobs)):
                done.append(one)
                if told:
                    told(k + 1, len(folds), found.alphas[-1], found.solutions[-1])
        losses, scores = (np.array(rows).T for rows in zip(*done, strict=True))
        best = int(np.argmin(losses.mean(axis=1)))
        within = sparsest_within(losses, best)
        self._become(found, best if self.rule == "min" else within)
        self.loss_path_, self.score_path_ = losses, scores
        self.alpha_min_, self.alpha_1se_ = (float(found.alphas[k]) for k in (best, within))
        return self


def _fold(
    plain: Any,
    X: Any,
    y: Any,
    weight: Any,
    alphas: np.ndarray,
    relax: bool,
    fold: tuple[np.ndarray, np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Mean losses and scores of a fold's path on what the fold leaves out."""
    from sklearn.utils import _safe_indexing as take

    inside, outside = fold
    kept = None if weight is None else _check_sample_weight(weight, X)
    found = whole_path(
        clone(plain).set_params(verbose=0),
        take(X, inside),
        take(y, inside),
        alphas,
        relax=relax,
        sample_weight=None if kept is None else kept[inside],
    )
    X_out, y_out = take(X, outside), take(y, outside)
    w_out = np.ones(len(outside)) if kept is None else kept[outside]
    losses = [np.average(losses_of(model, X_out, y_out), weights=w_out) for model in found]
    scores = [model.score(X_out, y_out, sample_weight=w_out) for model in found]
    return np.array(losses), np.array(scores)


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
