"""U-step: ``U <- U + Z - W F``, the running sum of what the constraints still miss."""

from jax import Array


def u_step(U: tuple[Array, ...], Z: list[Array], fits: list[Array]) -> tuple[Array, ...]:
    """New scaled duals given the (relaxed) ``Z`` and the fits ``W F``."""
    return tuple(u + z - fit for u, z, fit in zip(U, Z, fits, strict=True))
