"""From outputs of many networks to the numbers that rules of choice are compared on."""

from typing import Any, NamedTuple

import numpy as np

LEAST = 1e-6  # no probability is taken to be smaller


class Judge(NamedTuple):
    """Predictions, losses and scores of one table; ``variance`` is that of the responses to train on."""

    classes: bool
    variance: float

    def predictions(self, outputs: np.ndarray) -> np.ndarray:
        """Probabilities of classes, or numbers."""
        outputs = np.asarray(outputs, float)
        if not self.classes:
            return outputs
        e = np.exp(outputs - outputs.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def losses(self, predicted: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
        """Of every row: ``loss`` (log loss, or square over the variance), ``brier``, and ``miss``."""
        if not self.classes:
            square = ((predicted - y) ** 2).sum(-1) / self.variance
            return {"loss": square, "brier": np.minimum(square, 4.0), "miss": square}
        log = -np.log(np.maximum((predicted * y).sum(-1), LEAST))
        miss = predicted.argmax(-1) != y.argmax(-1)
        return {"loss": log, "brier": ((predicted - y) ** 2).sum(-1), "miss": miss.astype(float)}

    def score(self, predicted: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Accuracy, or R squared, over the rows; leading axes stay."""
        if self.classes:
            return (predicted.argmax(-1) == y.argmax(-1)).mean(-1)
        return 1 - ((predicted - y) ** 2).sum((-2, -1)) / ((y - y.mean(0)) ** 2).sum()


def short(values: Any) -> Any:
    """Lists of numbers with five digits, for JSON."""
    if isinstance(values, dict):
        return {name: short(value) for name, value in values.items()}
    array = np.asarray(values)
    if array.dtype.kind in "iubU":
        return array.tolist()
    flat = [float(f"{v:.5g}") if np.isfinite(v) else None for v in array.ravel().astype(float)]
    return np.array(flat, object).reshape(array.shape).tolist()


def by_folds(
    judge: Judge, held: list[np.ndarray], y_held: list[np.ndarray], test: np.ndarray, y: np.ndarray
) -> dict[str, Any]:
    """Of networks by fold and strength: losses on what the folds leave out, and what their averages score.

    ``held[f]`` is (strengths, rows, outputs), ``test`` (folds, strengths, rows, outputs), all predictions.
    """
    each = [judge.losses(p, one) for p, one in zip(held, y_held)]
    out: dict[str, Any] = {}
    for name in ("loss", "brier", "miss"):
        rows = np.concatenate([losses[name] for losses in each], axis=-1)
        out[f"fold_{name}"] = [losses[name].mean(-1) for losses in each]
        out[f"se_{name}"] = rows.std(-1) / np.sqrt(rows.shape[-1])
        mean, se = rows.mean(-1), out[f"se_{name}"]
        best = int(np.argmin(mean))
        near = mean <= mean[best] + se[best]
        share = np.exp(-((mean - mean[best]) / max(se[best], 1e-9)))
        own = np.argmin(np.array(out[f"fold_{name}"]), axis=1)
        folds = np.arange(len(own))
        out[f"average_{name}"] = {
            "min": best,
            "test_min": judge.score(test[:, best].mean(0), y),
            "test_near": judge.score(test[:, near].mean((0, 1)), y),
            "test_share": judge.score(np.tensordot(share / share.sum(), test.mean(0), 1), y),
            "test_own": judge.score(test[folds, own].mean(0), y),
            "loss_min": judge.losses(test[:, best].mean(0), y)["loss"].mean(),
            "loss_near": judge.losses(test[:, near].mean((0, 1)), y)["loss"].mean(),
        }
    out["test"] = judge.score(test, y)
    out["average"] = judge.score(test.mean(0), y)
    out["average_test_loss"] = judge.losses(test.mean(0), y)["loss"].mean(-1)
    return out
