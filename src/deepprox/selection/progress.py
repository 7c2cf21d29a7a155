"""A bar over the strengths of a path."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from deepprox.report.bar import bar


@contextmanager
def along(name: str, verbose: Any) -> Iterator[Callable[..., None] | None]:
    """What a walk tells after every strength, shown as a bar; None where nobody looks."""
    if not verbose:
        yield None
        return
    with bar("looking for the null model", None, name) as moved:

        def told(done: int, total: int, alpha: float, found: Any) -> None:
            inputs = int(found.live.inputs.sum())
            words = f"alpha {alpha:.3g}, {sum(found.n_nonzero)} non-zero, {inputs} inputs"
            moved(completed=done, total=total, description=words)

        yield told


def counting(items: list[Any], name: str, verbose: Any) -> Iterator[Any]:
    """The items, with a bar that counts them where someone looks."""
    if not verbose:
        yield from items
        return
    from rich.progress import track

    yield from track(items, name)


@contextmanager
def steps(name: str, verbose: Any) -> Iterator[Callable[[int, int], None] | None]:
    """What tells how many of how many steps are done, shown as a bar; None where nobody looks."""
    if not verbose:
        yield None
        return
    with bar("", None, name) as moved:
        yield lambda done, total: moved(completed=done, total=total)
