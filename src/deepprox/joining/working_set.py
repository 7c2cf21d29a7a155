"""One block without XLA: steps on the columns that matter, and a look at all of them that certifies it.

The gradient in all columns, one product with the inputs, says which columns want to leave zero. Newton steps
on some of these and on the live ones (:mod:`deepprox.joining.few_columns`) are followed by another look, and
so on until no column wants to leave zero: the certificate is that of the whole problem.
"""

from typing import NamedTuple

import jax
import numpy as np

from deepprox.arrays import answers_numpy
from deepprox.design import Design, Whole
from deepprox.joining import few_columns, ladder
from deepprox.joining.few_columns import At, Few, Gram
from deepprox.joining.finish import Step
from deepprox.joining.live import SMALL
from deepprox.losses import Loss
from deepprox.network import Network, Weights
from deepprox.problem import Problem
from deepprox.spreading import Spread, same

AT_ONCE = 2**18  # numbers of the inputs up to which all columns are taken at once
NUMBERS = 2**26  # second derivatives of the loss in all outputs of all observations that are held
FIRST = 100  # columns that may leave zero at once, or as many as are live
ROUGH = 0.02  # share of the certificate of all columns that steps on some leave, while others are to come
ROOM = 4  # times as many columns as are live, up to which none leaves the set


def suits(network: Network, loss: Loss, n: int, n_in: int, allsum: Spread = same) -> bool:
    """Whether it is one dense block, all of it formulas for NumPy, on ``n`` rows that are here.

    Where a penalty is not convex the minimum depends on the way. With few weights, and unless the loss is
    quadratic, quasi-Newton steps from random weights find lower ones.
    """
    block = network.blocks[-1]
    known = block.penalty.by_formula and loss.by_formula and answers_numpy(block, block.penalty, loss)
    alone = len(network.blocks) == 1 and block.by_unit and allsum == same and n * block.size**2 <= NUMBERS
    return known and alone and (block.penalty.convex or loss.quadratic or block.size * (1 + n_in) > SMALL)


def takes(problem: Problem) -> bool:
    """The same of a problem that is posed."""
    n, n_in = problem.X.shape
    return suits(problem.network, problem.loss, n, n_in, problem.allsum)


class Found(NamedTuple):
    """Where steps ended, what is known of the point, and the way there."""

    W: Weights
    objective: float
    loss: float
    certificate: float
    step: float
    strict: bool | None
    steps: list[Step]


def descend(problem: Problem, W: Weights, tol: float, budget: int) -> Found:
    """Steps from ``W`` until the certificate of all columns is well within ``tol``, or nothing helps."""
    with np.errstate(all="ignore"):
        return Search(problem, ladder.aim(tol, W[0].dtype)).run(np.asarray(W[0], float), budget)


def loss_at(problem: Problem, W: Weights) -> float:
    """The mean loss of these weights."""
    whole = Search(problem, 0.0).whole
    return float(whole.weight @ whole.loss.value(whole.eta(np.asarray(W[0], float)), whole.y))


class Search:
    """A problem of one block, and its columns that are looked at."""

    def __init__(self, problem: Problem, aim: float) -> None:
        block, loss = jax.tree.map(
            lambda leaf: np.asarray(leaf, float), (problem.network.blocks[0], problem.loss)
        )
        counts = np.flatnonzero(problem.weight)  # not the padding
        n = int(counts[-1]) + 1
        y, weight = (np.asarray(a, float)[:n] for a in (problem.y, problem.weight))
        X = problem.X if isinstance(problem.X, Design) else Whole(np.asarray(problem.X)[:n])
        self.whole, self.aim = Few(block, loss, X, y, weight), aim
        self.gram = Gram(1 + X.shape[1])
        self.steps: list[Step] = []

    def few(self, columns: np.ndarray) -> Few:
        """The problem on some columns of the weights, the bias among them."""
        block, loss, X, y, weight = self.whole
        if len(columns) == 1 + X.shape[1]:
            return self.whole
        return Few(block.on(columns, 1 + X.shape[1]), loss, X.take(columns[1:] - 1).doubled(), y, weight)

    def run(self, w: np.ndarray, budget: int) -> Found:
        """Rounds of steps on some columns and a look at all."""
        few_at_all = self.whole.X.shape[0] * w.shape[1] <= AT_ONCE
        columns = np.arange(w.shape[1]) if few_at_all else live(w)
        few, aim = self.few(columns), self.aim
        # from weights that are not zero the first steps are on these, from nothing a look tells which
        left = budget if few_at_all or len(columns) > 1 else 0
        at, whole = self.round(few, columns, w, 1.0, aim, left)
        while whole.certificate > self.aim and len(self.steps) < budget:
            wider = self.wider(whole, columns)
            done = len(self.steps)
            if wider is not None:
                columns, few, aim = wider, self.few(wider), max(self.aim, ROUGH * whole.certificate)
            elif aim > self.aim:
                aim = self.aim
            else:
                break
            at, whole = self.round(few, columns, whole.w, whole.step, aim, budget - done)
            if len(self.steps) == done and aim == self.aim:
                break
        found = few_columns.strict(few, at, self.gram, columns)
        return Found((whole.w,), at.objective, at.loss, whole.certificate, whole.step, found, self.steps)

    def round(
        self, few: Few, columns: np.ndarray, w: np.ndarray, step: float, aim: float, left: int
    ) -> tuple[At, At]:
        """Steps on some columns, and where they led, as a point of these and of all columns."""
        at, steps = few_columns.descend(few, w[:, columns], step, aim, left, self.gram, columns)
        self.steps += steps
        if few is self.whole:
            return at, at
        out = np.zeros_like(w)
        out[:, columns] = at.w
        whole = at._replace(w=out, gradient=self.whole.gradient(at.slope)).seen(self.whole, at.step)
        if steps:
            self.steps[-1] = steps[-1]._replace(certificate=whole.certificate)
        return at, whole

    def wider(self, whole: At, columns: np.ndarray) -> np.ndarray | None:
        """The columns of the next round; None where no other wants to leave zero."""
        residual = np.abs(whole.w - whole.moved).max(0) / whole.step
        residual[columns] = 0.0
        others, alive = np.flatnonzero(residual > self.aim), live(whole.w)
        if not len(others):
            return None
        most = max(FIRST, len(alive))
        if len(others) > most:
            others = others[np.argpartition(-residual[others], most)[:most]]
        keep = columns if len(columns) <= ROOM * len(alive) + FIRST else alive
        return np.union1d(keep, others)


def live(w: np.ndarray) -> np.ndarray:
    """The columns of weights that are not zero, and that of the biases."""
    mask = (w != 0).any(0)
    mask[0] = True
    return np.flatnonzero(mask)
