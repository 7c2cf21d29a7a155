"""At most so many weights or inputs, as a user asks for them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from deepprox.budget import Budget
from deepprox.checks import is_number, is_whole, shown
from deepprox.network import Network
from deepprox.problem import Problem

ROUNDING = 1e-9  # of a share: 0.9 of 100 weights leaves 10
LIMITS = ("n_nonzero", "zeros", "max_inputs")


def asked(params: Mapping[str, Any]) -> list[str]:
    """The limits that are given."""
    return [name for name in LIMITS if params.get(name) is not None]


def need_none(params: Mapping[str, Any], what: str) -> None:
    """A sentence where ``what`` cannot keep to a limit."""
    if asked(params):
        raise ValueError(f"{what}, so it takes no {asked(params)[0]}: leave it out here, and give it to fit.")


def need_limits(params: Mapping[str, Any]) -> None:
    """A sentence about limits that are no numbers, or that nothing can keep to."""
    given = asked(params)
    for name in set(given) & {"n_nonzero", "max_inputs"}:
        if not is_whole(params[name]):
            raise ValueError(f"{name} must be a whole number of at least 1, got {shown(params[name])}.")
    share = params.get("zeros")
    if share is not None and not (is_number(share) and 0 <= share < 1):
        raise ValueError(
            f"zeros must be a number from 0 to below 1, the share of the weights to be zero, as 0.95 for "
            f"95 %; got {shown(share)}."
        )
    if {"n_nonzero", "zeros"} <= set(given):
        raise ValueError("n_nonzero and zeros say the same in two ways: give one of them.")
    if given and not params["join"]:
        raise ValueError(f"{given[0]} needs the join phase: leave out join=False.")
    if given and params["batch_size"] is None:
        raise ValueError(f"{given[0]} is kept to by steps on batches of rows: leave out batch_size=None.")


def resolve_limits(params: Mapping[str, Any], problem: Problem) -> Budget | None:
    """The budget that the limits make for a network, if there are any."""
    given, network, n_in = asked(params), problem.network, problem.X.shape[1]
    if not given:
        return None
    if not problem.allsum.in_memory or problem.allsum.chained:
        raise ValueError(f"{given[0]} needs all rows in memory: leave it out here, or fit to arrays.")
    if params.get("max_inputs") is not None and not network.blocks[0].by_unit:
        raise ValueError(
            f"max_inputs needs a first layer that reads every input at one place, and "
            f"{type(network.blocks[0]).__name__} does not: leave it out, or let a dense layer come first."
        )
    for block in network.blocks:
        if not block.penalty.restricts:
            raise ValueError(
                f"{type(block.penalty).__name__} is another penalty where weights are held at zero: leave "
                f"{given[0]} out, or take a penalty like l1."
            )
    return Budget(_weights(params, network, n_in), params.get("max_inputs"))


def _weights(params: Mapping[str, Any], network: Network, n_in: int) -> int | None:
    """How many weights may be left."""
    total = sum(rows * columns for rows, columns in network.shapes(n_in))
    total -= sum(block.size for block in network.blocks if not block.bias)
    share, count = params.get("zeros"), params.get("n_nonzero")
    if count is None and share is None:
        return None
    most = int(count) if count is not None else int(np.floor(total * (1 - float(share or 0)) + ROUNDING))
    least = network.blocks[-1].size * network.blocks[-1].free_bias
    if most < least:
        name, value = ("n_nonzero", count) if share is None else ("zeros", share)
        raise ValueError(
            f"{name}={shown(value)} leaves {most} of {total} weights, and the outputs have {least} biases "
            f"that are free: ask for at least {least}, or set penalize_bias=True."
        )
    return most
