"""The command line: ``deepprox fit``, ``predict``, ``report`` and more."""

from deepprox.cli.commands import main

__all__ = ["main"]
