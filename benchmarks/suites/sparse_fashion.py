"""The sparse nets on images of clothes: 500, 2000 and 5000 of the training images of Fashion-MNIST."""

from typing import Any

from benchmarks import show
from benchmarks.suites import sparse_nets
from benchmarks.suites.systems import SPARSE
from benchmarks.suites.tasks import FASHION, NO_FASHION, fashion_task

# minima are far: few efforts of those that get near them, up to where they end or the budget does
STEPS = (500, 700, 1000, 1400, 2000, 4000, 15000)
LONGER = {
    "deepprox": (265, 390, 600, 1000, 2000, 4000),
    "SciPy L-BFGS-B on W+ - W-": STEPS,
    "SciPy L-BFGS-B, single precision": STEPS,
}


def main(quick: bool = False, full: bool = False) -> None:
    """784-50-10, three starts."""
    if not FASHION.exists():
        show.console.print(NO_FASHION)
        return
    sizes = [500] if quick else [500, 2000, 5000]
    given = [(fashion_task(n, (50,), 1.0), 1) for n in sizes]
    systems = tuple(s._replace(efforts=LONGER.get(s.name, s.efforts)) for s in SPARSE)
    sparse_nets.run("sparse_fashion", given, 1 if quick else 3, 20 if quick else 1000, quick, systems)


def tell(raw: list[dict[str, Any]]) -> None:
    """As for digits."""
    sparse_nets.tell(raw, "sparse_fashion")
