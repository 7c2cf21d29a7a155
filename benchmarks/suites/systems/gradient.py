"""Networks trained by gradients: scikit-learn, R's nnet, PyTorch. Run by the Python of ``.venv-peers``."""

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from torch import Tensor

from benchmarks.suites.systems import r
from benchmarks.suites.tasks import Task, Weights

warnings.simplefilter("ignore", ConvergenceWarning)
BATCH, RATE, EPOCHS, RETRAIN = 128, 2e-3, 100, 100
STEEP = 0.1  # of proximal Adam: of 2e-3, 1e-2, 3e-2 and 0.1 this rate ends lowest on digits
RUNG = 1.35  # ratio of neighbouring strengths on the way to a share of zeros


def mlp_adam(task: Task, seed: int, max_iter: float) -> Weights:
    """scikit-learn's default solver."""
    return _mlp(task, seed, "adam", int(max_iter))


def mlp_lbfgs(task: Task, seed: int, max_iter: float) -> Weights:
    """scikit-learn's full-batch solver."""
    return _mlp(task, seed, "lbfgs", int(max_iter))


def _mlp(task: Task, seed: int, solver: str, max_iter: int) -> Weights:
    model = MLPClassifier(task.hidden, solver=solver, max_iter=max_iter, random_state=seed)
    model.fit(task.X, task.y)
    return [np.column_stack([b, w.T]) for w, b in zip(model.coefs_, model.intercepts_)]


def nnet(task: Task, seed: int, max_iter: float) -> dict:
    """R's BFGS with weight decay 5e-4 n / 1000; its hidden units are logistic, so it is judged here."""
    (width,), k = task.hidden, task.n_classes
    with tempfile.TemporaryDirectory() as folder:
        r.write(Path(folder), task)
        decay = 5e-7 * len(task.X)
        seconds = r.run("nnet.R", folder, width, int(max_iter), decay, k, seed)
        w = np.fromfile(Path(folder) / "W.bin")
    first = width * (1 + task.X.shape[1])
    hidden, out = w[:first].reshape(width, -1), w[first:].reshape(k, -1)
    reads = 1 / (1 + np.exp(-(task.X_test @ hidden[:, 1:].T + hidden[:, 0])))
    right = (reads @ out[:, 1:].T + out[:, 0]).argmax(1) == task.y_test
    judged = {"objective": None, "nonzero": w.size, "zeros": 0.0, "accuracy": float(right.mean())}
    return {"seconds": seconds, "judged": judged}


class Trained:
    """A ReLU network in single precision, biases in column 0, and the training rows as tensors."""

    def __init__(self, task: Task, seed: int) -> None:
        torch.manual_seed(seed)
        self.task = task
        self.X = torch.tensor(task.X, dtype=torch.float32)
        self.y = torch.tensor(task.y, dtype=torch.long)
        self.W = []
        for n_in, n_out in zip(task.sizes, task.sizes[1:]):
            w = torch.empty(n_out, 1 + n_in).uniform_(-1, 1) / n_in**0.5  # PyTorch's own start
            self.W.append(w.requires_grad_())

    def loss(self, rows: Tensor) -> Tensor:
        """The mean loss of some rows."""
        reads = self.X[rows]
        for w in self.W[:-1]:
            reads = torch.relu(torch.addmm(w[:, 0], reads, w[:, 1:].T))
        eta = torch.addmm(self.W[-1][:, 0], reads, self.W[-1][:, 1:].T)
        return torch.nn.functional.cross_entropy(eta, self.y[rows])

    def train(self, epochs: int, after: Callable[[torch.optim.Adam], None], rate: float, falls: bool) -> None:
        """Adam in random batches; ``after`` acts on the weights after every step; the rate may fall to 0."""
        adam = torch.optim.Adam(self.W, rate, foreach=True)
        starts = range(0, len(self.X), BATCH)
        steps = max(epochs * len(starts), 1)
        cosine = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps) if falls else None
        for _ in range(epochs):
            order = torch.randperm(len(self.X))
            for begin in starts:
                adam.zero_grad(set_to_none=True)
                self.loss(order[begin : begin + BATCH]).backward()
                adam.step()
                with torch.no_grad():
                    after(adam)
                if cosine is not None:
                    cosine.step()

    def weights(self) -> Weights:
        """The weights as NumPy arrays."""
        return [w.detach().numpy().copy() for w in self.W]


