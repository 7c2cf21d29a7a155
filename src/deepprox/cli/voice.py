"""How the command line speaks: results on standard output, everything else on standard error."""

import json
import math
import sys
from typing import Any

import click

OK, WRONG, NOT_CONVERGED = 0, 2, 3  # exit codes


class Voice:
    """Text for people or, with ``as_json``, one JSON object for machines."""

    def __init__(self, as_json: bool, quiet: bool) -> None:
        self.as_json = as_json
        self.quiet = quiet

    @property
    def progress(self) -> bool:
        """Whether progress bars are worth drawing."""
        return not self.quiet and sys.stderr.isatty()

    def note(self, words: str) -> None:
        """A remark."""
        if not self.quiet:
            click.echo(words, err=True)

    def result(self, record: dict[str, Any], words: str) -> None:
        """What was asked for."""
        click.echo(json.dumps(plain(record), ensure_ascii=False, allow_nan=False) if self.as_json else words)


def plain(value: Any) -> Any:
    """What JSON can hold: numbers of NumPy become numbers, those that are not finite become null."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        return value if math.isfinite(value) else None
    return plain(value.tolist()) if value.__class__.__module__ == "numpy" else str(value)
