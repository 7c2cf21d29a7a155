"""Numbers, counts, switches and names as a user may give them: what is none of them is told in a sentence."""

import sys
from collections.abc import Collection, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

SWITCHES = ("join", "standardize", "penalize_bias", "fit_intercept", "warm_start", "resume")
LARGEST = sys.float_info.max


def shown(value: Any, most: int = 200) -> str:
    """A value in one line of an error."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of thousands of digits
        text = f"a very large {type(value).__name__}"
    return shown_text(text, most)


def shown_text(text: str, most: int = 200) -> str:
    """A text in one line of an error."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


def is_number(value: Any) -> bool:
    """Whether it is one finite number, and not True or False."""
    if not isinstance(value, Real) or isinstance(value, bool | np.timedelta64):
        return False
    return bool(-LARGEST <= value <= LARGEST)  # type: ignore[operator]


def is_whole(value: Any, least: float = 1) -> bool:
    """Whether it is a whole number of at least ``least``, and not True or False."""
    whole = isinstance(value, Integral) and not isinstance(value, bool | np.timedelta64)
    return whole and int(value) >= least


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
    if not isinstance(value, Integral | np.bool_) or isinstance(value, np.timedelta64):
        raise ValueError(f"verbose must be a whole number, 0 for silence, got {shown(value)}.")


def need_name(name: str, value: Any, known: Collection[str]) -> None:
    """A sentence about what is none of the known names."""
    if not isinstance(value, str) or value not in known:
        *first, last = map(repr, known)
        raise ValueError(f"{name} must be {', '.join(first)} or {last}, got {shown(value)}.")


def is_spread(value: Any) -> bool:
    """Whether it is a positive number, and its square is one too: a standard deviation."""
    return is_number(value) and LARGEST**-0.5 < value < LARGEST**0.5


def need_spread(name: str, value: Any) -> None:
    """A sentence about what is no standard deviation."""
    if not is_spread(value):
        raise ValueError(f"{name} must be a positive number, got {shown(value)}.")


def need_jobs(n_jobs: Any) -> None:
    """A sentence about what is no number of jobs."""
    if n_jobs is not None and (not is_whole(n_jobs, -(2**31)) or n_jobs == 0 or n_jobs >= 2**31):
        raise ValueError(f"n_jobs must be None or a whole number that is not 0, got {shown(n_jobs)}.")
