"""The life of a fit, in four verbs: ``read`` the data, ``pose`` the problem, ``run`` the solver, ``keep``."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.sparse

from deepprox import screening
from deepprox.checks import is_whole, need_switch
from deepprox.design import Sparse
from deepprox.diary import Stages
from deepprox.estimators import _resolve
from deepprox.estimators._fitted import Fitted
from deepprox.estimators._given import read
from deepprox.estimators._limits import asked, resolve_limits
from deepprox.estimators._observations import FEW_NUMBERS, SORT_LIMIT, counted, dense, merge, padded
from deepprox.estimators._response import response_of
from deepprox.estimators._seeds import seed_of
from deepprox.estimators._settings import resolve_settings
from deepprox.estimators._standardize import (
    Scale,
    from_responses,
    measured,
    response_scale,
    scale_of,
    to_responses,
)
from deepprox.estimators._words import as_arrays
from deepprox.folds import FEW_FOLDS, TOGETHER, Lanes, deal, errors, risks, some, train
from deepprox.joining import working_set
from deepprox.joining.quasi_newton import Memory
from deepprox.joining.working_set import takes
from deepprox.losses import Loss
from deepprox.losses.real import Real
from deepprox.memory import need, of_columns, of_data, of_fit, of_path
from deepprox.network import Network, Weights
from deepprox.problem import Problem
from deepprox.runtime import bucket, keep_programs, shelf
from deepprox.solution import Solution
from deepprox.solve import Options, initial, solve
from deepprox.splitting.state import State
from deepprox.spreading import Spread, same
from deepprox.struct import replace

OF_SOME_FITS = ("n_passes_", "alpha_", "alphas_", "risks_")  # facts that not every fit leaves
STRENGTHS, STRONGEST, WEAKEST = 10, 0.1, 1e-3  # how many, for inputs and responses of spread 1; as a share
LEAST_BATCH, BATCHES = 8, 8  # rows of a batch, and how many batches the rows make, where a strength is chosen
FEWER = "give alpha a number, or take fewer alphas, folds or rows"
LARGEST_BATCH = 128  # rows of a batch of networks that are judged and no more


class Rows(NamedTuple):
    """Valid inputs, responses as the loss takes them, and how often every observation counts."""

    X: Any
    y: np.ndarray
    weight: np.ndarray
    one_column: bool


class Posed(NamedTuple):
    """A problem as an estimator poses it: the inputs' scale, given ``rho``, how many observations count.

    ``places`` says which row of the problem every observation became: -1 without weight.
    """

    problem: Problem
    scale: Scale
    rho: tuple[np.ndarray, ...] | None
    n: int
    one_column: bool
    places: np.ndarray = np.zeros(0, int)


class Part(NamedTuple):
    """Some rows of a posed problem in their own units, and their scale, that of inputs on the whole's."""

    posed: Posed
    scale: Scale


