"""Programs: functions of a problem, compiled for where its observations are."""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from deepprox.spreading.contract import Spread


def program(*static: str) -> Callable[[Callable], Callable]:
    """Compile a function whose first argument is a problem, once for each way to spread observations."""

    def wrap(function: Callable) -> Callable:
        @cache
        def compiled(spread: Spread) -> Callable:
            return spread.compile(function, static)

        @wraps(function)
        def call(problem: Any, *args: Any, **kwargs: Any) -> Any:
            return compiled(problem.allsum)(problem, *args, **kwargs)

        call.compiled = compiled  # type: ignore[attr-defined]
        return call

    return wrap
