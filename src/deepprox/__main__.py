"""``python -m deepprox``: the command line."""

from deepprox.cli import main

main()
