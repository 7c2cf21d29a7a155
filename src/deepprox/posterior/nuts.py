"""The no-U-turn sampler (Hoffman and Gelman 2014), by NumPyro, for priors with a derivative.

NumPyro adapts the step and the mass matrix of every chain by itself, in the windows of Stan; the matrix is
full for one block where the warm-up has draws enough to know it, and diagonal otherwise. A kink at
zero, as that of the lasso, is no obstacle: the density has a gradient almost everywhere, and the Metropolis
weights of the trajectories use its values. What jumps or is bounded is one.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from deepprox.posterior.chains import CHUNK, Record
from deepprox.posterior.propriety import probe_penalties
from deepprox.posterior.target import Target

PER_WEIGHT = 5  # warm-up draws for each weight of one block from which all correlations are followed
JUMP = 1e-4  # rise of the log prior over a weight of 1e-12 that is no slope
STEEPER = 10  # times the slope up to 1e-8, up to 1e-12: a slope without bound


def suits(target: Target) -> bool:
    """Whether the prior is finite, without a jump, and has its kinks at zero only, of bounded slope."""
    network = target.problem.network
    if not network.smooth:
        return False
    near, by, far = (
        probe_penalties(network, target.shapes, size)[:, np.asarray(target.places)]
        for size in (1e-12, 1e-8, 1.0)
    )
    continuous = np.isfinite(far).all() and (float(target.scale) * near < JUMP).all()
    return bool(continuous and (near / 1e-12 <= STEEPER * by / 1e-8).all())


def need(target: Target) -> None:
    """Complain where NUTS cannot sample the target, or is not installed."""
    if not suits(target):
        raise ValueError(
            "method='nuts' follows gradients, and this penalty jumps, is bounded, has kinks away from zero "
            "or no bound on its slope there: use method='proximal'."
        )
    try:
        import numpyro  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "method='nuts' needs NumPyro: pip install 'deepprox[posterior]', or use method='proximal'."
        ) from error


def _kernel(target: Target, n_warmup: int) -> Any:
    from numpyro.infer import NUTS as Kernel

    # in a deeper network correlations change from place to place, and variances alone do as well
    dense = len(target.shapes) == 1 and PER_WEIGHT * target.places.shape[0] <= n_warmup
    return Kernel(potential_fn=lambda w: -target.log_density(w), dense_mass=dense)


@partial(jax.jit, static_argnames="n_warmup")
def begin(target: Target, starts: Array, keys: Array, n_warmup: int) -> Any:
    """NumPyro's state of all chains at their starts."""
    return _kernel(target, n_warmup).init(keys, n_warmup, starts, (), {})


@partial(jax.jit, static_argnames="n_warmup")
def chunk(target: Target, state: Any, n_warmup: int) -> tuple[Any, dict[str, Array]]:
    """``CHUNK`` draws of all chains."""
    kernel = _kernel(target, n_warmup)
    # a kernel learns its warm-up where it begins; the state that this makes is not used, nor computed
    kernel.init(state.rng_key, n_warmup, state.z, (), {})

    def one(state: Any, _: None) -> tuple[Any, dict[str, Array]]:
        state = kernel.sample(state, (), {})  # of all chains
        seen = {
            "w": state.z,
            "log_density": -state.potential_energy,
            "acceptance": state.accept_prob,
            "diverging": state.diverging,
            "n_steps": state.num_steps,
        }
        return state, seen

    return lax.scan(one, state, None, length=CHUNK)


class NUTS:
    """Chains of NumPyro's sampler that start at the rows of ``starts``."""

    def __init__(self, target: Target, starts: np.ndarray, seed: int, n_warmup: int) -> None:
        keys = jax.random.split(jax.random.PRNGKey(seed), len(starts))
        # the warm-up is made in whole chunks
        self.target, self.n_warmup = target, -(-n_warmup // CHUNK) * CHUNK
        self.state = begin(target, jnp.asarray(starts), keys, self.n_warmup)

    def warm_up(self, done: int, total: int) -> None:
        """A chunk; NumPyro knows by itself how far the adaptation is."""
        self.draw()

    def draw(self) -> Record:
        """The next chunk."""
        self.state, seen = chunk(self.target, self.state, self.n_warmup)
        return {name: np.asarray(values).swapaxes(0, 1) for name, values in seen.items()}
