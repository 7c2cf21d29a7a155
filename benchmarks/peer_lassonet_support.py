"""LassoNet's selection by validation, for :mod:`benchmarks.support`: prints one line of JSON."""

import json
import sys
import warnings

import numpy as np
import torch
from lassonet import LassoNetRegressor


def main(file: str, seed: int) -> None:
    """Its defaults with ten hidden units; the model of its path with the least validation loss."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(2)
    with np.load(file) as stored:
        X, y = stored["X"].astype("float32"), stored["y"].astype("float32")
    model = LassoNetRegressor(hidden_dims=(10,), random_state=seed, torch_seed=seed, verbose=False)
    path = model.path(X, (y - y.mean()) / y.std())
    best = min(path, key=lambda point: point.val_loss)
    print(json.dumps([bool(kept) for kept in best.selected]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
