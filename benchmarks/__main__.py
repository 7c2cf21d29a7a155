"""``python -m benchmarks`` runs all measurements, ``python -m benchmarks iris digits`` some of them."""

import sys
from importlib import import_module

ALL = [
    "one_block",
    "columns",
    "iris",
    "digits",
    "certificates",
    "starts",
    "cold",
    "envelopes",
    "barriers",
    "beginnings",
    "leaks",
    "units",
    "splits",
    "width",
    "wide",
    "degrees_of_freedom",
    "sure",
    "paths",
    "support",
    "posterior",
    "spreading",
    "clusters",
    "streaming",
]
ASKED = ["tables", "defaults", "conformal", "zeros"]  # half an hour and more: only where they are named


def main(names: list[str]) -> None:
    """Run the named measurements in order."""
    unknown = [name for name in names if name not in [*ALL, *ASKED]]
    if unknown:
        raise SystemExit(f"no benchmark {', '.join(unknown)}; there are {', '.join([*ALL, *ASKED])}")
    for name in names or ALL:
        import_module(f"benchmarks.{name}").main()  # what one needs, others do not


if __name__ == "__main__":
    main([name for name in sys.argv[1:] if not name.startswith("--")])  # an option is a benchmark's own
