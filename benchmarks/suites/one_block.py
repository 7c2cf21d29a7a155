"""The multinomial and the logistic lasso: time to a relative suboptimality of 1e-6."""

from typing import Any

from sklearn.datasets import load_breast_cancer, load_digits

from benchmarks.suites.race import Race, race
from benchmarks.suites.report import Target, picture, write
from benchmarks.suites.systems import LINEAR, System
from benchmarks.suites.tasks import Task, standardised

GAP, WITHIN = 1e-6, 2.0
FASTEST = "skglm", "celer", "glmnet (R)"
ABOUT = (
    "Seconds to an objective within 1e-6 of the best that anyone reached, the least over the tolerances "
    "of each system, every one a run from the beginning. Warm is the median of later calls (with two "
    "threads the least), cold the first call in a new process with nothing compiled; imports are not "
    "counted. One thread is timed by the processor's own clock, two by the wall's. celer has no "
    "intercept and liblinear would penalise it, so two tasks are without; skglm, celer and liblinear "
    "have no multinomial model."
)
BINARY_ONLY = {"skglm", "celer", "scikit-learn liblinear"}
NO_INTERCEPT = {"celer", "scikit-learn liblinear"}


def tasks() -> list[Task]:
    """Breast cancer and digits, with and without an intercept."""
    X, y = load_breast_cancer(return_X_y=True)
    D, digit = load_digits(return_X_y=True)
    return [
        standardised("breast cancer", X, y, 400, 4.0, "free"),
        standardised("breast cancer, no intercept", X, y, 400, 4.0, "none"),
        standardised("digits, even or odd, no intercept", D, digit % 2, 1257, 4.0, "none"),
        standardised("digits, ten classes", D, digit, 1257, 4.0, "free"),
    ]


def fits(system: System, task: Task) -> bool:
    """Whether a system can pose the task."""
    many, intercept = task.n_classes > 2, task.bias == "free"
    return not (many and system.name in BINARY_ONLY) and not (intercept and system.name in NO_INTERCEPT)


def target(result: Race) -> Target:
    """Within twice the fastest of the linear specialists."""
    present = [row["system"] for row in result.rows if row["system"] in FASTEST]
    seconds, name = result.fastest(*present)
    ratio = result.seconds("deepprox") / seconds
    of = f"the fastest of {', '.join(present)}"
    text = f"{result.task}, {result.threads} thread(s): within {WITHIN:g} times {of}"
    return Target(text, f"{ratio:.2f} times {name}", ratio <= WITHIN)


def main(quick: bool = False, full: bool = False) -> None:
    """Four tasks with one thread, the largest also with two."""
    given = [(task, 1) for task in tasks()]
    given = given[:1] if quick else [*given, (given[-1][0], 2)]  # only the largest has work for two
    results = [
        race(task, tuple(s for s in LINEAR if fits(s, task)), range(1), threads, 20 if quick else 60, GAP)
        for task, threads in given
    ]
    tell([result._asdict() for result in results])


def tell(raw: list[dict[str, Any]]) -> None:
    """Tables, targets and the picture of stored races."""
    results = [Race(**found) for found in raw]
    write("one_block", ABOUT, [r.table("1e-6") for r in results], [target(r) for r in results], raw)
    picture("one_block", [r.panel("1e-6", 1e-12) for r in results if r.threads == 1])
