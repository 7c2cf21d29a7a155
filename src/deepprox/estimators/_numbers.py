"""Numbers, counts, switches and seeds as a user may give them: what is none of them is told in a sentence."""

import sys
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

SWITCHES = ("join", "standardize", "penalize_bias", "fit_intercept", "warm_start", "resume")
LARGEST = sys.float_info.max
SEEDS = 2**32  # what NumPy's random state takes


def shown(value: Any, most: int = 200) -> str:
    """A value in one line of an error."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # a whole number of thousands of digits
        text = f"a very large {type(value).__name__}"
    return text if len(text) <= most else f"{text[: most - 3]}..."


def is_number(value: Any) -> bool:
    """Whether it is one finite number, and not True or False."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    return bool(-LARGEST <= value <= LARGEST)  # type: ignore[operator]


def is_whole(value: Any, least: int = 1) -> bool:
    """Whether it is a whole number of at least ``least``, and not True or False."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def need_switches(params: Mapping[str, Any]) -> None:
    """A sentence about a switch that is neither on nor off."""
    for name in SWITCHES:
        need_switch(name, params.get(name, False))
    need_verbose(params.get("verbose", 0))


def need_switch(name: str, value: Any) -> None:
    """A sentence about what is neither True nor False; 1 and 0 are taken for them."""
    if not (isinstance(value, bool | np.bool_) or (is_whole(value, 0) and value <= 1)):
        raise ValueError(f"{name} must be True or False, got {shown(value)}.")


def need_verbose(value: Any) -> None:
    """A sentence about what says neither to show progress nor not to."""
    if not isinstance(value, Integral | np.bool_):
        raise ValueError(f"verbose must be a whole number, 0 for silence, got {shown(value)}.")


def need_seed(random_state: Any) -> None:
    """A sentence about what seeds no random numbers."""
    if random_state is None or isinstance(random_state, np.random.RandomState) or random_state is np.random:
        return
    if not is_whole(random_state, 0) or random_state >= SEEDS:
        raise ValueError(
            f"random_state must be None, a whole number from 0 to 2^32 - 1 or a numpy.random.RandomState: "
            f"{shown(random_state)} cannot be used to seed one."
        )


def seed_of(random_state: Any) -> int:
    """A seed for everything random that follows, drawn from what the user gave."""
    need_seed(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
