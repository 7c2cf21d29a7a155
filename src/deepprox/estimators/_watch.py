"""Who looks on while a fit runs: a progress bar, and scikit-learn's callbacks where it has them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from deepprox.report.bar import bar

Row = dict[str, Any]
F = TypeVar("F", bound=Callable[..., Any])

if TYPE_CHECKING:  # scikit-learn has no types

    class CallbackSupportMixin:
        def _init_callback_context(self, **settings: Any) -> Any: ...

    def with_callbacks(method: F) -> F: ...

else:
    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:  # scikit-learn before 1.9

        class CallbackSupportMixin:
            """This scikit-learn has no callbacks."""

            def _init_callback_context(self, **settings):
                return Silence()

        def with_callbacks(method):
            """The method itself: this scikit-learn has no callbacks."""
            return method


class Silence:
    """A callback context that calls nobody."""

    def subcontext(self, **settings: Any) -> "Silence":
        return self

    def call_on_fit_task_begin(self, **facts: Any) -> None:
        pass

    def call_on_fit_task_end(self, **facts: Any) -> None:
        pass


@contextmanager
def watching(estimator: Any, context: Any, verbose: int, max_iter: int) -> Iterator[Callable[[Row], None]]:
    """What the solver calls with its latest row: every call is one task of scikit-learn's callbacks."""

    def tell(row: Row) -> None:
        task = context.subcontext(task_name=row["phase"])
        task.call_on_fit_task_begin(estimator=estimator)
        task.call_on_fit_task_end(estimator=estimator)

    if not verbose:
        yield tell
        return
    with bar("compiling or loading the program", max_iter, width=10) as moved:

        def both(row: Row) -> None:
            moved(completed=min(row["iteration"], max_iter), description=describe(row))
            tell(row)

        yield both


def describe(row: Row) -> str:
    """A row of the history in one line."""
    measure = "certificate" if row["phase"] != "split" else "primal"
    parts = [f"{row['phase']:<6}", f"objective {row['objective']:.5g}"]
    if measure in row:
        parts.append(f"{'residual' if measure == 'primal' else measure} {row[measure]:.1e}")
    return " ".join([*parts, f"{row['n_nonzero']} non-zero"])
