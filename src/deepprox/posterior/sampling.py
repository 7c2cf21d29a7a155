"""From a fitted network to draws: which method, where chains start, what is kept."""

import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import jax
import numpy as np

from deepprox.checks import is_whole, need_name, need_verbose, shown
from deepprox.memory import need, of_draws
from deepprox.posterior import nuts, polya_gamma
from deepprox.posterior.alternating import Alternating
from deepprox.posterior.chains import Record, Sampler, collect
from deepprox.posterior.draws import Draws
from deepprox.posterior.laplace import Laplace, laplace
from deepprox.posterior.noise import with_noise
from deepprox.posterior.proximal import ProximalLangevin, first_covariance, spread_starts
from deepprox.posterior.target import BIAS_SCALE, Target, pose
from deepprox.problem import Network, Problem, Weights
from deepprox.solve import Options, in_dtype, initial, solve
from deepprox.struct import replace

METHODS = ("auto", "proximal", "proximal-unadjusted", "nuts", "polya-gamma", "laplace")
VARY = ("all", "last_block")
POINTS = 100  # observations at which function values are followed
SEARCH = 300  # iterations, at most, towards another mode for another chain


def sample_posterior(
    problem: Problem,
    W: Weights,
    n: int,
    *,
    method: str = "auto",
    n_chains: int = 4,
    n_draws: int = 1000,
    n_warmup: int = 1000,
    seed: int = 0,
    sigma: Any = None,
    bias_scale: float = BIAS_SCALE,
    thin: int | None = None,
    curvature: str = "auto",
    vary: str = "all",
    input_names: Sequence[str] = (),
    verbose: int = 0,
) -> Draws:
    """Draws around the fit ``W``; parameters as in ``sample_posterior`` of the estimators."""
    need_name("method", method, METHODS)
    need_name("vary", vary, VARY)
    _whole("n_chains", n_chains, 1)
    _whole("n_draws", n_draws, 4)
    _whole("n_warmup", n_warmup, 0)
    _whole("thin", 1 if thin is None else thin, 1)
    need_verbose(verbose)
    need(of_draws(n_chains, n_draws, sum(w.size for w in W)))
    began = time.perf_counter()
    whole, W = in_dtype(jax.tree.map(np.asarray, (problem, W)), np.float64)
    fixed = W[:-1] if vary == "last_block" else ()
    problem, W = last_block(whole, W) if fixed else (whole, W)
    sampled = _noise_too(problem, sigma, method)
    if method == "laplace":
        found = laplace(problem, W, n, sigma, bias_scale, curvature)
        target, record, complete = found.target, found.draw(n_chains, n_draws, seed), True
        facts = _facts(found, fixed)
    else:
        target = pose(problem, W, n, 1.0 if sampled else sigma, bias_scale)
        if method == "auto":
            method = "proximal" if sampled else choose(target)
        target = with_noise(target) if sampled else target
        sampler = _sampler(method, target, W, n_chains, n_warmup, seed, thin)
        (record, complete), facts = collect(sampler, n_warmup, n_draws, verbose), {}
    points, y = _points(whole)
    return Draws(
        W=_weights(target, record, fixed),
        method=method,
        network=whole.network,
        loss=problem.loss,
        points=points,
        y=y,
        sigma=record["sigma"] * problem.loss.unit() if sampled else sigma,
        statistics={name: values for name, values in record.items() if name not in ("w", "sigma")},
        input_names=tuple(map(str, input_names)),
        seconds=time.perf_counter() - began,
        complete=complete,
        **facts,
    )


def _facts(found: Laplace, fixed: Weights) -> dict[str, Any]:
    """What Laplace's approximation knows beside its draws."""
    mode = _weights(found.target, {"w": found.mode[None, None]}, fixed)
    evidence = {"log_evidence": found.log_evidence, "evidence_message": found.message}
    return {"mode": tuple(w[0, 0] for w in mode), **evidence}


def _noise_too(problem: Problem, sigma: Any, method: str) -> bool:
    """Whether the noise of the responses is one more unknown."""
    sampled = isinstance(sigma, str) and sigma == "sampled" and problem.loss.free_scale
    if sampled and method not in ("auto", "proximal", "proximal-unadjusted"):
        raise ValueError(
            f"sigma='sampled' is for method='proximal', got {method!r}: give sigma or change it."
        )
    return sampled


def _whole(name: str, value: Any, least: int) -> None:
    if not is_whole(value, least):
        raise ValueError(f"{name} must be a whole number of at least {least}, got {shown(value)}.")


def last_block(problem: Problem, W: Weights) -> tuple[Problem, Weights]:
    """The last block as a model of its own, whose inputs are what it reads at the fit, and its weights."""
    reads = np.asarray(problem.network.run(W, problem.X).reads[-1])
    return replace(problem, network=Network(problem.network.blocks[-1:]), X=reads), W[-1:]


def choose(target: Target) -> str:
    """Gibbs for one block where it can, else NUTS where the prior has a gradient, else proximal Langevin."""
    if len(target.shapes) == 1 and polya_gamma.suits(target) and find_spec("polyagamma"):
        return "polya-gamma"
    return "nuts" if nuts.suits(target) and find_spec("numpyro") else "proximal"


def _sampler(
    method: str, target: Target, W: Weights, n_chains: int, n_warmup: int, seed: int, thin: int | None
) -> Sampler:
    needs = {"nuts": nuts.need, "polya-gamma": polya_gamma.need}
    if method in needs:
        needs[method](target)
    covariance = first_covariance(target)
    starts = spread_starts(target, modes(target.problem, W, n_chains, seed), covariance, seed)
    if method == "nuts":
        return nuts.NUTS(target, starts, seed, n_warmup)
    if method == "polya-gamma":
        if len(W) == 1:
            return polya_gamma.PolyaGamma(target, starts, seed)
        return Alternating(target, starts, covariance, seed, thin)
    return ProximalLangevin(target, starts, covariance, seed, adjust=method == "proximal", thin=thin)


def modes(problem: Problem, W: Weights, n_chains: int, seed: int) -> list[Weights]:
    """The fit, and for other chains of a deep network what other random starts lead to."""
    if len(W) == 1:
        return [W] * n_chains
    found = [
        solve(problem, [start], Options(max_iter=SEARCH)).W for start in initial(problem, seed, n_chains - 1)
    ]
    return [W, *(other if all(np.isfinite(w).all() for w in other) else W for other in found)]


def _points(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    counts = np.flatnonzero(np.asarray(problem.weight))
    some = counts[np.linspace(0, len(counts) - 1, min(POINTS, len(counts))).astype(int)]
    return np.asarray(problem.X)[some], np.asarray(problem.y)[some]


def _weights(target: Target, record: Record, fixed: Weights) -> tuple[np.ndarray, ...]:
    """Draws of the weights of every block, the first ones where they are ``fixed``."""
    w = record["w"]
    whole = np.broadcast_to(np.asarray(target.at), (*w.shape[:2], len(target.at))).copy()
    whole[:, :, np.asarray(target.places)] = w
    ends = np.cumsum([a * b for a, b in target.shapes])
    parts = np.split(whole, ends[:-1], axis=2)
    drawn = (part.reshape(*w.shape[:2], *shape) for part, shape in zip(parts, target.shapes))
    return *(np.broadcast_to(each, (*w.shape[:2], *each.shape)) for each in fixed), *drawn
