"""Accuracy at given shares of zeros: `zeros=` beside gradual magnitude pruning, on ten data sets.

    python -m benchmarks zeros --splits=3 --jobs=2

Both have one hidden layer of 50 ReLU units and one start. Pruning is Adam for 60 epochs of batches of 32
rows, from a tenth of the steps to seven tenths of them down to the weights asked for by the cubic schedule of
Zhu and Gupta (2018), its rate the best of five on a fifth of the rows to train. Ours are
``DeepClassifier(zeros=..., alpha="auto")``, which chooses its strength on the rows to train too. Images of
Fashion-MNIST join in where they are installed, tables of R's packages where R has them;
``--export=sets.npz`` writes them all to a file, which ``--data=sets.npz`` takes on another machine, and
``--sets=digits,olive`` are some of them.
"""

import sys
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from benchmarks import show
from benchmarks.suites.tasks import FASHION, fashion
from benchmarks.tables.record import Table
from benchmarks.tables.sets import load, store, stored

LEVELS = (0.8, 0.9, 0.95, 0.98)
RATES = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
WIDTH, EPOCHS, BATCH, CUT = 50, 60, 32, 20  # a cut after so many steps
BEGIN, END, FALLS = 0.1, 0.7, 0.75  # shares of the steps: of the schedule, and where the rate begins to fall
TABLES = ["attrition", "breast_cancer", "chile", "computing", "credit", "churn", "olive", "signs"]


def forward(W: Any, X: Any) -> Any:
    """The outputs of a ReLU network; biases stand in column 0."""
    hidden = jax.nn.relu(X @ W[0][:, 1:].T + W[0][:, 0])
    return hidden @ W[1][:, 1:].T + W[1][:, 0]


def largest(W: Any, count: Any) -> Any:
    """Masks of so many largest weights; biases stay."""
    sizes = jnp.sort(jnp.concatenate([jnp.abs(w[:, 1:]).ravel() for w in W]))
    least = sizes[jnp.clip(len(sizes) - count, 0, len(sizes) - 1)]
    return tuple((jnp.abs(w) >= least).at[:, 0].set(True) for w in W)


@partial(jax.jit, static_argnames="steps")
def pruned(steps: int, X: Any, Y: Any, W: Any, rates: Any, counts: Any, seed: Any) -> Any:
    """Networks of every rate and count: Adam, with more and more of the smallest weights at zero."""
    total = sum(w[:, 1:].size for w in W)

    def loss(W: Any, X: Any, Y: Any) -> Any:
        return -(jax.nn.log_softmax(forward(W, X)) * Y).sum(-1).mean()

    def one(rate: Any, count: Any) -> Any:
        def step(carry: Any, i: Any) -> Any:
            W, mean, square, mask = carry
            rows = jax.random.randint(jax.random.fold_in(jax.random.key(seed), i), (BATCH,), 0, len(X))
            G, t = jax.grad(loss)(W, X[rows], Y[rows]), i + 1.0
            mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, G)
            square = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, square, G)
            now = rate * jnp.minimum((1 - i / steps) / (1 - FALLS), 1)
            move = lambda w, m, v: w - now * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)  # noqa: E731
            W = jax.tree.map(move, W, mean, square)
            W = jax.tree.map(lambda w, on: jnp.where(on, w, 0), W, mask)
            left = (1 - jnp.clip((i / steps - BEGIN) / (END - BEGIN), 0, 1)) ** 3
            cut = partial(largest, W, (count + left * (total - count)).astype(int))
            mask = lax.cond(i % CUT == 0, cut, lambda: mask)
            return (jax.tree.map(lambda w, on: jnp.where(on, w, 0), W, mask), mean, square, mask), None

        zero = jax.tree.map(jnp.zeros_like, W)
        begin = W, zero, zero, jax.tree.map(lambda w: jnp.ones(w.shape, bool), W)
        return lax.scan(step, begin, jnp.arange(steps))[0][0]

    return jax.vmap(one)(rates, counts)


