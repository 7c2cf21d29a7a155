"""Every solution that says converged has its certificate, and its zeros stay under tol / 100."""

import warnings

from sklearn.exceptions import ConvergenceWarning

from benchmarks import data, show
from deepprox import DeepClassifier

CASES = [
    ("iris", (10,), "sigmoid"),
    ("iris", (10,), "relu"),
    ("iris", (6, 4), "tanh"),
    ("digits", (50,), "tanh"),
    ("digits", (50,), "relu"),
    ("digits", (50, 50), "tanh"),
    ("digits", (50, 50), "relu"),
]


def main() -> None:
    """Three starts each, at two tolerances."""
    rows = []
    for name, hidden, link in CASES:
        split = getattr(data, name)()
        for seed in range(3):
            fits = []
            for tol in (1e-6, 1e-8):
                model = DeepClassifier(hidden, link=link, alpha=1 / len(split.X), tol=tol, random_state=seed)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    fits.append(model.fit(split.X, split.y))
            loose, tight = fits
            same = all(((a == 0) == (b == 0)).all() for a, b in zip(loose.fitted_.W, tight.fitted_.W))
            both = loose.solution_.status == tight.solution_.status == "converged"
            honest = all(
                m.solution_.certificate <= m.tol for m in fits if m.solution_.status == "converged"
            )  # fmt: skip
            rows.append([
                f"{name} {hidden} {link}, start {seed}", loose.solution_.status, loose.solution_.certificate,
                tight.solution_.status, tight.solution_.certificate, str(loose.solution_.n_held),
                str(same), show.met(honest and both and same),
            ])  # fmt: skip
    columns = ["", "tol 1e-6", "certificate", "tol 1e-8", "certificate", "held at kinks", "same zeros", ""]
    show.table("Certificates, default settings (biases free)", columns, rows)
