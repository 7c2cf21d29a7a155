"""``python -m benchmarks.suites [name ...]``: some suites or all; ``--quick`` a part, ``--full`` the lot."""

import argparse

from benchmarks.suites import (
    fashion_full,
    first_fits,
    growth,
    measure,
    one_block,
    paths,
    profile,
    report,
    sparse_fashion,
    sparse_nets,
    start_up,
)

SUITES = {
    module.__name__.split(".")[-1]: module
    for module in (
        start_up,
        first_fits,
        one_block,
        sparse_nets,
        sparse_fashion,
        paths,
        growth,
        profile,
        fashion_full,
    )
}


def main() -> None:
    """Run the named suites in order; all but the longest without names."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.suites", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"some of {', '.join(SUITES)}")
    parser.add_argument("--quick", action="store_true", help="one small task of each: is everything there?")
    parser.add_argument("--full", action="store_true", help="with fashion_full, on 60 000 images")
    parser.add_argument("--again", action="store_true", help="tables and pictures of stored numbers")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in SUITES]
    if unknown:
        parser.error(f"no suite {', '.join(unknown)}; there are {', '.join(SUITES)}")
    if given.again:
        for name in given.names or SUITES:
            if (report.RESULTS / f"{name}.json").exists():
                SUITES[name].tell(report.read(name))
        return
    if not measure.PYTHONS["peers"].exists():
        raise SystemExit(measure.NO_PEERS)
    for name in given.names or [n for n in SUITES if n != "fashion_full" or given.full]:
        SUITES[name].main(given.quick, given.full)


if __name__ == "__main__":
    main()
