"""Which of thirty measurements of a cell tell malignant from benign? A group penalty keeps whole inputs.

``group_inputs`` charges for every input as a whole: the weights of an input leave together, and the
inputs that are left can be read off. The rest of scikit-learn takes it as a feature selector.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deepprox import DeepClassifier


def main() -> tuple[int, float]:
    """Select inputs with a network, and use them in another model."""
    cells = load_breast_cancer(as_frame=True)
    diagnosis = cells.target.map({0: "malignant", 1: "benign"})
    X_train, X_test, y_train, y_test = train_test_split(
        cells.data, diagnosis, stratify=diagnosis, random_state=0
    )
    network = DeepClassifier(
        (10,), link="tanh", penalty=("group_inputs", "l1"), alpha=0.02, random_state=0
    ).fit(X_train, y_train)
    order = network.feature_importances_.argsort()[::-1]
    kept = [(cells.data.columns[j], network.feature_importances_[j]) for j in order[: network.live_[0].sum()]]
    print(f"{len(kept)} of {cells.data.shape[1]} inputs are left:")
    for name, size in kept:
        print(f"  {name:<24} {size:.3f}")
    print(f"Test accuracy of the network: {network.score(X_test, y_test):.3f}")

    selector = SelectFromModel(network, prefit=True, threshold=1e-12)
    readable = make_pipeline(selector, StandardScaler(), LogisticRegression(C=1e3, max_iter=1000))
    readable.fit(X_train, y_train)
    print(f"Logistic regression on these inputs alone: {readable.score(X_test, y_test):.3f}")
    return len(kept), network.score(X_test, y_test)


if __name__ == "__main__":
    main()
