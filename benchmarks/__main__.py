"""``python -m benchmarks`` runs all measurements, ``python -m benchmarks iris digits`` some of them."""

import sys

from benchmarks import certificates, cold, digits, envelopes, iris, one_block, starts, width

ALL = {
    module.__name__.split(".")[-1]: module
    for module in (one_block, iris, digits, certificates, starts, cold, envelopes, width)
}


def main(names: list[str]) -> None:
    """Run the named measurements in order."""
    unknown = [name for name in names if name not in ALL]
    if unknown:
        raise SystemExit(f"no benchmark {', '.join(unknown)}; there are {', '.join(ALL)}")
    for name in names or ALL:
        ALL[name].main()


if __name__ == "__main__":
    main(sys.argv[1:])
