"""A drawing of the network that is left: live units in columns, lines for the weights that are not zero.

Hand-written SVG: it scales, follows the reader's light or dark page, says more under the pointer, and is
shown by notebooks as it is.
"""

import math
import os
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np

from deepprox.blocks import Block
from deepprox.files import path_of, write_text
from deepprox.pruned import Pruned, prune
from deepprox.report.summary import name_of
from deepprox.report.text import visible

MOST_UNITS = 32  # drawn in one column; the strongest, where more are live
MOST_LINES = 1500  # drawn between two columns; the strongest
MOST_GHOSTS = 60  # dots for what was removed from one column
LONGEST = 24  # letters of a name
SWEEPS = 12  # rounds of untangling

TOP, BOTTOM, GAP = 64.0, 30.0, 250.0
LETTER = 6.9  # width of a letter, about
NARROWEST = 560.0  # room for the legend

STYLE = """
.dpn{font:13px system-ui,-apple-system,"Segoe UI",sans-serif;color:#1f2937;--plus:#2563c9;--minus:#d9562b;
--paper:#ffffff;--node:#1f3b73;--faint:#9aa3b2}
.dpn text{fill:currentColor}.dpn .head{font-weight:600}.dpn .small{font-size:11px;fill:var(--faint)}
.dpn .plus{stroke:var(--plus)}.dpn .minus{stroke:var(--minus)}.dpn path{fill:none;stroke-linecap:round}
.dpn path:hover{stroke-opacity:1!important}
.dpn .node{fill:var(--node);stroke:var(--paper);stroke-width:2}.dpn .ghost{fill:none;stroke:var(--faint)}
@media(prefers-color-scheme:dark){.dpn{color:#e5e7eb;--plus:#6ea8fe;--minus:#ff9066;--paper:#14171d;
--node:#c7d7f5;--faint:#7c8698}}
""".strip()


class Column(NamedTuple):
    """Units one below the other: names (empty where none is shown), what the pointer says, and the count.

    ``gone`` names those that were removed, ``live`` counts those that were not, drawn or not.
    """

    heading: str
    names: list[str]
    notes: list[str]
    live: int
    gone: list[str]


