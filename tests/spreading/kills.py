"""Fits that die after so many checkpoints, as if they were killed."""

from collections.abc import Callable

import pytest

from deepprox.estimators import _checkpoint


class Killed(BaseException):
    """What stands for a kill: nothing catches it."""


def killed(after: int, fit: Callable, *given) -> bool:
    """Run ``fit(*given)`` until ``after`` checkpoints were written, then die; whether it died."""
    keep, count = _checkpoint.Checkpoints.keep, [0]

    def kill(self, stages):
        keep(self, stages)
        count[0] += 1
        if count[0] == after:
            self.written = self.number  # a kill writes no more
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_checkpoint, "SHARE", float("inf"))  # after every chunk, however long it takes
        patch.setattr(_checkpoint.Checkpoints, "keep", kill)
        try:
            fit(*given)
        except Killed:
            return True
    return False
