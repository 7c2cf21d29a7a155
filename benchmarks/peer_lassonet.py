"""One path of LassoNet, for :mod:`benchmarks.paths`: prints one line of JSON. Needs lassonet and torch."""

import json
import sys
import time
import warnings

import torch
from lassonet import LassoNetClassifier
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

SETS = {"iris": load_iris, "breast cancer": load_breast_cancer, "digits": load_digits}


def main(name: str, seed: int) -> None:
    """Its defaults with one hidden layer of 100 units, two threads, all training rows as ours has them."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(2)
    X, y = SETS[name](return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    mean, deviation = X.mean(0), X.std(0)
    deviation[deviation == 0] = 1
    X, X_test = (((part - mean) / deviation).astype("float32") for part in (X, X_test))
    model = LassoNetClassifier(hidden_dims=(100,), random_state=seed, torch_seed=seed, verbose=False)
    begin = time.perf_counter()
    path = model.path(X, y, return_state_dicts=True)
    seconds, models = time.perf_counter() - begin, []
    for point in path:
        model.load(point.state_dict)
        accuracy = float((model.predict(X_test) == y_test).mean())
        models.append((int(point.selected.sum()), accuracy, float(log_loss(y, model.predict_proba(X)))))
    print(json.dumps({"seconds": seconds, "models": models}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
