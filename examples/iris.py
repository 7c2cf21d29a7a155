"""Fisher's Iris with the 4-10-3 network of Polson, Willard and Heidari (2015), section 4.2.

Run with ``.venv/bin/python examples/iris.py``. Ten random starts, 70 % of the flowers for training, and the
paper's strength 0.67 on the sum of the losses, which is ``alpha = 0.67 / 105`` on their mean.
"""

from pathlib import Path

from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

from deepprox import DeepClassifier


def main() -> None:
    """Fit, print the summary and the test accuracy, and save the picture of convergence."""
    flowers = load_iris(as_frame=True)
    species = flowers.target.map(dict(enumerate(flowers.target_names)))
    X_train, X_test, y_train, y_test = train_test_split(
        flowers.data, species, train_size=105, stratify=species, random_state=1
    )
    model = DeepClassifier(
        hidden_layer_sizes=(10,),
        link="sigmoid",
        penalty="l1",
        alpha=0.67 / len(X_train),
        penalize_bias=True,
        n_init=10,
        random_state=0,
    ).fit(X_train, y_train)

    print(model.summary())
    print(f"\nTest accuracy: {model.score(X_test, y_test):.1%} of {len(X_test)} flowers")
    picture = Path("iris.png")
    model.plot_history().figure_.savefig(picture, dpi=150)
    print(f"Convergence: {picture}")


if __name__ == "__main__":
    main()
