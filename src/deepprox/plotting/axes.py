"""Where a picture is drawn."""

from typing import Any

from deepprox.checks import shown


def need_axes(ax: Any) -> None:
    """A sentence about what are no axes of Matplotlib."""
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes | None):
        raise TypeError(f"ax must be Axes of a Matplotlib figure, or None for a new one, got {shown(ax)}.")