def soft_threshold(W: list[Tensor], alpha: float) -> Callable[[torch.optim.Adam], None]:
    """The prox of ``alpha sum |w|`` in the metric of Adam's step: exact zeros, and the right fixed points.

    A threshold that is the same for all weights would solve another problem (Yun, Lozano and Yang, 2021).
    """

    def after(adam: torch.optim.Adam) -> None:
        group = adam.param_groups[0]
        for w in W:
            seen = adam.state[w]
            second = seen["exp_avg_sq"] / (1 - group["betas"][1] ** seen["step"])
            length = group["lr"] / (second.sqrt() + group["eps"])
            w.copy_(torch.sign(w) * torch.relu(w.abs() - alpha * length))

    return after


def proximal_adam(task: Task, seed: int, epochs: float) -> Weights:
    """Adam with the exact prox after every step, the rate falling to 0 along a cosine."""
    net = Trained(task, seed)
    net.train(int(epochs), soft_threshold(net.W, task.gamma / len(task.X)), STEEP, True)
    return net.weights()


def proximal_adam_at(task: Task, seed: int, level: float) -> Weights:
    """The same along rising strengths until the share of zeros is there."""
    net, gamma = Trained(task, seed), task.gamma / 3
    while True:
        net.train(EPOCHS, soft_threshold(net.W, gamma / len(task.X)), STEEP, True)
        total = sum(w.numel() for w in net.W)
        if sum(int((w != 0).sum()) for w in net.W) <= (1 - level) * total:
            return net.weights()
        gamma *= RUNG


def adam(task: Task, seed: int, epochs: float) -> Weights:
    """No penalty at all."""
    return _dense(task, seed, int(epochs)).weights()


def _dense(task: Task, seed: int, epochs: int) -> Trained:
    net = Trained(task, seed)
    net.train(epochs, lambda adam: None, RATE, False)
    return net


def _largest(groups: list[list[Tensor]], level: float) -> list[Tensor]:
    """Masks that keep the largest weights and biases of every group, so that ``level`` of it is zero."""
    masks = []
    for group in groups:
        sizes = torch.cat([w.detach().abs().ravel() for w in group])
        cut = sizes.kthvalue(max(round(level * sizes.numel()), 1)).values
        masks += [(w.detach().abs() > cut).float() for w in group]
    return masks


def _pruned(task: Task, seed: int, level: float, by_layer: bool, retrain: int) -> Weights:
    net = _dense(task, seed, EPOCHS)
    masks = _largest([[w] for w in net.W] if by_layer else [net.W], level)

    def hold(_: object) -> None:
        for w, mask in zip(net.W, masks):
            w.mul_(mask)

    with torch.no_grad():
        hold(None)
    net.train(retrain, hold, RATE, True)
    return net.weights()


def pruned_globally(task: Task, seed: int, level: float) -> Weights:
    """Dense training, then the smallest weights of the whole network become zero."""
    return _pruned(task, seed, level, False, 0)


def pruned_globally_retrained(task: Task, seed: int, level: float) -> Weights:
    """The same, and what is left is trained on."""
    return _pruned(task, seed, level, False, RETRAIN)


def pruned_by_layer(task: Task, seed: int, level: float) -> Weights:
    """Dense training, then the smallest weights of every layer become zero."""
    return _pruned(task, seed, level, True, 0)


def pruned_by_layer_retrained(task: Task, seed: int, level: float) -> Weights:
    """The same, and what is left is trained on."""
    return _pruned(task, seed, level, True, RETRAIN)


def pruned_gradually(task: Task, seed: int, level: float) -> Weights:
    """Dense training, then the share of zeros rises along ``level (1 - (1 - t)^3)`` while training goes on.

    Zhu and Gupta (2017), over half of the retraining.
    """
    net = _dense(task, seed, EPOCHS)
    steps, done, masks = RETRAIN * -(-len(task.X) // BATCH) / 2, 0, None

    def hold(_: object) -> None:
        nonlocal done, masks
        done += 1
        if masks is None or (done <= steps and done % 10 == 0):
            masks = _largest([net.W], level * (1 - (1 - min(done / steps, 1)) ** 3))
        elif done == round(steps) + 1:
            masks = _largest([net.W], level)
        for w, mask in zip(net.W, masks):
            w.mul_(mask)

    net.train(RETRAIN, hold, RATE, True)
    return net.weights()
