"""Docstrings of the estimators: a parameter is described once, by the class that has it first."""

import inspect
import re
from typing import Any, TypeVar

C = TypeVar("C", bound=type)
SECTION = re.compile(r"\n\n(Parameters|Attributes|Examples)\n-+\n")
ENTRY = re.compile(r"\n(?=\S)")


def described(cls: C) -> C:
    """The class, its docstring with what its bases say of their parameters and attributes.

    Parameters come in the order of the signature, attributes from the class up to its bases.
    """
    if cls.__doc__ is None:  # Python runs without docstrings
        return cls
    known: dict[str, dict[str, str]] = {"Parameters": {}, "Attributes": {}}
    for base in cls.__mro__:
        ours = base.__module__.startswith("deepprox") and base.__doc__ is not None
        for section, entries in _sections(base).items() if ours else ():
            known.setdefault(section, {})
            known[section] = known[section] | {k: v for k, v in entries.items() if k not in known[section]}
    parameters = known["Parameters"]
    known["Parameters"] = {name: parameters[name] for name in inspect.signature(cls).parameters}
    own = SECTION.split(inspect.cleandoc(cls.__doc__))
    examples = dict(zip(own[1::2], own[2::2])).get("Examples")
    parts = [own[0], *(_section(title, "\n".join(entries.values())) for title, entries in known.items())]
    cls.__doc__ = "\n\n".join(parts + ([_section("Examples", examples)] if examples else [])) + "\n"
    return cls


def _sections(cls: Any) -> dict[str, dict[str, str]]:
    """The entries of a docstring by section and name."""
    _, *parts = SECTION.split(inspect.cleandoc(cls.__doc__))
    found = dict(zip(parts[::2], parts[1::2]))
    found.pop("Examples", None)
    return {
        title: {entry.split(" : ")[0]: entry for entry in ENTRY.split(text.strip())}
        for title, text in found.items()
    }


def _section(title: str, text: str) -> str:
    return f"{title}\n{'-' * len(title)}\n{text}"
