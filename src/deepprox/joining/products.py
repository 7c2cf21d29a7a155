"""Second derivatives by products: for any block, one pass there and back for each live weight.

Steps that level free biases of the outputs make up for a ``pull`` on the mean of what products of two weights
add to these: so with ``told`` the pass at ``V`` without such products, from the activations of ``W``,

    told:  z_l = W_l told_{l-1} + (V_l - W_l) a_{l-1},

they are the second derivatives of ``loss(V) - pull' mean(eta(V) - told(V))`` at ``V = W``.
:mod:`deepprox.joining.bends` is a faster way where every number is a unit with weights of its own.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from deepprox import traces
from deepprox.joining import kinks as kinks_
from deepprox.joining.certificate import flatten
from deepprox.joining.kinks import Slopes
from deepprox.problem import Problem, Weights


def columns(
    problem: Problem, W: Weights, slopes: Slopes, live: np.ndarray, pull: np.ndarray, blurred: bool
) -> np.ndarray:
    """Second derivatives of the mean loss in the weights ``live``, of the rows of a problem."""
    index = np.full(max(32, 1 << (live.size - 1).bit_length()), np.iinfo(np.int32).max, np.int32)
    index[: live.size] = live
    H = np.asarray(_columns(problem, W, slopes, index, pull, blurred), float)[: live.size, : live.size]
    return (H + H.T) / 2


@partial(traces.jit, static_argnames=("blurred",))
def _columns(
    problem: Problem, W: Weights, slopes: Slopes, index: Array, pull: Array, blurred: bool = False
) -> Array:
    w, flat = flatten(problem, W)
    network, nobody = problem.network, jnp.zeros((len(problem.X), 1), bool)
    run = partial(kinks_.forward, problem, slopes=slopes, ride=nobody, blurred=blurred)
    here = run(W).reads

    def smooth(v: Array) -> Array:
        V = flat.unravel(v)
        at = run(V)
        told = run(W, on_z=[b.linear(v - w, r) for b, v, w, r in zip(network.blocks, V, W, here)])
        # the majoriser: an activity may tie observations together
        acts = network.activity(at.Z, at.activations, problem.weight, majorised=True)
        return problem.data_loss(at.Z[-1]) + acts - pull @ (problem.weight @ (at.Z[-1] - told.Z[-1]))

    def column(j: Array) -> Array:
        direction = jnp.zeros_like(w).at[j].set(1.0, mode="drop")
        return jax.jvp(jax.grad(smooth), (w,), (direction,))[1].at[index].get(mode="fill", fill_value=0.0)

    return lax.map(column, index)
