"""Polya-Gamma inside a network: the last block by Gibbs, the hidden blocks by proximal Langevin, in turn.

Given what the hidden units do, the last block of a classifier is a logistic or multinomial regression on
it (:mod:`deepprox.posterior.polya_gamma`); given the last block, the hidden weights have a density with a
gradient and a prox (:mod:`deepprox.posterior.proximal`). Each leaves the posterior as it is, and so do both
in turn.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from deepprox.posterior.chains import CHUNK, Record
from deepprox.posterior.polya_gamma import PolyaGamma
from deepprox.posterior.proximal import ACCEPTANCE, THIN_DEEP, Adaptation, Tuning, look, move
from deepprox.posterior.target import Target
from deepprox.struct import replace


@partial(jax.jit, static_argnames="thin")
def hidden_steps(
    target: Target,
    whole: Array,
    adaptation: Adaptation,
    key: Array,
    root: Array,
    envelope: Array,
    adapting: Array,
    thin: int,
) -> tuple[Array, Adaptation, Array, Array]:
    """``thin`` steps of the hidden weights of every chain; then what its last block reads, and acceptance."""
    n_chains, problem = len(whole), target.problem

    def chain(at: Array, key: Array, step: Array) -> tuple[Array, Array]:
        here = replace(target, at=at)
        position = look(here, at[target.places], envelope)
        position, probability = move(here, position, key, step, root, envelope, jnp.asarray(True))
        return here.whole(position.w), probability

    def one(carry: Any, key: Array) -> tuple[Any, Array]:
        whole, adaptation = carry
        step = jnp.exp(jnp.where(adapting, adaptation.log_step, adaptation.average))
        keys = jax.random.split(key, n_chains)
        whole, probability = jax.vmap(chain, in_axes=(0, 0, None))(whole, keys, step)
        after = adaptation.after(probability.mean(), jnp.asarray(ACCEPTANCE))
        adaptation = jax.tree.map(lambda new, old: jnp.where(adapting, new, old), after, adaptation)
        return (whole, adaptation), probability

    def features(at: Array) -> Array:
        W = replace(target, at=at).weights(at[target.places])
        return problem.network.blocks[-1].features(problem.network.run(W, problem.X).reads[-1])

    (whole, adaptation), probability = lax.scan(one, (whole, adaptation), jax.random.split(key, thin))
    return whole, adaptation, jax.vmap(features)(whole), probability.mean(0)


class Alternating:
    """Chains that start at the rows of ``starts``, the last block of their network drawn by Gibbs."""

    def __init__(
        self, target: Target, starts: np.ndarray, covariance: np.ndarray, seed: int, thin: int | None = None
    ) -> None:
        n_last = target.shapes[-1][0] * target.shapes[-1][1]
        self.places = np.asarray(target.places)
        hidden = self.places < len(target.at) - n_last  # the weights of the last block begin there
        self.whole = np.tile(np.asarray(target.at), (len(starts), 1))
        self.whole[:, self.places] = starts
        self.last, self.thin = self.places[~hidden], thin or THIN_DEEP
        self.hidden = replace(target, places=self.places[hidden])
        self.block = target.problem.network.blocks[-1]
        self.gibbs = PolyaGamma(target, self.whole[:, self.last], seed)
        self.counts = np.asarray(target.problem.weight) > 0
        self.tuning = Tuning(covariance[hidden])
        self.key = jax.random.key(seed)

    def warm_up(self, done: int, total: int) -> None:
        """A chunk, and what is learnt of the hidden weights."""
        w = self._advance(adapting=True)["w"]
        self.tuning.learn(w[:, :, : len(self.hidden.places)], done, total)

    def draw(self) -> Record:
        """A chunk at the step that was found."""
        return self._advance(adapting=False)

    def _advance(self, adapting: bool) -> Record:
        out, accepted = [], []
        for _ in range(CHUNK):
            accepted.append(self.round(adapting))
            out.append(self.whole[:, self.places])
        return {"w": np.stack(out, 1), "acceptance": np.stack(accepted, 1)}

    def round(self, adapting: bool) -> np.ndarray:
        """The hidden blocks of every chain and then its last one; the acceptance of the former."""
        self.key, key = jax.random.split(self.key)
        whole, self.tuning.adaptation, F, acceptance = hidden_steps(
            self.hidden,
            self.whole,
            self.tuning.adaptation,
            key,
            self.tuning.root,
            self.tuning.envelope,
            np.asarray(adapting),
            self.thin,
        )
        self.whole = np.array(whole)
        for chain, reads in enumerate(np.asarray(F)):
            self.gibbs.F = self.block.own(reads[self.counts])
            last = self.whole[chain, self.last].reshape(self.gibbs.rate.shape)
            self.whole[chain, self.last] = self.gibbs.sweep(last, self.gibbs.rngs[chain]).ravel()
        return np.asarray(acceptance)
