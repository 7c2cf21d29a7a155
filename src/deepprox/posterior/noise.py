"""The noise of squared loss as one more unknown: ``sigma`` is drawn given the weights.

    p(y, W, sigma) = (2 pi sigma^2)^(-N/2) exp(-n mean_loss(W) / sigma^2)
                     exp(-n penalty(W) / sigma^2) / Z(sigma)  1 / sigma

The prior of ``sigma`` is that of Jeffreys, flat in its logarithm. Given any ``sigma`` the fit is the mode
of the weights. The prior of the weights is as wide as the noise says, so that its constant ``Z`` counts:
``Z(sigma) = Z(1) sigma^(2 d / q)`` for a penalty of degree ``q``, ``penalty(t w) = t^q penalty(w)``, on ``d``
weights; ``q`` is 1 for l1, groups and the nuclear norm, 2 for l2. Given the weights then, by conjugacy,

    sigma^2 ~ inverse gamma(N/2 + sum_blocks d/q, n (mean_loss(W) + penalty(W)))
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from deepprox.posterior.propriety import probe_penalties
from deepprox.posterior.target import Target
from deepprox.struct import replace

TINY = 1e-3  # a weight that every bounded penalty allows


def with_noise(target: Target) -> Target:
    """The same with ``sigma`` to be drawn, beginning where it is most probable given the fit."""
    power = _power(target)
    responses = float(target.n) * target.problem.y.shape[1]
    flat = int(((np.asarray(target.ridge) == 0) & ~_charged(target))[np.asarray(target.places)].sum())
    rate = float(rest(target, jnp.asarray(target.start)))
    if responses <= flat or not rate > 0:
        raise ValueError(
            "The posterior of sigma is improper: the fit explains the responses without an error: give sigma."
        )
    power += responses / 2
    return replace(target, noise=np.asarray(power), scale=np.asarray(float(target.n) * power / rate))


def rest(target: Target, w: Array) -> Array:
    """``n (mean_loss + penalty)``: what the noise and the prior have to explain."""
    return target.n * target.problem.objective(target.weights(w))


def draw_scale(target: Target, w: Array, key: Array) -> Array:
    """``n / sigma^2`` given the weights."""
    return target.n * jax.random.gamma(key, target.noise) / rest(target, w)


def _charged(target: Target) -> np.ndarray:
    """Which of all weights their penalty charges."""
    alone = probe_penalties(target.problem.network, target.shapes, TINY)[0]
    return np.isfinite(alone) & (alone > 0)


def _power(target: Target) -> float:
    """``sum_blocks d / q``, or a complaint about a penalty without a degree."""
    network, charged = target.problem.network, _charged(target)
    if any(block.activity is not None for block in network.blocks):
        raise ValueError("sigma='sampled' knows no constant of an activity: give sigma.")
    varies = np.zeros(charged.size, bool)
    varies[np.asarray(target.places)] = True
    w = np.where(varies, np.random.default_rng(0).uniform(0.5 * TINY, TINY, varies.size), 0.0)
    total, begin = 0.0, 0
    for block, shape in zip(network.blocks, target.shapes):
        here = slice(begin, begin + math.prod(shape))
        begin = here.stop
        d = int((charged & varies)[here].sum())
        if not d:
            continue
        once, twice, far = (float(block.value(jnp.asarray(t * w[here].reshape(shape)))) for t in (1, 2, 1e6))
        degree = math.log2(twice / once)
        if not math.isclose(math.log(far / once), degree * math.log(1e6), rel_tol=1e-6):
            raise ValueError(
                f"sigma='sampled' needs a penalty that is a power of the size of the weights, as l1 and l2 "
                f"are, and {type(block.penalty).__name__} is none: give sigma."
            )
        total += d / degree
    return total
