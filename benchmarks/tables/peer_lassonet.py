"""One fit of LassoNet, run by a Python that has it: prints one line of JSON. Needs lassonet and torch.

The file given has ``X``, ``y``, ``train``, ``test`` and ``classes``; the second argument is "path", its path
with the state of least validation loss, or "folds", its estimator that chooses by five folds.
"""

import json
import sys
import time
import warnings

import numpy as np
import torch


def main(path: str, effort: str) -> None:
    """One hidden layer of 50 units; inputs, and a response of numbers, scaled by the rows to train."""
    import lassonet

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    data = np.load(path)
    X, y, train, test = (data[name] for name in ("X", "y", "train", "test"))
    classes, deviation = bool(data["classes"]), X[train].std(0)
    X = ((X - X[train].mean(0)) / np.where(deviation > 0, deviation, 1)).astype("float32")
    if not classes:
        y = ((y - y[train].mean()) / y[train].std()).astype("float32")
    kind = f"LassoNet{'Classifier' if classes else 'Regressor'}{'CV' if effort == 'folds' else ''}"
    began = time.process_time()
    model = getattr(lassonet, kind)(hidden_dims=(50,), random_state=0, torch_seed=0, verbose=False)
    if effort == "folds":
        model.fit(X[train], y[train])
        left = np.flatnonzero(np.asarray(model.best_selected_))
    else:
        found = model.path(X[train], y[train], return_state_dicts=True)
        best = min(found, key=lambda item: item.val_loss)
        model.load(best.state_dict)
        left = np.flatnonzero(np.asarray(best.selected))
    told = {"seconds": time.process_time() - began, "inputs": left.tolist()}
    told["n_nonzero"] = int(sum((w != 0).sum() for w in model.model.parameters()))
    guess = np.asarray(model.predict(X[test])).reshape(len(test))
    rest = ((guess - y[test]) ** 2).sum() / ((y[test] - y[test].mean()) ** 2).sum() if not classes else 0.0
    print(json.dumps(told | {"test": float((guess == y[test]).mean() if classes else 1 - rest)}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
