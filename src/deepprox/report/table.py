"""One table, several renderers: aligned text for a terminal, HTML for a notebook."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from deepprox.report.text import visible


@dataclass(frozen=True)
class Table:
    """Rows of text under a title and, where there is one, a header; ``numeric`` columns align right."""

    rows: Sequence[Sequence[str]]
    header: Sequence[str] = ()
    title: str = ""
    numeric: Sequence[int] = ()

    def text(self, width: int = 100) -> str:
        """Aligned columns, nothing wider than ``width``."""
        from rich import box
        from rich.console import Console
        from rich.table import Table as RichTable
        from rich.text import Text

        drawn = RichTable(box=box.SIMPLE_HEAD, show_header=bool(self.header), show_edge=False, pad_edge=False)
        for k in range(self._n_columns):
            name = Text(visible(self.header[k] if self.header else ""))
            drawn.add_column(name, justify="right" if k in self.numeric else "left", overflow="fold")
        for row in self.rows:
            drawn.add_row(*(Text(visible(cell)) for cell in row))
        console = Console(width=width, color_system=None, force_terminal=False, no_color=True)
        with console.capture() as capture:
            console.print(drawn)
        lines = [line.rstrip() for line in capture.get().splitlines()]
        return "\n".join([*([visible(self.title)] if self.title else []), *(line for line in lines if line)])

    def html(self) -> str:
        """An HTML table with the same cells."""
        caption = f"<caption>{escape(visible(self.title))}</caption>" if self.title else ""
        head = f"<thead>{self._html_row(self.header, 'th')}</thead>" if self.header else ""
        body = "".join(self._html_row(row, "td") for row in self.rows)
        return f"<table>{caption}{head}<tbody>{body}</tbody></table>"

    @property
    def _n_columns(self) -> int:
        return len(self.header) or max((len(row) for row in self.rows), default=1)

    def _html_row(self, cells: Sequence[str], tag: str) -> str:
        sides = ["right" if k in self.numeric else "left" for k in range(len(cells))]
        drawn = (f'<{tag} style="text-align:{s}">{escape(visible(c))}</{tag}>' for c, s in zip(cells, sides))
        return f"<tr>{''.join(drawn)}</tr>"


@dataclass(frozen=True)
class Report:
    """Tables one below the other: ``str()`` for the terminal, HTML by itself in a notebook."""

    tables: Sequence[Table]

    def __str__(self) -> str:
        return "\n\n".join(table.text() for table in self.tables)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return "\n".join(table.html() for table in self.tables)
