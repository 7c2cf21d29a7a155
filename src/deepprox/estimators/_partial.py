"""``partial_fit``: a batch of rows at a time, of which the estimator keeps moving sums alone."""

import time
from typing import Any

import jax
import numpy as np

from deepprox import moving
from deepprox.estimators import _resolve
from deepprox.estimators._limits import need_none
from deepprox.estimators._standardize import Moments, Scale, measured, response_scale
from deepprox.estimators.session import Posed, Rows, Session
from deepprox.joining.live import Live
from deepprox.losses import Loss
from deepprox.memory import need, of_sums
from deepprox.moving import Past
from deepprox.network import Network, Weights
from deepprox.problem import Problem
from deepprox.runtime import bucket, precision
from deepprox.solution import Solution
from deepprox.solve import allowed

UNUSED = {"devices": None, "checkpoint": None, "warm_start": False}  # what a stream has no use for


def check_settings(model: Any) -> None:
    """One sentence for a setting that a stream cannot honour."""
    for name, wanted in UNUSED.items():
        if getattr(model, name) != wanted:
            raise ValueError(f"partial_fit needs {name}={wanted}, got {getattr(model, name)!r}.")
    need_none(model.get_params(deep=False), "A stream changes weights batch by batch")


def learn(model: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """A batch of a stream; the first one makes the network, and the others must be like it."""
    check_settings(model)
    session, last = Session(model), vars(model).get("fitted_")
    session.go_on()
    rows, settings = session.read_more(X, y, sample_weight, last is None), session.settings
    width, (n_out, dtype) = rows.X.shape[1], (rows.y.shape[1], rows.X.dtype)
    with precision(dtype):
        network = _resolve.resolve_network(settings, width, n_out, dtype)
        losses, join = session.response.losses, settings["join"]
        loss = _resolve.resolve_loss(settings["loss"], losses, join, rows.y, dtype)
        # units that the first responses set stay
        loss = in_units(loss, rows, settings["standardize"], network) if last is None else last.loss
        moments, past = (Moments.none(width), None) if last is None else stream_of(model, network)
        there = rows.weight > 0
        problem = Problem(network, loss, rows.X[there], rows.y[there], rows.weight[there])
        found, problem, scale, stream = taken(session, problem, moments, past)
        session.keep(found, Posed(problem, scale, None, stream[0][0], rows.one_column), stream)


def in_units(loss: Loss, rows: Rows, standardize: bool, network: Network) -> Loss:
    """The loss in the units of the responses of a first batch."""
    share, centre = rows.weight / rows.weight.sum(), network.blocks[-1].free_bias
    scale = response_scale(rows.y, share, standardize, centre=centre)
    return measured(loss, rows.y, share, scale, centre=centre)


def stream_of(model: Any, network: Network) -> tuple[Moments, Past]:
    """What a model knows of its stream; one that was fitted to data that it still has begins with these."""
    last = model.fitted_
    if network.shapes(model.n_features_in_) != [w.shape for w in last.W]:
        raise ValueError("The network has another shape than before: begin the stream with a new estimator.")
    if last.stream is None:
        scale, problem = last.scale, last.problem()
        past = jax.tree.map(np.asarray, jax.jit(moving.summed)(problem, last.W))
        if network.blocks[0].bias:
            return Moments.of(last.n, scale), past
        # on a scale without a centre inputs have means, and one that never varies may be left as it is
        mean = problem.weight @ problem.X
        return Moments.of(last.n, scale, mean, problem.weight @ (problem.X - mean) ** 2), past
    moments, past = (cls(*part) for cls, part in zip((Moments, Past), last.stream, strict=True))
    if jax.tree.map(np.shape, past) != jax.tree.map(np.shape, moving.nothing(last.W)):
        raise ValueError("The sums of this stream do not fit its weights: begin with a new estimator.")
    return moments, past


def batch(problem: Problem, scale: Scale) -> Problem:
    """A problem of raw rows as programs take it: on the common scale, padded with weight 0."""
    X, dtype = problem.X, problem.X.dtype
    rows = np.concatenate([np.arange(len(X)), np.zeros(bucket(len(X)) - len(X), int)])
    weight = np.where(np.arange(len(rows)) < len(X), problem.weight[rows], 0.0) / problem.weight.sum()
    inputs = scale.standardize(X)[rows]
    return Problem(problem.network, problem.loss, inputs, problem.y[rows], weight.astype(dtype))


def taken(
    session: Session, problem: Problem, moments: Moments, past: Past | None
) -> tuple[Solution, Problem, Scale, tuple[Any, ...]]:
    """What a batch makes of the stream: a solution, its problem, the scale, and what is kept of the rows."""
    began = time.perf_counter()
    before, moments = moments.weight, moments.added(problem.X, problem.weight)
    dtype, total = problem.X.dtype, float(problem.weight.sum())
    last, tol = vars(session.model).get("fitted_"), session.settings["tol"]
    scale = moments.scale(session.settings["standardize"], dtype, problem.network.blocks[0].bias)
    problem = batch(problem, scale)
    if past is None or last is None:
        need(of_sums(problem.network.shapes(problem.X.shape[1]), dtype.itemsize))
        start = session.random(problem, scale, 1)[0]
        past = moving.nothing(start)
    else:
        start = scale.from_inputs(last.scale.to_inputs(last.W[0])), *last.W[1:]
        past = moving.rescaled(past, change_of(last.scale, scale))
    # another scale may have moved the weights out of where the penalty is finite
    inside = tuple(allowed(block, w) for block, w in zip(problem.network.blocks, start, strict=True))
    past = moving.moved(past, start, inside)
    start, past = jax.tree.map(lambda leaf: np.asarray(leaf, dtype), (inside, past))
    share = np.asarray(moving.share_of(total, before, len(start)), dtype)
    W, live, past = moving.learn(problem, start, past, share, np.asarray(tol, dtype))
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((W, past))):
        raise ValueError(
            "The loss of this batch is not finite: look for outliers in it, or leave it out. The model is as "
            "it was before."
        )
    history = [] if last is None or last.stream is None else last.solution.history
    found = solution(problem, W, live, float(past.value), moments.n, history, time.perf_counter() - began)
    return found, problem, scale, (tuple(moments), tuple(past))


def change_of(old: Scale, new: Scale) -> np.ndarray:
    """The matrix that takes ``[1, x]`` on one scale to another."""
    slopes = np.diag(np.concatenate([[1.0], old.spread / new.spread]))
    slopes[1:, 0] = (old.mean - new.mean) / new.spread
    return slopes


def solution(
    problem: Problem,
    W: Weights,
    live: Live,
    loss: float,
    n: int,
    before: list[dict[str, Any]],
    seconds: float,
) -> Solution:
    """A batch as a row of the history, and the weights after it as what they are: no solution yet."""
    objective = loss + float(problem.network.penalty(W))
    count, n_nonzero = len(before) + 1, int(sum(np.count_nonzero(w) for w in W))
    row = {"phase": "stream", "iteration": count, "objective": objective, "loss": loss}
    return Solution(
        W=tuple(W),
        live=live,
        objective=objective,
        loss=loss,
        penalty=objective - loss,
        certificate=np.inf,
        primal=0.0,
        dual=0.0,
        status="streaming",
        message=f"streaming: {n} rows so far, of which sums are kept: there is no certificate",
        n_iter=count,
        n_held=0,
        strict=None,
        starts=(objective,),
        history=[*before, row | {"n_nonzero": n_nonzero, "rows": n}],
        seconds={"stream": seconds},
    )
