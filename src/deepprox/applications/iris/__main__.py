"""``python -m deepprox.applications.iris --splits 20 --out build/iris``."""

import argparse
from pathlib import Path

from deepprox.applications.iris import run


def main() -> None:
    """Run the study with the options of the command line."""
    what = "Fisher's Iris as in section 4.2 of Polson, Willard and Heidari (2015)."
    parser = argparse.ArgumentParser(prog="python -m deepprox.applications.iris", description=what)
    parser.add_argument("--splits", type=int, default=20, help="random 70/30 splits (default 20)")
    parser.add_argument("--quick", action="store_true", help="fewer iterations and starts, for a first look")
    parser.add_argument("--out", type=Path, default=Path("build/iris"), help="folder of tables and pictures")
    parser.add_argument("--seed", type=int, default=0, help="seed of splits and starts (default 0)")
    given = parser.parse_args()
    run(given.splits, given.quick, given.out, given.seed)


if __name__ == "__main__":
    main()
