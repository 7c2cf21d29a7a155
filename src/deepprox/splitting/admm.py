"""The split phase: sweeps of Z-step, W-step of all blocks at once, and U-step."""

from functools import partial
from typing import Any, NamedTuple

import jax
from jax import lax

from deepprox.problem import Problem
from deepprox.splitting.continuation import grow
from deepprox.splitting.residuals import measure
from deepprox.splitting.segments import fit, pieces_of
from deepprox.splitting.state import Info, State, features
from deepprox.splitting.u_step import u_step
from deepprox.splitting.w_step import w_steps
from deepprox.splitting.z_step import z_step
from deepprox.spreading import program
from deepprox.struct import replace


class Pace(NamedTuple):
    """Over-relaxation of ``Z`` (1 is none), growth of ``rho`` a sweep, and where it ends."""

    relaxation: Any = 1.0
    growth: Any = 1.02
    rho_max: Any = 10.0


class Inner(NamedTuple):
    """Inner iterations: majorisations of a Z-step, Newton steps in each, steps of a W-step."""

    z: int = 2
    newton: int = 1
    w: int = 15


def sweep(problem: Problem, state: State, pace: Pace, inner: Inner) -> tuple[State, Info]:
    """``Z <- argmin``, ``W <- argmin``, ``U <- U + Z - W F``; then ``rho`` grows."""
    pieces = pieces_of(problem)
    Z = z_step(problem, state, inner.z, inner.newton)
    F = features(problem, Z)
    ends, mix = partial(fit, n=len(problem.X)), pace.relaxation
    before = [*map(ends, pieces, state.W, F)]
    relaxed = [mix * z + (1 - mix) * wf for z, wf in zip(Z, before, strict=True)]
    W, curvature = w_steps(problem, state, F, relaxed, inner.w)
    fits = [*map(ends, pieces, W, F)]
    U = u_step(state.U, relaxed, fits)
    after = State(W, Z, U, state.rho, curvature)
    info = measure(problem, after, F, fits, state.W)
    rho, U = grow(state.rho, U, pace.growth, pace.rho_max)
    return replace(after, rho=rho, U=U), info


@program("inner", "sweeps", "lanes")
def chunk(
    problem: Problem, state: State, pace: Pace, inner: Inner, sweeps: int, lanes: bool
) -> tuple[State, Info]:
    """``sweeps`` sweeps and their history."""
    one = lambda state: lax.scan(lambda s, _: sweep(problem, s, pace, inner), state, length=sweeps)  # noqa: E731
    return jax.vmap(one)(state) if lanes else one(state)
