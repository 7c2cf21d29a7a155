"""Whole paths of models, with the number of inputs that each keeps and its test accuracy."""

import warnings

from benchmarks.suites.tasks import Task


def deepprox_path(task: Task, seed: int, length: float) -> dict:
    """Inputs chosen by a group lasso on the first block, what they do refitted at the weakest strength."""
    from benchmarks.paths import rough_path

    path = rough_path(task.X, task.y, int(length))
    models = [(int(m.selected_features_.sum()), float(m.score(task.X_test, task.y_test))) for m in path]
    return {"judged": {"models": models}}


def lassonet_path(task: Task, seed: int, _: float) -> dict:
    """LassoNet's defaults with one hidden layer of 100 units."""
    import torch
    from lassonet import LassoNetClassifier

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    X, X_test = task.X.astype("float32"), task.X_test.astype("float32")
    model = LassoNetClassifier(hidden_dims=(100,), random_state=seed, torch_seed=seed, verbose=False)
    models = []
    for point in model.path(X, task.y, return_state_dicts=True):
        model.load(point.state_dict)
        models.append((int(point.selected.sum()), float((model.predict(X_test) == task.y_test).mean())))
    return {"judged": {"models": models}}
