"""The comparison: R's nnet and e1071's svm, scikit-learn's MLPClassifier and SVC, on the same splits."""

import io
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from deepprox.applications.iris.setting import HIDDEN, draw_split

SCRIPT = Path(__file__).with_name("rivals.R")
STORED = Path(__file__).with_name("rivals.csv")  # the rows that `with_r` gave for seed 0 and 20 splits
INSTALL = "apt-get install r-base-core r-cran-nnet r-cran-e1071"
ABSENT = f"R with nnet and e1071 is not here ({INSTALL}): their rates below are stored ones, of 20 splits."


def find_r() -> str | None:
    """The path of an Rscript that has both packages, or None."""
    rscript = shutil.which("Rscript")
    if rscript is None:
        return None
    ask = "quit(status = !all(sapply(c('nnet', 'e1071'), requireNamespace, quietly = TRUE)))"
    has_both = subprocess.run([rscript, "-e", ask], capture_output=True).returncode == 0
    return rscript if has_both else None


def with_r(rscript: str, seed: int, n_splits: int) -> pd.DataFrame:
    """Rates of nnet and svm, both with their defaults: nnet reads centimetres, svm standardises by itself."""
    with tempfile.TemporaryDirectory() as folder:
        flowers = Path(folder) / "flowers.csv"
        pd.concat([_flowers(seed, k) for k in range(n_splits)]).to_csv(flowers, index=False)
        done = subprocess.run([rscript, str(SCRIPT), str(flowers), str(seed)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{SCRIPT.name} failed: {done.stderr.strip()}")
    return pd.read_csv(io.StringIO(done.stdout))


def _flowers(seed: int, k: int) -> pd.DataFrame:
    split = draw_split(seed, k, standardize=False)
    X = pd.DataFrame(np.concatenate([split.X, split.X_test])).add_prefix("x")
    species = np.concatenate([split.y, split.y_test]).argmax(1)
    part = np.repeat(["train", "test"], [len(split.X), len(split.X_test)])
    return X.assign(species=[f"species{s}" for s in species], part=part, split=k)


def stored() -> pd.DataFrame:
    """Rates of nnet and svm measured earlier, marked as such."""
    rates = pd.read_csv(STORED)
    return rates.assign(source="stored, " + rates.source)


def with_sklearn(seed: int, n_splits: int) -> pd.DataFrame:
    """Rates of MLPClassifier with the same hidden layer, and of SVC; the rest are their defaults."""
    rows = []
    for k in range(n_splits):
        split = draw_split(seed, k)
        y, y_test = split.y.argmax(1), split.y_test.argmax(1)
        models = {
            "MLPClassifier, size 10": MLPClassifier(
                (HIDDEN,), activation="logistic", solver="lbfgs", max_iter=500, random_state=seed + k
            ),
            "SVC": SVC(),
        }
        for name, model in models.items():
            with warnings.catch_warnings():  # at its limit it has a rate all the same
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(split.X, y)
            rows.append((name, k, model.score(split.X, y), model.score(split.X_test, y_test), "scikit-learn"))
    return pd.DataFrame(rows, columns=["method", "split", "train", "test", "source"])
