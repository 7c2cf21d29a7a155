"""A first regression with defaults, beside the lasso, a forest and boosting.

Run with ``.venv/bin/python examples/diabetes.py``. The picture goes to ``diabetes.png``.
"""

from pathlib import Path

from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LassoCV
from sklearn.model_selection import train_test_split

from deepprox import DeepRegressorCV


def main() -> dict[str, float]:
    """Fit, print what was found, and return the scores on rows that no fit has seen."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    model = DeepRegressorCV(random_state=0).fit(X_train, y_train)
    print(model.summary())

    low, high = model.predict_interval(X_test, level=0.9)
    found = {
        "ours": model.score(X_test, y_test),
        "covered": float(((low <= y_test) & (y_test <= high)).mean()),
    }
    peers = LassoCV(), RandomForestRegressor(random_state=0), HistGradientBoostingRegressor(random_state=0)
    found |= {type(peer).__name__: peer.fit(X_train, y_train).score(X_test, y_test) for peer in peers}
    for name, number in found.items():
        print(f"{name:<32}{number:.3f}")
    picture = Path("diabetes.png")
    model.plot_calibration().figure_.savefig(picture, dpi=110)
    print(f"Observed against predicted: {picture}")
    return found


if __name__ == "__main__":
    main()
