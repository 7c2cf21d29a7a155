"""How the command line speaks: results on standard output, everything else on standard error."""

import errno
import json
import math
import os
import sys
from typing import Any

import click

from deepprox.report.text import visible

OK, WRONG, NOT_CONVERGED, INTERRUPTED = 0, 2, 3, 130  # exit codes; the last as a shell gives it
OUTPUT = "standard output"


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
            click.echo(visible(words), err=True)

    def result(self, record: dict[str, Any], words: str, exact: bool = False) -> None:
        """What was asked for. ``exact`` words are data, and written as they are unless a person looks on."""
        if self.as_json:
            words, exact = json.dumps(plain(record), ensure_ascii=False, allow_nan=False), False
        try:
            click.echo(words if exact and not sys.stdout.isatty() else visible(words))
        except OSError as error:
            if error.errno == errno.EPIPE:  # nobody reads on, as with head: click ends quietly
                raise
            os.dup2(
                os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
            )  # Python would try again at its end
            raise OSError(error.errno, error.strerror, OUTPUT) from None


def complain(words: str) -> None:
    """Say what is wrong."""
    click.echo(f"deepprox: {visible(words)}", err=True)


def sentence(error: BaseException) -> str:
    """What an error says, on one line; what is wrong with a table is a line for each reason."""
    from deepprox.tables.refusals import Refused

    lines = str(error).splitlines() if isinstance(error, Refused) else [str(error)]
    said = "\n".join(" ".join(line.split()) for line in lines)
    if isinstance(error, OSError) and error.strerror:
        said = f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    elif isinstance(error, MemoryError):
        said = f"There is not enough memory. {said}".strip()
    elif isinstance(error, KeyboardInterrupt | SystemExit):
        said = "Interrupted."
    said += "" if said.endswith((".", "!", "?")) else "."
    return " ".join([said, *getattr(error, "__notes__", [])])


def plain(value: Any) -> Any:
    """What JSON can hold: numbers of NumPy become numbers, those that are not finite become null."""
    if isinstance(value, dict):
        return {plain(str(key)): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()  # names of files need not be text
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return value if math.isfinite(value) else None
    return plain(value.tolist()) if value.__class__.__module__ == "numpy" else str(value)
