"""Tables of measurements."""

from rich.console import Console
from rich.table import Table

console = Console(width=130)


def table(title: str, columns: list[str], rows: list[list[object]]) -> None:
    """Print one table; a row's last cell says whether the target was met."""
    shown = Table(title=title, title_justify="left")
    for k, name in enumerate(columns):
        shown.add_column(name, justify="left" if k == 0 else "right")
    for row in rows:
        shown.add_row(*(cell if isinstance(cell, str) else format(cell, ".5g") for cell in row))
    console.print(shown)


def met(condition: bool) -> str:
    """A word and a colour."""
    return "[green]met[/]" if condition else "[red]missed[/]"