class Unseen(NamedTuple):
    """Networks of all strengths on parts of the rows, which others may judge."""

    parts: list[Part]
    lanes: Lanes

    def outputs(self, k: int, X: np.ndarray) -> np.ndarray:
        """``eta`` of the networks of a part at standardised inputs of the whole, strength by strength."""
        return self.lanes.outputs(k, self.parts[k].scale.standardize(np.array(X)))

    def errors(self, k: int, loss: Loss, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Their errors, strength by strength and row by row, in the units of the whole's loss."""
        return errors(loss, self.parts[k].posed.problem.loss, self.outputs(k, X), y)


def room_of(X: np.ndarray, network: Network, allsum: Spread) -> int:
    """How many rows there are with their padding, the same for everybody."""
    deep = len(network.blocks) > 1 and allsum == same
    return allsum.room(shelf(*X.shape) if deep else bucket(len(X)))


class Session:
    """A fit of one estimator with the settings that it has now.

    ``run`` may be called many times between ``pose`` and ``keep``; who needs another problem changes the
    record that ``pose`` returned.
    """

    def __init__(self, model: Any) -> None:
        self.model, self.settings = model, model.get_params(deep=False)
        self.response = response_of(model)
        self.chooses = isinstance(self.settings.get("alpha"), str) and self.settings["alpha"] == "auto"
        self.choice: dict[str, Any] = {}  # what it left, as fitted attributes
        if self.chooses:
            self.take(_resolve.DEFAULT_ALPHA)
        if self.goes_on:
            self.go_on()

    @property
    def goes_on(self) -> bool:
        """Whether a warm start has a strength that was chosen or taken before."""
        need_switch("warm_start", self.settings.get("warm_start", False))
        return self.chooses and bool(self.settings.get("warm_start")) and "alpha_" in vars(self.model)

    def take(self, alpha: Any) -> None:
        """This strength, of penalties given by name: the constant until one is chosen, or where none is."""
        self.settings["alpha"] = alpha
        if _resolve.by_name(self.settings["penalty"]):
            self.choice = {"alpha_": float(alpha)}

    def go_on(self) -> None:
        """The strength of the last fit, where there was one and no number is given."""
        if self.chooses and (last := vars(self.model).get("alpha_")) is not None:
            self.take(last)

    def read(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        """What a user gave, validated; the estimator learns the names of the inputs and the classes."""
        return self._read(X, y, sample_weight, ensure_min_samples=2)

    def read_more(self, X: Any, y: Any, sample_weight: Any, new: bool) -> Rows:
        """The same of a batch of a stream, of the first one where it is ``new``."""
        return self._read(X, y, sample_weight, more=True, reset=new)

    def _read(self, X: Any, y: Any, sample_weight: Any, more: bool = False, **checks: Any) -> Rows:
        dtype, response = _resolve.resolve_dtype(self.settings["dtype"]), self.response
        resolve_settings(self.settings)
        X, y = read(self.model, X, y, dtype=dtype, **checks, **response.checks)
        X, weight = dense(X) if more else X, counted(sample_weight, X)
        keep_programs()
        Y = response.encode_more(y) if more else response.encode(y, weight)
        return Rows(X, np.asarray(Y, dtype), weight, y.ndim == 1)

    def pose(self, rows: Rows) -> Posed:
        """The problem that these observations and the settings make."""
        X, Y, weight, one_column = rows
        dtype, allsum, settings = X.dtype, _resolve.resolve_devices(self.settings["devices"]), self.settings
        network = _resolve.resolve_network(settings, X.shape[1], Y.shape[1], dtype)
        loss = _resolve.resolve_loss(settings["loss"], self.response.losses, settings["join"], Y, dtype)
        rho = _resolve.resolve_rho(settings["rho"], len(network.blocks), len(Y))

        by_columns = self._by_columns(network, loss, X, Y, allsum)
        X = X if by_columns else dense(X)
        sparse = scipy.sparse.issparse(X)
        need(
            of_data(len(Y), (0 if sparse else X.shape[1]) + Y.shape[1], dtype.itemsize),
            of_columns(Y.shape[1] * (1 + X.shape[1]) if by_columns else 0),
        )
        counts = np.flatnonzero(weight)  # what has no weight is not there
        places = np.full(len(Y), -1)
        places[counts] = np.arange(len(counts))
        if len(counts) < len(Y):
            X, Y, weight = X[counts], Y[counts], weight[counts]
        if not sparse and (rho is None or all(r.ndim == 0 for r in rho)):
            X, Y, weight, places[counts] = merge(X, Y, weight, FEW_NUMBERS if by_columns else SORT_LIMIT)
        weight = weight / allsum(weight.sum())
        scale, loss = self._units(network, loss, X, Y, weight, allsum)
        room = len(Y) if by_columns else room_of(X, network, allsum)
        given, X = X, Sparse.of(X, *scale) if sparse else padded(scale.standardize(X), room)
        if X is given and given is rows.X:
            X = X.copy(order="K")  # kept with the fit, and the user's may change
        weight = np.concatenate([weight, np.zeros(room - len(Y))]).astype(dtype)
        problem = Problem(network, loss, X, padded(Y, room), weight, allsum)
        if allsum == same and not by_columns:  # what is spread goes to its devices later
            problem = jax.device_put(problem)
            problem.X.copy_to_host_async()  # kept with the fit: it comes back while a device computes
        if rho is not None:
            rho = tuple(np.asarray(r if r.ndim == 0 else padded(r[counts], room), dtype) for r in rho)
        return Posed(problem, scale, rho, int(allsum(len(counts))), one_column, places)

    def _units(
        self, network: Network, loss: Loss, X: np.ndarray, Y: np.ndarray, weight: np.ndarray, allsum: Spread
    ) -> tuple[Scale, Loss]:
        """The scale of the inputs, and the loss in the units of the responses."""
        standardize, centre = self.settings["standardize"], network.blocks[-1].free_bias
        scale = scale_of(X, weight, standardize, allsum, network.blocks[0].bias)
        unit = response_scale(Y, weight, standardize, allsum, centre)
        return scale, measured(loss, Y, weight, unit, allsum, centre)

    def part(self, posed: Posed, weight: np.ndarray) -> Part:
        """The problem of those rows that have a ``weight``, in units of their own, in as much room."""
        problem, rows = posed.problem, np.flatnonzero(weight)
        if not len(rows):
            raise ValueError("A fold leaves no row to fit networks on: take fewer or other folds (cv).")
        X, Y, weight = np.asarray(problem.X)[rows], np.asarray(problem.y)[rows], weight[rows] / weight.sum()
        settings, network = self.settings, problem.network
        loss = _resolve.resolve_loss(settings["loss"], self.response.losses, settings["join"], Y, X.dtype)
        scale, loss = self._units(network, loss, X, Y, weight, problem.allsum)
        room = len(problem.weight)
        whole = padded(scale.standardize(X), room), padded(Y, room)
        weight = np.concatenate([weight, np.zeros(room - len(X))]).astype(X.dtype)
        some = Problem(network, loss, *whole, weight, problem.allsum)
        return Part(Posed(some, scale.after(posed.scale), None, len(rows), posed.one_column, rows), scale)

    def unseen(
        self,
        posed: Posed,
        weights: Sequence[np.ndarray],
        networks: Sequence[Network],
        batch: int,
        told: Callable[[int, int], None] | None = None,
    ) -> Unseen:
        """These networks, of the batch phase, on rows with such weights, from a start for each of them."""
        (n, n_in), network, count = posed.problem.X.shape, posed.problem.network, len(weights)
        shapes, numbers = network.shapes(n_in), network.numbers(n_in)
        lanes = min(count, TOGETHER) * len(networks)
        costs = [
            of_data(count * n, n_in + posed.problem.y.shape[1], 4),
            of_path(count * len(networks), sum(a * b for a, b in shapes)),
            *of_fit(n, n_in, shapes, numbers, 4, lanes, False, batch),
        ]
        self._need_memory(posed.problem)  # what is said of one network is said first
        need(*(one._replace(change=FEWER) for one in costs))
        parts = [self.part(posed, weight) for weight in weights]
        seed = self._seed()
        starts = [
            self.random(part.posed.problem, part.posed.scale, 1, (seed, k))[0] for k, part in enumerate(parts)
        ]
        problems = [part.posed.problem for part in parts]
        budget = resolve_limits(self.settings, posed.problem)
        return Unseen(parts, train(problems, networks, starts, batch, told, budget))

    def _seed(self) -> int:
        """The seed of folds: a fit that can be resumed chooses again, and alike."""
        resumes = self.settings.get("checkpoint") is not None and self.settings["random_state"] is None
        return 0 if resumes else seed_of(self.settings["random_state"])

    def batch(self, posed: Posed) -> int:
        """How many rows a step draws where a strength is chosen, and in the fit at that strength then.

        A power of two, so that tables of about as many rows share programs.
        """
        size, n = self.settings["batch_size"], int(np.count_nonzero(posed.problem.weight))
        if is_whole(size):
            return int(size)
        return min(_resolve.BATCH, max(LEAST_BATCH, 1 << (max(n // BATCHES, 1).bit_length() - 1)))

    def _by_columns(self, network: Network, loss: Loss, X: Any, Y: np.ndarray, allsum: Spread) -> bool:
        """Whether the solver asks for columns, and not for a dense array of a shape that programs know."""
        settings, n_in = self.settings, X.shape[1]
        sparse = scipy.sparse.issparse(X)
        free = not self.chooses or self.goes_on or sparse  # no folds need dense rows
        if not settings["join"] or not free or asked(settings):
            return False
        if sparse and self._by_inputs(network, n_in, allsum):
            return True
        plain = settings["batch_size"] in (None, "auto")
        return plain and working_set.suits(network, loss, len(Y), n_in, allsum)

    def choose(self, posed: Posed) -> Posed:
        """The problem at the strength that predicts best what folds leave out, where ``alpha`` is "auto".

        Networks that are judged are those of the batch phase, and so is the one of all rows then. Rows that
        are in many places, stay sparse, or are fewer than two, have the constant, and a warm start has the
        last strength.
        """
        problem, settings = posed.problem, self.settings
        if not self.chooses or not _resolve.by_name(settings["penalty"]):
            return posed
        apart = problem.allsum != same or isinstance(problem.X, Sparse)
        if self.goes_on or apart or np.count_nonzero(problem.weight) < 2:
            return posed
        strengths = self.strengths(problem)
        networks = [self._at(problem.network, alpha) for alpha in strengths]
        ends = (jax.tree.leaves(networks[k]) for k in (0, -1))
        if all(np.array_equal(weak, strong) for weak, strong in zip(*ends, strict=True)):  # "none", say
            self.choice = {}
            return posed
        rng = np.random.default_rng(self._seed())
        few = posed._replace(problem=some(problem, rng))
        X, y, weight = (np.asarray(a) for a in (few.problem.X, few.problem.y, few.problem.weight))
        n_folds = min(FEW_FOLDS, int(np.count_nonzero(weight)))
        folds, batch = deal(few.problem, rng, n_folds), min(self.batch(few), LARGEST_BATCH)
        unseen = self.unseen(few, [np.where(folds == k, 0, weight) for k in range(n_folds)], networks, batch)
        held = [np.flatnonzero(folds == k) for k in range(n_folds)]
        shares = np.array([weight[rows].sum() for rows in held])
        each = [
            unseen.errors(k, problem.loss, X[rows], y[rows]) @ weight[rows] for k, rows in enumerate(held)
        ]
        found = risks(np.transpose(each) / shares, shares)
        if not np.isfinite(found.risk).any():
            return posed
        self.take(float(strengths[found.best]))
        if _resolve.resolve_batch(settings, problem, _resolve.MANY):  # a batch phase has a place here
            settings["batch_size"] = self.batch(posed)
        self.choice |= {"alphas_": strengths, "risks_": found.each}
        return posed._replace(problem=replace(problem, network=networks[found.best]))

    def strengths(self, problem: Problem, count: int = STRENGTHS, share: float = WEAKEST) -> np.ndarray:
        """``count`` of them up to the strongest, from a ``share`` of it on, in the units of a gradient.

        That is an input times a derivative of the loss.
        """
        grid = np.geomspace(share * STRONGEST, STRONGEST, count)
        if self.settings["standardize"]:
            return grid
        X, y, weight = (np.asarray(a, float) for a in (problem.X, problem.y, problem.weight))
        spreads = scale_of(X, weight, True).spread, scale_of(y, weight, True, what="Response").spread
        has_unit = isinstance(problem.loss, Real) and problem.loss.spread is None
        return grid * float(np.median(spreads[0]) * (np.median(spreads[1]) if has_unit else 1.0))

    def _at(self, network: Network, alpha: float) -> Network:
        """The network at another strength of the penalties that are given by name."""
        penalties = _resolve.resolve_penalties(self.settings["penalty"], alpha, len(network.blocks))
        dtype = _resolve.resolve_dtype(self.settings["dtype"])
        blocks = zip(network.blocks, penalties, strict=True)
        return Network(tuple(replace(block, penalty=as_arrays(one, dtype)) for block, one in blocks))

    def run(
        self,
        posed: Posed,
        watch: Any = None,
        W: Weights | None = None,
        memory: Memory | State | None = None,
        stages: Stages | None = None,
        **changes: Any,
    ) -> Solution:
        """The solution from ``W``, from the last solution, or from random starts."""
        settings, blocks = self.settings, posed.problem.network.blocks
        starts, warm = ([W], True) if W is not None else self.starts(posed.problem, posed.scale)
        budget = resolve_limits(settings, posed.problem) if W is None else None
        batch = self.batch(posed) if budget else _resolve.resolve_batch(settings, posed.problem, posed.n)
        direct = warm or len(blocks) == 1 or settings["splits"] == "none"
        options = Options(
            sweeps=0 if direct else min(Options().sweeps, settings["max_iter"]),
            batch=0 if warm else batch,
            budget=budget,
            join=bool(settings["join"]),
            warm=warm,
            splits=_resolve.resolve_splits(settings["splits"], len(blocks) - 1),
            rho=posed.rho,
            max_iter=int(settings["max_iter"]),
            tol=float(settings["tol"]),
        )
        found = solve(posed.problem, starts, options._replace(**changes), watch, memory, stages)
        if all(np.isfinite(w).all() for w in found.W):
            return found
        return replace(found, W=tuple(np.asarray(w) for w in starts[0]))

    def keep(self, found: Solution, posed: Posed, stream: Any = None) -> None:
        """The estimator becomes the fitted one; with a ``stream`` it keeps those sums in place of rows."""
        for old in OF_SOME_FITS:
            vars(self.model).pop(old, None)
        vars(self.model).update(self.choice)
        problem, scale, _, n, one_column, _ = posed
        if found.held:
            problem = replace(problem, network=found.held)
        self.model.fitted_ = Fitted.of(problem, scale, found, n, one_column, stream)

    def random(
        self, problem: Problem, scale: Scale, n_starts: int, seed: tuple[int, ...] | None = None
    ) -> list[Weights]:
        """Random starting weights."""
        seed = seed or (int(problem.allsum.first(seed_of(self.settings["random_state"]))),)
        # an input that never varies tells nothing, and no gradient would ever say so; where the problem is
        # convex all starts end in one place, and most weights of it are zero; so they are by columns
        first, by_columns = problem.network.blocks[0], takes(problem)
        starts, free = initial(problem, seed, n_starts), asked(self.settings)
        empty = [(problem.convex or (by_columns and k == 0)) and not free for k in range(n_starts)]
        return [(first.without(W[0], scale.constant | no), *W[1:]) for W, no in zip(starts, empty)]

    def starts(self, problem: Problem, scale: Scale) -> tuple[list[Weights], bool]:
        """Starting weights, and whether they are the last solution's."""
        shapes, last = problem.network.shapes(problem.X.shape[1]), vars(self.model).get("fitted_")
        again = self.settings["warm_start"] and last is not None and not asked(self.settings)
        if again and [w.shape for w in last.W] == shapes:
            W = [scale.from_inputs(last.scale.to_inputs(last.W[0])), *last.W[1:]]
            W[-1] = from_responses(problem.loss, to_responses(last.loss, W[-1]))
            return [tuple(np.asarray(w, problem.X.dtype) for w in W)], True
        self._need_memory(problem)
        return self.random(problem, scale, self.settings["n_init"]), False

    def _by_inputs(self, network: Network, n_in: int, allsum: Spread) -> bool:
        """Whether a network is solved on some of its inputs at a time."""
        plain = self.settings["join"] and isinstance(self.settings["rho"], str) and not asked(self.settings)
        return bool(plain) and screening.suits(network, n_in, allsum)

    def _need_memory(self, problem: Problem) -> None:
        """A sentence about a fit from random starts that this machine has no memory for."""
        if takes(problem) and self.settings["n_init"] == 1:
            return  # its one start was counted where it was posed
        (n, n_in), network = problem.X.shape, problem.network
        if self._by_inputs(network, n_in, problem.allsum):
            n_in = min(n_in, 2 * screening.FIRST)
        batch = _resolve.resolve_batch(self.settings, problem, n)
        sweeps = len(network.blocks) > 1 and self.settings["splits"] == "all" and not batch
        blocks, itemsize = (network.shapes(n_in), network.numbers(n_in)), problem.X.dtype.itemsize
        need(*of_fit(n, n_in, *blocks, itemsize, int(self.settings["n_init"]), sweeps, batch))
