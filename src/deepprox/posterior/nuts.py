"""The no-U-turn sampler (Hoffman and Gelman 2014), by NumPyro, for priors with a derivative.

NumPyro adapts the step and the mass matrix of every chain by itself, in the windows of Stan. A kink at
zero, as that of the lasso, is no obstacle: the density has a gradient almost everywhere, and the Metropolis
weights of the trajectories use its values. What jumps or is bounded is one.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from deepprox.posterior.chains import CHUNK, Record
from deepprox.posterior.propriety import probe_penalties
from deepprox.posterior.target import Target

DENSE = 200  # weights up to which all correlations are followed
JUMP = 1e-4  # rise of the log prior over a weight of 1e-12 that is no slope


def suits(target: Target) -> bool:
    """Whether the prior is finite, without a jump, and has its kinks at zero only."""
    network = target.problem.network
    if not network.smooth:
        return False
    near = probe_penalties(network, target.shapes, 1e-12)[:, np.asarray(target.places)]
    far = probe_penalties(network, target.shapes, 1.0)[:, np.asarray(target.places)]
    return bool(np.isfinite(far).all() and (float(target.scale) * near < JUMP).all())


def need(target: Target) -> None:
    """Complain where NUTS cannot sample the target, or is not installed."""
    if not suits(target):
        raise ValueError(
            "method='nuts' follows gradients, and this penalty jumps, is bounded or has kinks away from "
            "zero: use method='proximal'."
        )
    try:
        import numpyro  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "method='nuts' needs NumPyro: pip install 'deepprox[posterior]', or use method='proximal'."
        ) from error


class NUTS:
    """Chains of NumPyro's sampler that start at the rows of ``starts``."""

    def __init__(self, target: Target, starts: np.ndarray, seed: int, n_warmup: int) -> None:
        from numpyro.infer import NUTS as Kernel

        kernel = Kernel(potential_fn=lambda w: -target.log_density(w), dense_mass=starts.shape[1] <= DENSE)
        keys = jax.random.split(jax.random.PRNGKey(seed), len(starts))
        # the warm-up is made in whole chunks
        n_warmup = -(-n_warmup // CHUNK) * CHUNK
        self.state = kernel.init(keys, n_warmup, jnp.asarray(starts), (), {})

        def one(state, _):
            state = kernel.sample(state, (), {})  # of all chains
            seen = {
                "w": state.z,
                "log_density": -state.potential_energy,
                "acceptance": state.accept_prob,
                "diverging": state.diverging,
                "n_steps": state.num_steps,
            }
            return state, seen

        self._chunk = jax.jit(lambda state: lax.scan(one, state, None, length=CHUNK))

    def warm_up(self, done: int, total: int) -> None:
        """A chunk; NumPyro knows by itself how far the adaptation is."""
        self.draw()

    def draw(self) -> Record:
        """The next chunk."""
        self.state, seen = self._chunk(self.state)
        return {name: np.asarray(values).swapaxes(0, 1) for name, values in seen.items()}