def by_pruning(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, seed: int
) -> list[float]:
    """Test accuracies of pruning at all levels, the rate chosen on a fifth of the rows."""
    rng, k, p = np.random.default_rng(seed), int(y.max()) + 1, X.shape[1]
    shapes = (WIDTH, p + 1), (k, WIDTH + 1)
    W = tuple(np.float32(rng.normal(size=s) * np.sqrt(2 / s[1]) * (np.arange(s[1]) > 0)) for s in shapes)
    counts = [int((1 - level) * (p * WIDTH + WIDTH * k)) for level in LEVELS]
    rates, each = (np.ravel(a) for a in np.meshgrid(np.float32(RATES), counts))
    steps, Y = EPOCHS * max(len(X) // BATCH, 1), np.eye(k, dtype=np.float32)[y]
    inside, outside = train_test_split(np.arange(len(X)), test_size=0.2, random_state=0, stratify=y)

    def scores(rows: Any, X_new: np.ndarray, y_new: np.ndarray) -> np.ndarray:
        found = pruned(steps, X[rows], Y[rows], W, rates, each, seed)
        eta = jax.vmap(forward, (0, None))(found, X_new)
        return np.asarray((eta.argmax(-1) == y_new).mean(1)).reshape(len(LEVELS), -1)

    best = scores(inside, X[outside], y[outside]).argmax(1)
    return scores(np.arange(len(X)), X_test, y_test)[np.arange(len(LEVELS)), best].tolist()


def run(job: tuple[Table, int]) -> tuple[str, int, list[float], list[float], list[float], list[str]]:
    """One split: the accuracies of pruning and ours, our shares of zeros, and how the fits ended."""
    from deepprox import DeepClassifier

    table, split = job
    train, test = table.split(split)
    spread = table.X[train].std(0)
    X = np.float32((table.X - table.X[train].mean(0)) / np.where(spread > 0, spread, 1))
    y = np.unique(table.y, return_inverse=True)[1]
    theirs = by_pruning(X[train], y[train], X[test], y[test], split)
    ours, zeros, ends = [], [], []
    for level in LEVELS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = DeepClassifier((WIDTH,), alpha="auto", zeros=level, random_state=split).fit(
                X[train], y[train]
            )
        ours.append(model.score(X[test], y[test]))
        zeros.append(1 - model.n_nonzero_ / model.fitted_.n_weights)
        ends.append(model.solution_.status)
    return table.name, split, theirs, ours, zeros, ends


def data_sets(file: str | None) -> list[Table]:
    """Digits, two sizes of Fashion-MNIST, and tables."""
    if file:
        return stored(Path(file))
    sets = [Table("digits", "scikit-learn", *load_digits(return_X_y=True), True)]
    if FASHION.exists():
        X, y = fashion("train")
        for n in (2000, 5000):
            rows = np.random.default_rng(0).permutation(len(X))[: int(n / 0.7)]
            sets.append(
                Table(f"fashion {n}", "Fashion-MNIST", np.float32(X[rows]), y[rows].astype(int), True)
            )
    return sets + load(TABLES)[0]


def option(name: str) -> str | None:
    """What an option gives."""
    given = [arg.split("=")[1] for arg in sys.argv if arg.startswith(f"--{name}=")]
    return given[0] if given else None


def main() -> None:
    """A line for every split as it is done, then the means."""
    sets, splits, export = data_sets(option("data")), int(option("splits") or 1), option("export")
    if export:
        return store(sets, Path(export))
    named = option("sets")
    sets = [table for table in sets if named is None or table.name in named.split(",")]
    jobs = [(table, split) for split in range(splits) for table in sets]
    done = []
    with ProcessPoolExecutor(int(option("jobs") or 1), get_context("spawn")) as pool:
        for job in as_completed([pool.submit(run, job) for job in jobs]):
            done.append(job.result())
            print(*done[-1], flush=True)
    rows: list[list[object]] = []
    wins = np.zeros(len(LEVELS), int)
    means = []
    for table in sets:
        own = [one for one in done if one[0] == table.name]
        theirs, ours = (np.mean([one[k] for one in own], axis=0) for k in (2, 3))
        wins += ours >= theirs - 1e-9
        means.append((theirs, ours))
        rows.append([table.name, *(f"{100 * a:.1f} / {100 * b:.1f}" for a, b in zip(ours, theirs))])
    theirs, ours = np.mean(means, axis=0)
    rows.append(["mean", *(f"{100 * a:.1f} / {100 * b:.1f}" for a, b in zip(ours, theirs))])
    rows.append([f"at or above, of {len(sets)}", *map(str, wins)])
    show.table("accuracy in %, ours / gradual pruning, at a share of zeros", ["", *map(str, LEVELS)], rows)
    ends = [end for one in done for end in one[5]]
    print(f"{sum(end == 'converged' for end in ends)} of {len(ends)} fits certified")
