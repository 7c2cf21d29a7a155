"""A bar on standard error, while something takes long."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial


@contextmanager
def bar(words: str, total: int | None, name: str = "", width: int = 20) -> Iterator[Callable[..., None]]:
    """What moves it: a function of ``completed``, ``total`` and ``description``, whichever is new."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = [
        *([TextColumn(name)] if name else []),
        BarColumn(bar_width=width),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    ]
    with Progress(*columns, console=Console(stderr=True)) as progress:
        yield partial(progress.update, progress.add_task(words, total=total))