class NetworkDrawing:
    """Columns of live units and the weights between them: width by size, colour by sign.

    Weights of the first block are those of standardised inputs, so that lines can be compared. Where a link
    pools units, a pool is one dot and its line the largest of its weights.

    Parameters
    ----------
    columns : list of Column
        Inputs, hidden units of every layer, outputs.
    lines : list of ndarray
        For every two neighbouring columns the weights, one row for each unit of the right one.
    """

    def __init__(self, columns: Sequence[Column], lines: Sequence[np.ndarray]) -> None:
        self.columns = [*columns]
        self.lines = [*lines]

    @classmethod
    def from_estimator(cls, model: Any, output_names: Sequence[str] | None = None) -> "NetworkDrawing":
        """The drawing of a fitted estimator.

        Parameters
        ----------
        model : DeepClassifier or DeepRegressor
            A fitted estimator.
        output_names : sequence of str, default=None
            Names of the outputs; the classes of a classifier otherwise.

        Returns
        -------
        drawing : NetworkDrawing
            Shown by notebooks; ``svg()`` and ``save(path)`` for everything else.
        """
        pruned = prune(model.fitted_.network, model.fitted_.W)
        lines, pools = _lines(pruned)
        columns = _columns(model, pruned, pools, output_names)
        kept = [_strongest(column, lines, k) for k, column in enumerate(columns)]
        columns = [_take(column, keep) for column, keep in zip(columns, kept)]
        lines = [w[np.ix_(after, before)] for w, before, after in zip(lines, kept, kept[1:])]
        orders = _untangled(lines, [len(column.names) for column in columns])
        columns = [_take(column, order) for column, order in zip(columns, orders)]
        return cls(columns, [w[np.ix_(b, a)] for w, a, b in zip(lines, orders, orders[1:])])

    def svg(self) -> str:
        """The drawing as one SVG element."""
        layout = _layout(self.columns)
        strokes = [_stroke(self, layout.places, k) for k in range(len(self.lines))]
        dots = [_dots(self.columns, layout, k) for k in range(len(self.columns))]
        width, height = layout.width, layout.height
        box = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
        said = " to ".join(escape(column.heading) for column in self.columns)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="dpn" role="img" aria-label="{said}" {box}>'
            f"<style>{STYLE}</style>{''.join(strokes)}{''.join(dots)}{_legend(layout)}</svg>"
        )

    def _repr_svg_(self) -> str:
        return self.svg()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the drawing to an SVG file.

        Parameters
        ----------
        path : str or path
            The file.
        """
        write_text(path_of(path, "path"), self.svg())


class Layout(NamedTuple):
    """Where the columns stand, where their units are, and how large the drawing is."""

    x: list[float]
    places: list[np.ndarray]
    width: float
    height: float


def _layout(columns: Sequence[Column]) -> Layout:
    most = max(len(column.names) for column in columns)
    spacing = 34.0 if most <= 12 else max(14.0, 440.0 / most)
    tall = max(spacing * (most - 1), 60.0)
    left, right = (
        max(LETTER * max((len(_short(name)) for name in side.names), default=0) + 40, 80.0)
        for side in (columns[0], columns[-1])
    )
    width = max(left + GAP * (len(columns) - 1) + right, NARROWEST)
    left = width - right - GAP * (len(columns) - 1) if width == NARROWEST else left
    x = [left + GAP * k for k in range(len(columns))]
    places = []
    for at, column in zip(x, columns):
        n = len(column.names)
        apart = min(max(spacing, 0.85 * tall / max(n, 1)), 2 * spacing, 60.0)  # short columns spread out
        top = TOP + 14 + (tall - apart * (n - 1)) / 2
        places.append(np.column_stack([np.full(n, at), top + apart * np.arange(n)]))
    ghosts = 40.0 if any(column.gone for column in columns) else 0.0
    return Layout(x, places, width, TOP + 14 + tall + 30 + ghosts + BOTTOM)


def _dots(columns: Sequence[Column], layout: Layout, k: int) -> str:
    """The heading of a column, its units, the names of inputs and outputs, and what was removed."""
    column, x, places, last = columns[k], layout.x[k], layout.places[k], len(columns) - 1
    side = {0: "end", last: "start"}.get(k, "middle")
    shift = {0: -14.0, last: 14.0}.get(k, 0.0)
    radius = 7.0 if len(places) <= 16 else 4.5
    parts = [_text(x, 26, column.heading, "head", "middle")]
    if column.live > len(places):
        parts.append(_text(x, 43, f"the {len(places)} strongest", "small", "middle"))
    for (px, py), name, note in zip(places, column.names, column.notes):
        dot = f'<circle class="node" cx="{px:.1f}" cy="{py:.1f}" r="{radius}">'
        parts.append(f"{dot}<title>{escape(note)}</title></circle>")
        if name and k in (0, last):
            parts.append(_text(px + shift, py + 4.5, _short(name), "", side))
    return "".join(parts) + _ghosts(column.gone, x, layout.height - BOTTOM - 40)


def _legend(layout: Layout) -> str:
    x, y = layout.width / 2 - 268, layout.height - 12
    parts = []
    for k, (kind, words) in enumerate([("plus", "positive weight"), ("minus", "negative weight")]):
        at = x + 150 * k
        parts.append(f'<path class="{kind}" stroke-width="4" d="M{at:.0f} {y - 4:.0f}h22"/>')
        parts.append(_text(at + 30, y, words, "small", "start"))
    return "".join([*parts, _text(x + 300, y, "width: size of the weight; rings: removed", "small", "start")])


def _lines(pruned: Pruned) -> tuple[list[np.ndarray], list[int]]:
    """Weights between columns, a pool of units as one, and how many units every pool has."""
    if not pruned.network.is_dense_chain:
        raise ValueError("The drawing knows dense blocks that read the block before, and others are here.")
    lines, pools = [], []
    for l, w in enumerate(pruned.W):
        n_units, n_reads = len(w), Block.slopes(pruned.W[l + 1]).shape[1] if l + 1 < len(pruned.W) else len(w)
        pool = n_units // max(n_reads, 1)
        grouped = Block.slopes(w).reshape(n_reads, pool, -1)
        largest = np.abs(grouped).argmax(1)[:, None]
        lines.append(np.take_along_axis(grouped, largest, 1).squeeze(1))
        pools.append(pool)
    return lines, pools


def _columns(model: Any, pruned: Pruned, pools: list[int], outputs: Sequence[str] | None) -> list[Column]:
    blocks, places = model.fitted_.network.blocks, pruned.places
    names = vars(model).get("feature_names_in_", _numbered("x", model.n_features_in_))
    inputs = [visible(str(name)) for name in names]
    live = [inputs[j] for j in places[0]]
    gone = [name for j, name in enumerate(inputs) if j not in {*places[0]}]
    columns = [Column(f"{len(live)} of {len(inputs)} inputs", live, live, len(live), gone)]
    for l, (w, pool) in enumerate(zip(pruned.W[:-1], pools)):
        word, total = "unit" if pool == 1 else "pool", blocks[l].size // pool
        firsts = places[l + 1][::pool] // pool
        biases = [f", bias {b:+.4g}" if pool == 1 else "" for b in Block.biases(w)[::pool]]
        notes = [f"{word} {u + 1}{bias}" for u, bias in zip(firsts, biases)]
        gone = [f"{word} {u + 1}" for u in range(total) if u not in {*firsts}]
        heading = f"{len(firsts)} of {total} {name_of(blocks[l].link)}"
        columns.append(Column(heading, [""] * len(firsts), notes, len(firsts), gone))
    names = [visible(str(name)) for name in outputs or _output_names(model)]
    biases = [f", bias {b:+.4g}" if b or blocks[-1].bias else "" for b in Block.biases(pruned.W[-1])]
    notes = [name + bias for name, bias in zip(names, biases)]
    return [*columns, Column(name_of(model.fitted_.loss), names, notes, len(names), [])]


def _output_names(model: Any) -> list[str]:
    if "classes_" in vars(model):
        names = [str(label) for label in model.classes_]
        return names if model.n_outputs_ > 1 else names[1:]
    return ["response"] if model.n_outputs_ == 1 else _numbered("y", model.n_outputs_)


def _numbered(letter: str, count: int) -> list[str]:
    return [f"{letter}{j}" for j in range(count)]


def _strongest(column: Column, lines: list[np.ndarray], k: int) -> np.ndarray:
    """Places of the units to draw: those with the largest weights before and behind them."""
    n = len(column.names)
    into = np.linalg.norm(lines[k - 1], axis=1) if k > 0 else np.ones(n)
    out = np.linalg.norm(lines[k], axis=0) if k < len(lines) else np.ones(n)
    return np.sort(np.argsort(-into * out, kind="stable")[:MOST_UNITS])


def _take(column: Column, places: np.ndarray) -> Column:
    names, notes = ([part[j] for j in places] for part in (column.names, column.notes))
    return column._replace(names=names, notes=notes)


def _untangled(lines: list[np.ndarray], sizes: list[int]) -> list[np.ndarray]:
    """An order of every column that crosses few lines: each unit at the mean place of its neighbours.

    Sugiyama, Tagawa and Toda (1981), weighted by the sizes of the weights. The outputs stay in their order.
    """
    orders = [np.arange(n) for n in sizes]
    for sweep in range(SWEEPS):
        inner = range(len(sizes) - 2, -1, -1) if sweep % 2 == 0 else range(1, len(sizes) - 1)
        for k in inner:
            other = k + 1 if sweep % 2 == 0 else k - 1
            pull = np.abs(lines[k]).T if other == k + 1 else np.abs(lines[k - 1])
            place = np.empty(sizes[other])
            place[orders[other]] = (np.arange(sizes[other]) + 0.5) / max(sizes[other], 1)
            total = pull.sum(1)
            mean = np.where(total > 0, pull @ place / np.where(total > 0, total, 1.0), 0.5)
            orders[k] = np.argsort(mean, kind="stable")
    return orders


def _stroke(drawing: NetworkDrawing, places: list[np.ndarray], k: int) -> str:
    """The lines between two columns, the weak below the strong."""
    w, here, there = drawing.lines[k], places[k], places[k + 1]
    rows, cols = np.nonzero(w)
    order = np.argsort(np.abs(w[rows, cols]), kind="stable")[-MOST_LINES:]
    largest = np.abs(w).max(initial=0.0)
    wide = 7.0 if max(len(here), len(there)) <= 16 else 4.0
    parts = []
    for i, j in zip(rows[order], cols[order]):
        share = abs(w[i, j]) / largest
        (x0, y0), (x1, y1) = here[j], there[i]
        bend = (x1 - x0) / 2
        curve = f"M{x0:.1f} {y0:.1f}C{x0 + bend:.1f} {y0:.1f} {x1 - bend:.1f} {y1:.1f} {x1:.1f} {y1:.1f}"
        note = escape(f"{drawing.columns[k].notes[j]} → {drawing.columns[k + 1].notes[i]}: {w[i, j]:+.4g}")
        parts.append(
            f'<path class="{"plus" if w[i, j] > 0 else "minus"}" stroke-width="{0.7 + wide * share:.2f}" '
            f'stroke-opacity="{0.3 + 0.6 * math.sqrt(share):.2f}" d="{curve}"><title>{note}</title></path>'
        )
    return "".join(parts)


def _ghosts(gone: list[str], x: float, y: float) -> str:
    """Rings in rows of ten for what was removed."""
    if not gone:
        return ""
    shown, per_row = gone[:MOST_GHOSTS], 20 if len(gone) > 30 else 10
    parts = []
    for k, name in enumerate(shown):
        row, column = divmod(k, per_row)
        in_row = min(per_row, len(shown) - row * per_row)
        cx = x + 9 * (column - (in_row - 1) / 2)
        ring = f'<circle class="ghost" cx="{cx:.1f}" cy="{y + 9 * row:.1f}" r="2.6">'
        parts.append(f"{ring}<title>{escape(name)}, removed</title></circle>")
    more = len(gone) - len(shown)
    if more:
        parts.append(_text(x, y + 9 * (-(-len(shown) // per_row)) + 9, f"and {more} more", "small", "middle"))
    return "".join(parts)


def _text(x: float, y: float, words: str, kind: str, anchor: str) -> str:
    if not words:
        return ""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
