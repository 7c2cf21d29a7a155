"""The softmax prox four ways: Newton, the quadratic envelopes of Bohning and of Bouchard, and a mixture.

All minimise ``logsumexp(eta) - y' eta + |eta - v|^2 / (2 step)`` in every observation. An envelope
is a quadratic above ``logsumexp`` that touches it at the present ``eta``; it is minimised in closed form:

    Bohning (1992)   curvature (I - 11'/k) / 2 everywhere, gradient that of the softmax
    Bouchard (2007)  a + sum_j [(eta_j - a - t_j)/2 + lambda(t_j) ((eta_j - a)^2 - t_j^2) + log(1 + exp(t_j))]
                     with t_j = |eta_j - a|, a chosen anew in every step; it touches nowhere and so ends
                     at another point than the prox
    Either           in every step Newton's proposal or Bohning's, whichever is lower

A cold search starts from ``v``; a warm one from the prox at a neighbour of ``v``, as in a sweep of ADMM.
"""

import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from benchmarks import show
from deepprox.losses import Softmax

COLD, WARM = (1, 4, 16, 64), (1, 4)
ROWS = 1000


def newton(v: Array, y: Array, step: Array, eta: Array, steps: int) -> Array:
    """What the library does."""
    return Softmax().prox(v, y, step, eta, steps)


def bohning(v: Array, y: Array, step: Array, eta: Array, steps: int) -> Array:
    """Along 1 the curvature is 1/step, across it 1/2 + 1/step."""
    return lax.fori_loop(0, steps, lambda _, eta: bohning_step(v, y, step, eta), eta)


def bohning_step(v: Array, y: Array, step: Array, eta: Array) -> Array:
    """The minimiser of Bohning's envelope at ``eta``."""
    slope = jax.nn.softmax(eta, axis=-1) - y + (eta - v) / step
    along = slope.mean(-1, keepdims=True)
    return eta - (slope - along) / (0.5 + 1 / step) - along * step


def either(v: Array, y: Array, step: Array, eta: Array, steps: int) -> Array:
    """No step is wasted: where Newton's is too long, Bohning's descends."""

    def update(_: int, eta: Array) -> Array:
        trials = jnp.stack([newton(v, y, step, eta, 1), bohning_step(v, y, step, eta)])
        merits = jax.vmap(merit, (0, None, None, None))(trials, v, y, step)
        return jnp.where((merits[0] <= merits[1])[:, None], trials[0], trials[1])

    return lax.fori_loop(0, steps, update, eta)


def bouchard(v: Array, y: Array, step: Array, eta: Array, steps: int) -> Array:
    """``eta_j`` on its own given ``a``, and ``a`` where Bouchard's bound is least given ``eta``."""
    k = eta.shape[-1]

    def curvature(t: Array) -> Array:
        safe = jnp.where(t > 1e-4, t, 1.0)
        return jnp.where(t > 1e-4, jnp.tanh(safe / 2) / (4 * safe), 1 / 8)

    def update(_: int, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        eta, a = carry
        bend = curvature(jnp.abs(eta - a))
        a = ((k / 2 - 1) / 2 + (bend * eta).sum(-1, keepdims=True)) / bend.sum(-1, keepdims=True)
        bend = curvature(jnp.abs(eta - a))
        eta = (y - 0.5 + 2 * bend * a + v / step) / (2 * bend + 1 / step)
        return eta, a

    start = jax.nn.logsumexp(eta, axis=-1, keepdims=True)
    return lax.fori_loop(0, steps, update, (eta, start))[0]


@jax.jit
def merit(eta: Array, v: Array, y: Array, step: Array) -> Array:
    """What a prox minimises."""
    return Softmax().value(eta, y) + ((eta - v) ** 2).sum(-1) / (2 * step)


def seconds_of(run: partial, repeats: int = 5) -> float:
    """The fastest of a few calls, compiled before."""
    run().block_until_ready()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        run().block_until_ready()
        times.append(time.perf_counter() - began)
    return min(times)


def main() -> None:
    """Mean excess over the minimum after some steps, cold and warm, and the time of 4 steps."""
    ways = {"Newton": newton, "Bohning": bohning, "Bouchard": bouchard, "Either": either}
    compiled = {name: jax.jit(way, static_argnames="steps") for name, way in ways.items()}
    rng, rows = np.random.default_rng(0), []
    with jax.enable_x64(True):
        for k in (3, 10, 100):
            v = jnp.asarray(rng.normal(0, 3, (ROWS, k)))
            y = jnp.eye(k)[rng.integers(k, size=ROWS)]
            near = v + 0.3 * rng.normal(size=v.shape)
            for step in (0.1, 1.0, 10.0, 100.0):
                best = merit(compiled["Newton"](v, y, step, v, steps=200), v, y, step)
                last = compiled["Newton"](near, y, step, near, steps=200)
                for name, prox in compiled.items():
                    searches = [(n, v) for n in COLD] + [(n, last) for n in WARM]
                    ends = [prox(v, y, step, start, steps=n) for n, start in searches]
                    excess = [float((merit(end, v, y, step) - best).mean()) for end in ends]
                    cost = seconds_of(partial(prox, v, y, step, v, steps=4)) / ROWS
                    shown = [f"{max(number, 0):.1e}" for number in excess]
                    rows.append([f"k {k}, step {step:g}: {name}", *shown, 1e6 * cost])
    columns = ["", *(f"cold, {n}" for n in COLD), *(f"warm, {n}" for n in WARM), "microseconds for 4"]
    show.table(f"Softmax prox: mean excess of {ROWS} observations after some steps", columns, rows)
