"""Three kinds of wine from thirteen measurements: names in, names out, and the network that is left."""

from pathlib import Path

from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from deepprox import DeepClassifier, load


def main() -> float:
    """Fit, print what was found, draw the network, and bring the model back from its file."""
    wine = load_wine(as_frame=True)
    grower = wine.target.map({0: "Barolo", 1: "Grignolino", 2: "Barbera"})
    X_train, X_test, y_train, y_test = train_test_split(
        wine.data, grower, test_size=0.3, stratify=grower, random_state=0
    )
    model = DeepClassifier((10,), link="tanh", alpha=0.02, random_state=0).fit(X_train, y_train)

    print(model.summary())
    print(f"\nTest accuracy: {model.score(X_test, y_test):.3f}")
    print("Left out:", ", ".join(wine.data.columns[~model.selected_features_]))

    model.draw_network().save("wine.svg")
    model.report("wine.html", X_test, y_test, title="Three kinds of wine")
    model.save("wine.deepprox")
    again = load("wine.deepprox")
    assert (again.predict_proba(X_test) == model.predict_proba(X_test)).all()
    print("Saved:", ", ".join(str(path) for path in sorted(Path().glob("wine.*"))))
    return model.score(X_test, y_test)


if __name__ == "__main__":
    main()
