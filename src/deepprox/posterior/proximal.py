"""Proximal Langevin: draws from a posterior of which only ``value`` and ``prox`` of the penalty are known.

With ``f`` minus the log likelihood and ``g`` minus the log prior, ``g`` is replaced in the drift, and only
there, by its Moreau-Yosida envelope of parameter ``l``, which has a gradient:

    drift(w) = grad f(w) + (w - prox_g(w, l)) / l
    w' = w - (step / 2) M drift(w) + sqrt(step M) xi,            xi standard Gaussian

Taken as it is, this is the unadjusted algorithm (MYULA; Durmus, Moulines, Pereyra 2018), whose draws have
a bias that shrinks with ``step``. With a Metropolis test on the posterior itself it is proximal MALA (Pereyra
2016), whose draws have none, whatever ``l`` and ``M``: any penalty with a prox is a prior that can be
sampled, convex or not, smooth or not, bounded or not.

``M`` is an estimate of the covariance. It begins with the inverse of the Gauss-Newton curvature at the fit
and becomes the covariance of the warm-up draws around the means of their chains, with all correlations up
to 200 weights (1000 of one block) and the variances alone above. A prox on an ``M`` is known for penalties
that add up over weights only; the envelope above needs the prox for one number ``l``, so that ``M`` is
free. ``l`` is half a step of the tightest weight.

``step`` follows the acceptance of all chains together by dual averaging (Hoffman and Gelman 2014), towards
0.574, the best for Langevin proposals (Roberts and Rosenthal 1998). Without the test it is adapted with it,
towards 0.95, so that what the test would still mend is small.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from deepprox.joining.certificate import ravel, unravel
from deepprox.joining.hessian import hessian, loss_hessian
from deepprox.joining.kinks import no_slopes
from deepprox.posterior.chains import CHUNK, Record
from deepprox.posterior.noise import draw_scale
from deepprox.posterior.target import Target
from deepprox.statistics.curvature import diagonal, responses
from deepprox.struct import replace

DENSE, DENSE_ONE = 200, 1000  # weights up to which all correlations are followed; of one block
THIN, THIN_DEEP = 5, 20  # steps for each draw that is kept, of one block and of more
ACCEPTANCE, CAREFUL = 0.574, 0.95  # wanted with the Metropolis test, and without
WINDOWS = (0.1, 0.25, 0.5, 0.85)  # shares of the warm-up after which the covariance is taken anew
NUDGE = 1e-3  # the weight at which the pull of the penalty is felt


class Position(NamedTuple):
    """Where a chain is: its weights, their log density and drift, and the scale of the target there."""

    w: Array
    log_density: Array
    drift: Array
    scale: Array


class Adaptation(NamedTuple):
    """Dual averaging of the logarithm of the step."""

    log_step: Array
    average: Array
    error: Array
    centre: Array
    taken: Array

    @classmethod
    def begin(cls, step: float) -> "Adaptation":
        """From a first guess, which is a tenth of the centre of the search, as in Stan."""
        # NumPy's numbers: a Python number is of a weaker type, and the next chunk would be compiled anew
        return cls(*map(jnp.asarray, np.array([np.log(step), np.log(step), 0.0, np.log(10 * step), 0.0])))

    def after(self, acceptance: Array, wanted: Array) -> "Adaptation":
        """One step on: towards longer steps where more was accepted than wanted."""
        taken = self.taken + 1
        rate = 1 / (taken + 10)
        error = (1 - rate) * self.error + rate * (wanted - acceptance)
        log_step = self.centre - jnp.sqrt(taken) / 0.05 * error
        weight = taken**-0.75
        return Adaptation(
            log_step, weight * log_step + (1 - weight) * self.average, error, self.centre, taken
        )


def look(target: Target, w: Array, envelope: Array) -> Position:
    """The log density and the drift at ``w``."""
    value, gradient = jax.value_and_grad(target.smooth)(w)
    log_density = -(value + target.penalty(w))
    drift = gradient + (w - target.prox(w, envelope)) / envelope
    log_density = jnp.where(jnp.isnan(log_density), -jnp.inf, log_density)
    return Position(w, log_density, drift, jnp.asarray(target.scale))


def times(root: Array, v: Array, transposed: bool = False) -> Array:
    """``L v`` or ``L' v`` with ``M = L L'``; a vector ``L`` is a diagonal."""
    if root.ndim == 1:
        return root * v
    return v @ root if transposed else root @ v


def move(
    target: Target, at: Position, key: Array, step: Array, root: Array, envelope: Array, adjust: Array
) -> tuple[Position, Array]:
    """One step of one chain, and the probability with which the Metropolis test takes it."""
    noise_key, test_key = jax.random.split(key)
    noise = jax.random.normal(noise_key, at.w.shape, at.w.dtype)
    pull = step / 2 * times(root, at.drift, transposed=True)
    there = look(target, at.w + times(root, jnp.sqrt(step) * noise - pull), envelope)
    # the noise that would lead back
    back = (pull + step / 2 * times(root, there.drift, transposed=True)) / jnp.sqrt(step) - noise
    log_ratio = there.log_density - at.log_density + (noise @ noise - back @ back) / 2
    probability = jnp.exp(jnp.minimum(jnp.where(jnp.isnan(log_ratio), -jnp.inf, log_ratio), 0.0))
    taken = (jax.random.uniform(test_key) < probability) | (~adjust & jnp.isfinite(there.log_density))
    return jax.tree.map(lambda new, old: jnp.where(taken, new, old), there, at), probability


@partial(jax.jit, static_argnames="thin")
def chunk(
    target: Target,
    at: Position,
    adaptation: Adaptation,
    key: Array,
    root: Array,
    envelope: Array,
    wanted: Array,
    adapting: Array,
    adjust: Array,
    thin: int,
) -> tuple[Position, Adaptation, dict[str, Array]]:
    """``CHUNK`` draws of all chains, ``thin`` steps each."""
    n_chains = at.w.shape[0]

    def one(carry: Any, key: Array) -> tuple[Any, Array]:
        at, adaptation = carry
        step = jnp.exp(jnp.where(adapting, adaptation.log_step, adaptation.average))
        at, probability = jax.vmap(
            lambda at, key: move(replace(target, scale=at.scale), at, key, step, root, envelope, adjust)
        )(at, jax.random.split(key, n_chains))
        after = adaptation.after(probability.mean(), wanted)
        adaptation = jax.tree.map(lambda new, old: jnp.where(adapting, new, old), after, adaptation)
        return (at, adaptation), probability

    def sigma_step(at: Position, key: Array) -> Position:
        return look(replace(target, scale=draw_scale(target, at.w, key)), at.w, envelope)

    def draw(carry: Any, key: Array) -> tuple[Any, dict[str, Array]]:
        (at, adaptation), probability = lax.scan(one, carry, jax.random.split(key, thin))
        seen = {"acceptance": probability.mean(0)}
        if target.noise is not None:
            at = jax.vmap(sigma_step)(at, jax.random.split(jax.random.fold_in(key, thin), n_chains))
            seen["sigma"] = jnp.sqrt(target.n / at.scale)
        return (at, adaptation), seen | {"w": at.w, "log_density": joint_log_density(target, at)}

    carry, seen = lax.scan(draw, (at, adaptation), jax.random.split(key, CHUNK))
    return *carry, jax.tree.map(lambda a: a.swapaxes(0, 1), seen)


def joint_log_density(target: Target, at: Position) -> Array:
    """Of the weights, and of the logarithm of sigma where it is drawn."""
    return at.log_density if target.noise is None else at.log_density + target.noise * jnp.log(at.scale)


@jax.jit
def looks(target: Target, W: Array, scale: Array, envelope: Array) -> Position:
    """The positions of all chains, each at its scale."""
    return jax.vmap(lambda w, scale: look(replace(target, scale=scale), w, envelope))(W, scale)


class Tuning:
    """Step, covariance and envelope, and how they follow the draws of a warm-up."""

    def __init__(self, covariance: np.ndarray) -> None:
        self.root = root_of(covariance)
        self._seen: list[np.ndarray] = []
        self._begin(len(covariance) ** (-1 / 3))

    def learn(self, w: np.ndarray, done: int, total: int) -> bool:
        """Take in a chunk; where a window ends its covariance is the next ``M``, with a new step."""
        self._seen.append(w)
        if not any(done < share * total <= min(done + CHUNK, total) for share in WINDOWS):
            return False
        self.root = root_of(_covariance(np.concatenate(self._seen, axis=1), self.root))
        self._seen = []
        self._begin(float(np.exp(self.adaptation.average)))
        return True

    def _begin(self, step: float) -> None:
        variances = self.root**2 if self.root.ndim == 1 else (self.root**2).sum(1)
        self.envelope = np.asarray(step / 2 * variances.min())
        self.adaptation = Adaptation.begin(step)


class ProximalLangevin:
    """Proximal MALA, or MYULA without ``adjust``, of chains that start at the rows of ``starts``."""

    def __init__(
        self,
        target: Target,
        starts: np.ndarray,
        covariance: np.ndarray,
        seed: int,
        adjust: bool = True,
        thin: int | None = None,
    ) -> None:
        self.target, self.adjust = target, adjust
        self.thin = thin or (THIN if len(target.shapes) == 1 else THIN_DEEP)
        self.key = jax.random.key(seed)
        self.tuning = Tuning(covariance)
        scales = np.full(len(starts), target.scale)
        self.at = looks(target, jnp.asarray(starts), scales, self.tuning.envelope)

    def warm_up(self, done: int, total: int) -> None:
        """A chunk, and what is learnt from it."""
        if self.tuning.learn(self._advance(adapting=True)["w"], done, total):
            self.at = looks(self.target, self.at.w, self.at.scale, self.tuning.envelope)

    def draw(self) -> Record:
        """A chunk at the step that was found."""
        return self._advance(adapting=False)

    def _advance(self, adapting: bool) -> Record:
        self.key, key = jax.random.split(self.key)
        self.at, self.tuning.adaptation, seen = chunk(
            self.target,
            self.at,
            self.tuning.adaptation,
            key,
            self.tuning.root,
            self.tuning.envelope,
            np.asarray(ACCEPTANCE if self.adjust else CAREFUL),
            np.asarray(adapting),
            np.asarray(self.adjust or adapting),
            self.thin,
        )
        return {name: np.asarray(values) for name, values in seen.items()}


def first_covariance(target: Target) -> np.ndarray:
    """The inverse of the Gauss-Newton curvature at the fit, with the pull of the priors squared.

    A matrix for one block of few weights, the inverse of the diagonal otherwise: in a deeper network
    another chain may be at another mode.
    """
    W = unravel(target.at, tuple(np.zeros(shape) for shape in target.shapes))
    places, scale, slopes = np.asarray(target.places), float(target.scale), no_slopes(target.problem)
    v, length = target.start[None] + NUDGE, NUDGE**2
    pull = (v - np.asarray(proxes(target, v, np.asarray(length / scale))))[0] * scale / length
    anchored = np.asarray(target.anchor)[places]
    own = np.minimum(pull**2, scale * 1e6) + np.asarray(target.ridge)[places] + 1e-6
    if len(W) > 1 or places.size > DENSE_ONE:
        return 1 / (own + anchored**2 + scale * diagonal(target.problem, W, slopes, places))
    G = loss_hessian(responses(target.problem, W), W, slopes, places)
    bends = np.maximum(np.diag(hessian(target.problem, W, slopes, places).penalty), 0)
    return np.linalg.inv(scale * (G + np.diag(bends)) + np.diag(own) + np.outer(anchored, anchored))


def _covariance(draws: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Of draws around the means of their chains, shrunk: few draws tell little of a matrix."""
    centred = (draws - draws.mean(1, keepdims=True)).reshape(-1, draws.shape[2])
    n, d = centred.shape
    # repeated draws of slow chains carry less than their number
    if root.ndim == 1 and d > DENSE:
        return (n * (centred**2).mean(0) + 10 * root**2) / (n + 10)
    spread = np.cov(centred, rowvar=False).reshape(d, d)
    before = np.diag(np.diag(spread)) if root.ndim == 1 else root @ root.T
    return (n * spread + 10 * d * before) / (n + 10 * d) + 1e-12 * np.eye(d)


def root_of(M: np.ndarray) -> np.ndarray:
    """``L`` with ``M = L L'``; of a vector its square root."""
    return np.sqrt(M) if M.ndim == 1 else np.linalg.cholesky(M)


@jax.jit
def proxes(target: Target, V: Array, step: Array) -> Array:
    """The prox of every row."""
    return jax.vmap(lambda v: target.prox(v, step))(V)


@jax.jit
def penalties(target: Target, W: Array) -> Array:
    """The penalty of every row."""
    return jax.vmap(target.penalty)(W)


def spread_starts(target: Target, modes: list[Any], covariance: np.ndarray, seed: int) -> np.ndarray:
    """A start for every mode, moved by a draw of the covariance, to where the prior is finite."""
    root = root_of(covariance)
    rng = np.random.default_rng(seed)
    places = np.asarray(target.places)
    W = np.array([ravel(mode)[places] for mode in modes])
    noise = rng.standard_normal(W.shape)
    moved = W + (root * noise if root.ndim == 1 else noise @ root.T)
    allowed = np.isfinite(np.asarray(penalties(target, moved)))
    return np.where(allowed[:, None], moved, np.asarray(proxes(target, moved, np.asarray(1e-12))))
