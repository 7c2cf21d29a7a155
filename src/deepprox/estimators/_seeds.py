"""Seeds as a user may give them."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from deepprox.checks import is_whole, shown

SEEDS = 2**32  # what NumPy's random state takes


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
