"""deepprox, and SciPy's L-BFGS-B with the same compiled gradient. Run by the Python of this repository."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from sklearn.exceptions import ConvergenceWarning

from benchmarks.suites.tasks import Task, Weights
from deepprox import DeepClassifier, penalties

RUNG = 1.35  # ratio of neighbouring strengths on the way to a share of zeros
STRONGER = (1, 2, 4, 8, 16)  # times the strength of the task: those that a validation part judges
VALIDATION = 5  # every so many-th row


def estimator(task: Task, seed: int, **settings) -> DeepClassifier:
    """The task as a user would write it; two classes without hidden layers are a single logistic column."""
    binary = task.n_classes == 2 and not task.hidden
    alpha = task.gamma / len(task.X)
    strength: dict[str, object] = {"alpha": alpha}
    if task.bias == "none":  # a price on the bias that no fit pays
        strengths = np.full((1 if binary else task.n_classes, 1 + task.X.shape[1]), alpha)
        strengths[:, 0] = 1e3
        strength = {"penalty": penalties.L1(strengths)}
    return DeepClassifier(
        task.hidden, loss="logistic" if binary else "softmax", penalize_bias=task.bias != "free",
        standardize=False, random_state=seed, **strength, **settings,
    )  # fmt: skip


def fitted(model: DeepClassifier, task: Task) -> DeepClassifier:
    """The model after its fit; how well it converged is for the judge to say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(task.X, task.y)


def weights(model: DeepClassifier) -> Weights:
    """Biases in column 0."""
    return [np.column_stack([b, w.T]) for w, b in zip(model.coefs_, model.intercepts_)]


def deepprox(task: Task, seed: int, tol: float) -> Weights:
    """The defaults, at a tolerance."""
    return weights(fitted(estimator(task, seed, tol=tol), task))


def deepprox_to(task: Task, seed: int, effort: float) -> Weights:
    """Below 1 a tolerance, else so many iterations in single precision."""
    return (deepprox if effort < 1 else deepprox_rough)(task, seed, effort)


def deepprox_rough(task: Task, seed: int, max_iter: float) -> Weights:
    """Single precision and so many iterations."""
    return weights(fitted(estimator(task, seed, dtype="float32", tol=1e-4, max_iter=int(max_iter)), task))


def deepprox_at(task: Task, seed: int, level: float) -> Weights:
    """From a third of the strength upwards, each fit from the last, until the share of zeros is there."""
    return weights(_at(task, seed, level))


def deepprox_refitted_at(task: Task, seed: int, level: float) -> Weights:
    """The same, its weights then refitted with a tenth of the penalty and the zeros held."""
    model = _at(task, seed, level)
    held = tuple(penalties.L1(np.where(w != 0, 0.1 * model.alpha, 1e3)) for w in weights(model))
    model.set_params(penalty=held, alpha=DeepClassifier().alpha, warm_start=True)
    return weights(fitted(model, task))


def deepprox_batches_at(task: Task, seed: int, level: float) -> Weights:
    """Batches first, though rows are few, and of strengths with these zeros the best on a fifth of the rows.

    Then all rows at that strength, and stronger until the zeros are there.
    """
    aside = np.arange(len(task.X)) % VALIDATION == 0
    part = task._replace(X=task.X[~aside], y=task.y[~aside])

    def fit(rows: Task, alpha: float) -> DeepClassifier:
        settings = {"batch_size": 512, "dtype": "float32", "tol": 1e-4, "max_iter": 200}
        return fitted(estimator(rows, seed, **settings).set_params(alpha=alpha), rows)

    judged = []
    for times in STRONGER:
        model = fit(part, times * task.gamma / len(task.X))
        enough = model.n_nonzero_ <= (1 - level) * n_weights(task)
        judged.append((enough, model.score(task.X[aside], task.y[aside]), model.alpha))
    model = fit(task, max(judged)[2])
    while model.n_nonzero_ > (1 - level) * n_weights(task):
        model = fit(task, RUNG * model.alpha)
    return weights(model)


def n_weights(task: Task) -> int:
    """Weights and biases of the network of a task."""
    return sum(n_out * (1 + n_in) for n_in, n_out in zip(task.sizes, task.sizes[1:]))


def _at(task: Task, seed: int, level: float) -> DeepClassifier:
    model = estimator(task._replace(gamma=task.gamma / 3), seed, tol=1e-4)
    while fitted(model, task).n_nonzero_ > (1 - level) * n_weights(task):
        model.set_params(alpha=RUNG * model.alpha, warm_start=True)
    return model


@jax.jit
def _loss_and_gradient(W, X, Y):
    """Sum of the losses of a ReLU network, and its gradient."""

    def loss(W):
        reads = X
        for w in W[:-1]:
            reads = jax.nn.relu(reads @ w[:, 1:].T + w[:, 0])
        eta = reads @ W[-1][:, 1:].T + W[-1][:, 0]
        return (jax.nn.logsumexp(eta, 1) - (eta * Y).sum(1)).sum()

    return jax.value_and_grad(loss)(W)


def l_bfgs_b_single(task: Task, seed: int, max_iter: float) -> Weights:
    """The same, its gradients in single precision."""
    return l_bfgs_b(task, seed, max_iter, np.float32)


def l_bfgs_b(task: Task, seed: int, max_iter: float, dtype: type = np.float64) -> Weights:
    """``minimise loss(W+ - W-) + gamma sum (W+ + W-)`` with W+ and W- at least 0: smooth, with bounds."""
    with jax.enable_x64(True):
        rng, n = np.random.default_rng(seed), len(task.X)
        shapes = [(a, 1 + b) for b, a in zip(task.sizes, task.sizes[1:])]
        W = [rng.uniform(-1, 1, shape) * np.sqrt(6 / sum(shape)) for shape in shapes]
        X, Y = jnp.asarray(task.X, dtype), jnp.asarray(np.eye(task.n_classes)[task.y], dtype)
        ends = np.cumsum([w.size for w in W])

        def parts(w):
            return [part.reshape(s) for part, s in zip(np.split(w.astype(dtype), ends[:-1]), shapes)]

        def value_and_slope(both):
            loss, slope = _loss_and_gradient(parts(both[: ends[-1]] - both[ends[-1] :]), X, Y)
            g = np.concatenate([np.asarray(part).ravel() for part in slope]) / n
            price = task.gamma / n
            return float(loss) / n + price * both.sum(), np.concatenate([g + price, price - g])

        w = np.concatenate([part.ravel() for part in W])
        found = scipy.optimize.minimize(
            value_and_slope, np.concatenate([np.maximum(w, 0), np.maximum(-w, 0)]), jac=True,
            method="L-BFGS-B", bounds=[(0, None)] * (2 * w.size),
            options={"maxiter": int(max_iter), "maxfun": 2 * int(max_iter), "ftol": 1e-14, "gtol": 1e-9},
        ).x  # fmt: skip
        return parts(found[: ends[-1]] - found[ends[-1] :])
