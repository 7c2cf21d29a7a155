"""What is wrong with a table, told all at once: a sentence for each column."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

MOST = 20  # sentences that are told; a table of thousands of columns may have as many


class Refused(ValueError):
    """A table that cannot be used as it is, and why: ``sentences``, one on each line."""

    def __init__(self, *sentences: str) -> None:
        super().__init__(*sentences)
        self.sentences = sentences

    def __str__(self) -> str:
        if len(self.sentences) == 1:
            return self.sentences[0]
        more = len(self.sentences) - MOST
        told = [*self.sentences[:MOST], *([f"And {more} more."] if more > 0 else [])]
        return "\n".join([f"The table is refused for {len(self.sentences)} reasons:", *told])


@contextmanager
def gathering(sentences: list[str]) -> Iterator[None]:
    """What the block refuses is added to ``sentences``, to be told with the rest."""
    try:
        yield
    except Refused as error:
        sentences += error.sentences


def refuse(sentences: Sequence[str]) -> None:
    """Raise what was gathered, if anything was."""
    if sentences:
        raise Refused(*sentences)
