"""Fashion-MNIST on one GPU: deepprox against PyTorch's Adam, pruning and proximal Adam, in single precision.

    PYTHONPATH=src:. python -m benchmarks.gpu --pack build/gpu              # once, where the data are
    PYTHONPATH=src:. python -m benchmarks.gpu --data build/gpu --minutes 9  # on the machine with the card
    PYTHONPATH=src:. python -m benchmarks.gpu --tell build/gpu/results.jsonl  # tables and a picture

Needs jax, torch and scikit-learn. Parts run in processes with a share of the time each, and write a line of
JSON for everything that they find, so that nothing is lost when time is up. ``--nets`` says which
networks, of which each wants six minutes. What is compared is started three times, and means are told.
``--tiny`` is the same with small networks on few images, for a machine without a card.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FILE = "fashion.npz"
GOALS, LEVELS = (0.88, 0.895), (0.90, 0.95, 0.98)
ALPHAS = tuple(float(f"{a:.1e}") for a in 10 ** np.arange(-5, -3.65, 0.1))  # on the mean loss
WEAK = ALPHAS[0]
STARTS = range(3)
BATCH, RATE, EPOCHS, RETRAIN = 1024, 2e-3, 30, 10
BATCHES = 60  # iterations of the whole batch phase: fewer are a shorter one, and no join phase
EFFORTS = (4, 5, 6, 8, 10, 12, 15, 30, BATCHES)  # iterations, all of them of the batch phase
JOINED = (BATCHES + 25, BATCHES + 100)  # iterations, those of a join phase among them
SWEEPS = 40  # of a whole split phase
SHORT = 1e-5  # share of zeros that may be missing: pruning rounds their number
PHASES = ("batch", "split", "join", "newton")
LEAST = 20.0  # seconds that a part gets: the first are imports


class Net(NamedTuple):
    """Hidden widths on the card, and those of the tiny run."""

    hidden: tuple[int, ...]
    tiny: tuple[int, ...]


NETS = {
    "2 x 1000": Net((1000,) * 2, (32,) * 2),
    "3 x 1500": Net((1500,) * 3, (40,) * 3),
    "10 x 600": Net((600,) * 10, (24,) * 10),
}


class Given(NamedTuple):
    """What a part works on: the data, hidden widths, and the seconds that it has."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    hidden: tuple[int, ...]
    ends: float

    @property
    def sizes(self) -> tuple[int, ...]:
        """Inputs, hidden widths, classes."""
        return (self.X.shape[1], *self.hidden, 10)

    def late(self) -> bool:
        """Whether the time is spent."""
        return time.perf_counter() > self.ends


Found = Iterator[dict[str, Any]]


def pack(folder: Path) -> None:
    """All images as bytes in one file of 30 MB."""
    from benchmarks.suites.tasks import fashion

    folder.mkdir(parents=True, exist_ok=True)
    (X, y), (X_test, y_test) = fashion("train"), fashion("t10k")
    np.savez_compressed(folder / FILE, X=X, y=y, X_test=X_test, y_test=y_test)
    print(f"{folder / FILE}: {(folder / FILE).stat().st_size / 2**20:.1f} MiB")


def load(folder: Path, tiny: bool) -> tuple[np.ndarray, ...]:
    """Images divided by 255, less the mean of the training images."""
    if not (folder / FILE).exists():
        raise SystemExit(
            f"There is no {folder / FILE}: make it with `python -m benchmarks.gpu --pack {folder}`."
        )
    with np.load(folder / FILE) as stored:
        X, y, X_test, y_test = (stored[name] for name in ("X", "y", "X_test", "y_test"))
    if tiny:
        X, y, X_test, y_test = X[:2048], y[:2048], X_test[:1000], y_test[:1000]
    X, X_test = X.astype(np.float32) / 255, X_test.astype(np.float32) / 255
    mean = X.mean(0)
    return X - mean, y.astype(np.int64), X_test - mean, y_test.astype(np.int64)


# deepprox


def sweep_flops(n: int, sizes: tuple[int, ...]) -> float:
    """Operations of the matrix products of a sweep: Gram matrices, fits, steps on them, and the Z-step."""
    total = 0.0
    for n_in, n_out in pairwise(sizes):
        p = n_in + 1
        gram, fits, steps = 2 * n * p * (p + n_out), 3 * 2 * n * p * n_out, 16 * 2 * n_out * p * p
        total += gram + fits + steps
    for width, after in pairwise(sizes[1:]):
        total += 2 * 2 * n * width * (width + after)
    return total


def gradient_flops(n: int, sizes: tuple[int, ...]) -> float:
    """Operations of a loss and its gradient: forward, and twice that back but for the inputs."""
    products = [2.0 * n * (n_in + 1) * n_out for n_in, n_out in pairwise(sizes)]
    return 3 * sum(products) - products[0]


def described(model: Any, given: Given, wall: float) -> dict[str, Any]:
    """What a fit gave, phase by phase."""
    W = [np.column_stack([b, w.T]) for w, b in zip(model.coefs_, model.intercepts_)]
    out = judged(W, given, model.alpha) | {"seconds": wall, "status": model.solution_.status}
    out["phases"] = {phase: float(seconds) for phase, seconds in model.solution_.seconds.items()}
    rows = model.fitted_.solution.history
    out["iterations"] = {phase: sum(row["phase"] == phase for row in rows) for phase in PHASES}
    out["live units"] = [int(mask.sum()) for mask in model.live_[1:]]
    from deepprox.batches import STEPS

    out["flops"] = {  # of one iteration
        "batch": STEPS * gradient_flops(BATCH, given.sizes),
        "split": sweep_flops(len(given.X), given.sizes),
        "join": gradient_flops(len(given.X), given.sizes),
    }
    objectives = [row["objective"] for row in rows if row["phase"] == "join"]
    rises = [b - a for a, b in pairwise(objectives) if b > a]
    out["join objectives"] = objectives[:: max(len(objectives) // 20, 1)]
    out["join monotone"] = max(rises, default=0.0) <= 1e-5 * abs(objectives[0]) if objectives else None
    out["largest rise"] = max(rises, default=0.0)
    return out


def judged(W: list[np.ndarray], given: Given, alpha: float) -> dict[str, Any]:
    """Objective on the mean scale with free biases, zeros among weights and biases, test accuracy."""
    weights = sum(w.size for w in W)
    eta = outputs(W, given.X_test)
    return {
        "alpha": alpha,
        "objective": mean_loss(W, given) + alpha * sum(float(np.abs(w[:, 1:]).sum()) for w in W),
        "nonzero": int(sum(np.count_nonzero(w) for w in W)),
        "zeros": float(1 - sum(np.count_nonzero(w) for w in W) / weights),
        "accuracy": float((eta.argmax(1) == given.y_test).mean()),
    }


def outputs(W: list[np.ndarray], X: np.ndarray) -> np.ndarray:
    """The last pre-activations of a ReLU network, in full single precision, whoever trained it."""
    import jax
    import jax.numpy as jnp

    with jax.default_matmul_precision("highest"):
        reads = jnp.asarray(X)
        for w in W[:-1]:
            reads = jnp.maximum(reads @ w[:, 1:].T + w[:, 0], 0)
        return np.asarray(reads @ W[-1][:, 1:].T + W[-1][:, 0])


def mean_loss(W: list[np.ndarray], given: Given) -> float:
    """The mean multinomial loss of the training images."""
    eta = outputs(W, given.X).astype(np.float64)
    top = eta.max(1)
    return float((np.log(np.exp(eta - top[:, None]).sum(1)) + top - eta[np.arange(len(eta)), given.y]).mean())


def estimator(given: Given, alpha: float, max_iter: int, **params: Any) -> Any:
    """Single precision, Adam's batches, and a tolerance that is small beside the penalty's pull."""
    from deepprox import DeepClassifier

    told = {"batch_size": BATCH, "random_state": 0} | params
    return DeepClassifier(
        given.hidden, alpha=alpha, standardize=False, dtype="float32", tol=alpha / 30, max_iter=max_iter,
        **told,
    )  # fmt: skip


def fitted(given: Given, alpha: float, effort: int, seed: int = 0) -> dict[str, Any]:
    """What a fit from a start gave, with its seconds."""
    model = estimator(given, alpha, effort, random_state=seed)
    return {"effort": effort, "start": seed} | described(model, given, fit(model, given))


def fit(model: Any, given: Given) -> float:
    """Seconds of a fit."""
    from sklearn.exceptions import ConvergenceWarning

    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(given.X, given.y)
    return time.perf_counter() - began


def deepprox(given: Given) -> Found:
    """A weak penalty: accuracy over iterations, each number of them a fit from the beginning."""
    for effort in (EFFORTS[0], JOINED[-1]):  # without and with a join phase
        yield {"cold": True, "effort": effort, "seconds": fit(estimator(given, WEAK, effort), given)}
    for seed in STARTS:
        for effort in EFFORTS + (JOINED if seed == 0 else ()):
            if given.late():
                return
            yield fitted(given, WEAK, effort, seed)


def deepprox_sparse(given: Given) -> Found:
    """Every strength from one start; those that have the zeros, and the next ones, from others too."""
    fit(estimator(given, ALPHAS[-1], BATCHES), given)  # compiles
    zeros = []
    for alpha in ALPHAS:
        if given.late():
            return
        row = fitted(given, alpha, BATCHES)
        zeros.append(row["zeros"])
        yield row
    enough = [np.flatnonzero(np.array(zeros) >= level - SHORT)[:2] for level in LEVELS]
    for k in np.unique(np.concatenate(enough)):
        for seed in STARTS[1:]:
            if given.late():
                return
            yield fitted(given, ALPHAS[k], BATCHES, seed)


def sweeping(given: Given) -> Found:
    """The split phase in the place of batches, alone and with steps after it."""
    for alpha, effort in ((WEAK, SWEEPS), (WEAK, SWEEPS + 100), (1e-4, SWEEPS + 100)):
        for turn in ("cold", "warm"):
            if given.late():
                return
            model = estimator(given, alpha, effort, batch_size=None)
            yield {"turn": turn, "effort": effort} | described(model, given, fit(model, given))


def on_devices(given: Given) -> Found:
    """The same fit with rows on the card, and spread over all cards, here one, by ``shard_map``."""
    for effort in (BATCHES, BATCHES + 100):
        for devices in (None, "all"):
            for turn in ("cold", "warm"):
                if given.late():
                    return
                model = estimator(given, WEAK, effort, devices=devices)
                told = {"turn": turn, "devices": str(devices), "effort": effort}
                yield told | described(model, given, fit(model, given))


def products(given: Given) -> Found:
    """What the card does at matrix products, in TFLOP/s: the ceiling of everything here."""
    import jax
    import jax.numpy as jnp

    size = 8192 if jax.default_backend() != "cpu" else 1024
    A = jnp.ones((size, size), jnp.float32)
    for precision in ("highest", "tensorfloat32"):
        multiply = jax.jit(lambda A, p=precision: jnp.matmul(A, A, precision=p))
        multiply(A).block_until_ready()
        times = []
        for _ in range(5):
            began = time.perf_counter()
            multiply(A).block_until_ready()
            times.append(time.perf_counter() - began)
        device = jax.devices()[0].device_kind
        yield {"precision": precision, "tflops": 2 * size**3 / min(times) / 1e12, "device": device}


# PyTorch


class Trained:
    """A ReLU network on the card, biases in column 0, trained by Adam; only training is timed."""

    def __init__(self, given: Given, seed: int = 0) -> None:
        import torch

        self.torch, self.given, self.seconds = torch, given, 0.0
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.manual_seed(seed)
        self.X = torch.tensor(given.X, device=self.device)
        self.y = torch.tensor(given.y, device=self.device)
        self.W = [
            ((2 * torch.rand(n_out, 1 + n_in, device=self.device) - 1) * (6 / n_in) ** 0.5).requires_grad_()
            for n_in, n_out in pairwise(given.sizes)
        ]

    def loss(self, rows: Any) -> Any:
        """The mean loss of some rows."""
        torch, reads = self.torch, self.X[rows]
        for w in self.W[:-1]:
            reads = torch.relu(torch.addmm(w[:, 0], reads, w[:, 1:].T))
        eta = torch.addmm(self.W[-1][:, 0], reads, self.W[-1][:, 1:].T)
        return torch.nn.functional.cross_entropy(eta, self.y[rows])

    def epochs(self, count: int, after: Callable[[Any], None], rate: float, falls: bool) -> Iterator[int]:
        """Adam; ``after`` acts on the weights after every step. Yields after every epoch, the clock off."""
        torch = self.torch
        adam = torch.optim.Adam(self.W, rate, fused=self.device == "cuda")
        starts = range(0, len(self.X), BATCH)
        cosine = torch.optim.lr_scheduler.CosineAnnealingLR(adam, count * len(starts)) if falls else None
        for epoch in range(count):
            began = self._now()
            order = torch.randperm(len(self.X), device=self.device)
            for begin in starts:
                adam.zero_grad(set_to_none=True)
                self.loss(order[begin : begin + BATCH]).backward()
                adam.step()
                with torch.no_grad():
                    after(adam)
                if cosine is not None:
                    cosine.step()
            self.seconds += self._now() - began
            yield epoch + 1

    def _now(self) -> float:
        if self.device == "cuda":
            self.torch.cuda.synchronize()
        return time.perf_counter()

    def judged(self, alpha: float = 0.0) -> dict[str, Any]:
        """As deepprox is."""
        W = [w.detach().cpu().numpy() for w in self.W]
        return judged(W, self.given, alpha) | {"seconds": self.seconds}


def warmed(given: Given, seed: int = 0) -> Trained:
    """A new network, after the card has been through a few steps."""
    for _ in Trained(given._replace(X=given.X[:BATCH], y=given.y[:BATCH])).epochs(
        3, lambda _: None, RATE, False
    ):
        pass
    return Trained(given, seed)


def adam(given: Given) -> Found:
    """Dense training, judged after every epoch."""
    for seed in STARTS:
        net = warmed(given, seed)
        for epoch in net.epochs(EPOCHS, lambda _: None, RATE, False):
            yield {"epoch": epoch, "start": seed} | net.judged()
            if given.late():
                return


def largest(net: Trained, level: float, by_layer: bool) -> list[Any]:
    """Masks that keep the largest weights and biases, so that ``level`` of all, or of each layer, is zero."""
    masks = []
    for group in [[w] for w in net.W] if by_layer else [net.W]:
        sizes = net.torch.cat([w.detach().abs().ravel() for w in group])
        cut = sizes.kthvalue(round(level * sizes.numel())).values
        masks += [(w.detach().abs() > cut).float() for w in group]
    return masks


def pruning(given: Given) -> Found:
    """Dense Adam, then one-shot pruning of the whole or of each layer, then retraining of what is left."""
    for seed in STARTS:
        net = warmed(given, seed)
        for _ in net.epochs(EPOCHS // 2, lambda _: None, RATE, False):
            pass
        yield {"way": "dense", "start": seed} | net.judged()
        dense, spent = [w.detach().clone() for w in net.W], net.seconds
        for level in LEVELS:
            for by_layer in (False, True):
                if given.late():
                    return
                with net.torch.no_grad():
                    for w, start in zip(net.W, dense):
                        w.copy_(start)
                net.seconds = spent
                for row in pruned(net, level, by_layer):
                    yield {"level": level, "start": seed} | row


def pruned(net: Trained, level: float, by_layer: bool) -> Found:
    """A trained network with so many zeros, before and after retraining."""
    masks = largest(net, level, by_layer)

    def hold(_: Any) -> None:
        for w, mask in zip(net.W, masks):
            w.mul_(mask)

    with net.torch.no_grad():
        hold(None)
    way = "pruned by layer" if by_layer else "pruned globally"
    yield {"way": way} | net.judged()
    for _ in net.epochs(RETRAIN, hold, RATE, True):
        pass
    yield {"way": f"{way}, retrained"} | net.judged()


def proximal_adam(given: Given) -> Found:
    """Adam with the exact soft-threshold in its own metric after every step, for every strength."""
    for alpha in ALPHAS[3::3]:
        if given.late():
            return
        net = warmed(given)

        def shrink(adam: Any, net: Trained = net, alpha: float = alpha) -> None:
            torch, group = net.torch, adam.param_groups[0]
            for w in net.W:
                seen = adam.state[w]
                second = seen["exp_avg_sq"] / (1 - group["betas"][1] ** seen["step"])
                length = (group["lr"] / (second.sqrt() + group["eps"]))[:, 1:]
                v = w[:, 1:]
                v.copy_(torch.sign(v) * torch.relu(v.abs() - alpha * length))

        for epoch in net.epochs(EPOCHS, shrink, RATE, True):
            if epoch in (EPOCHS // 3, EPOCHS):
                yield {"epoch": epoch} | net.judged(alpha)


# Parts, and the process that runs them

PARTS: dict[str, Callable[[Given], Found]] = {
    "products": products,
    "adam": adam,
    "deepprox": deepprox,
    "pruning": pruning,
    "proximal adam": proximal_adam,
    "deepprox, sparse": deepprox_sparse,
    "deepprox, sweeps": sweeping,
    "deepprox, devices": on_devices,
}
# parts that share a process, where imports are done once, and shares of the time
PLAN: dict[tuple[str, ...], int] = {
    ("products",): 1,
    ("adam", "pruning", "proximal adam"): 6,
    ("deepprox", "deepprox, sparse"): 8,
    ("deepprox, devices", "deepprox, sweeps"): 3,
}
ONCE = ("products", "deepprox, devices", "deepprox, sweeps")  # parts of the first network alone


def work(options: argparse.Namespace) -> None:
    """Some parts in this process, for one network after the other."""
    began, data = time.perf_counter(), load(options.data, options.tiny)
    nets = options.nets[:1] if options.parts[0] in ONCE else options.nets
    for k, name in enumerate(nets):
        hidden = NETS[name].tiny if options.tiny else NETS[name].hidden
        given = Given(*data, hidden, began + options.seconds * (k + 1) / len(nets))
        for part in options.parts:
            for row in PARTS[part](given):
                with options.out.open("a") as file:
                    file.write(json.dumps({"part": part, "net": name} | row) + "\n")


def run_all(options: argparse.Namespace) -> None:
    """Every process in turn, each with its share; one that fails or is late leaves a line that says so."""
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("")
    ends = time.perf_counter() + 60 * options.minutes
    plan = list(PLAN.items())
    for k, (parts, share) in enumerate(plan):
        left = ends - time.perf_counter()
        seconds = min(max(1.2 * left * share / sum(p[-1] for p in plan[k:]), LEAST), left - 5)
        if seconds < LEAST / 2:
            break
        environment = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        command = [sys.executable, "-m", "benchmarks.gpu", "--parts", *parts, "--nets", *options.nets]
        command += ["--seconds", f"{0.9 * seconds:.0f}", "--data", options.data, "--out", options.out]
        command += ["--tiny"] if options.tiny else []
        print(f"{'; '.join(parts)}: {seconds:.0f} s", flush=True)
        trouble = ""
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds)
            if done.returncode:
                trouble = (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]
        except subprocess.TimeoutExpired:
            trouble = "its time was up"
        if trouble:
            print(f"  {trouble}", flush=True)
            with options.out.open("a") as file:
                file.write(json.dumps({"part": parts[0], "net": options.nets[0], "trouble": trouble}) + "\n")


# What was found

Rows = list[dict[str, Any]]


def tell(files: list[Path]) -> None:
    """Tables, targets and a picture of everything that the files hold."""
    from benchmarks.suites import report

    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    nets = [net for net in NETS if any(row["net"] == net for row in rows)]
    tables = [report.Table(*table) for table in (dense(rows, nets), *(sparse(rows, net) for net in nets))]
    tables += [report.Table(*table) for table in (phases(rows, nets), spread(rows)) if table[-1]]
    targets = [report.Target(*target) for target in wanted(rows, nets)]
    cards = sorted({row["device"] for row in rows if "device" in row})
    report.write("gpu", ABOUT, tables, targets, rows, " and ".join(cards))
    report.picture("gpu", [panel(rows, net) for net in nets])


ABOUT = """Fashion-MNIST in single precision on one card, data and batches of 1024 rows the same for all. \
Seconds of PyTorch are its steps alone, data on the card; those of deepprox are the whole of `fit`, \
compiled, from an array on the host to fitted weights on the host. Numbers are means over so many starts."""


def of(rows: Rows, part: str, net: str) -> Rows:
    """What a part found for a network, warm."""
    mine = [row for row in rows if (row["part"], row["net"]) == (part, net) and "accuracy" in row]
    return [row for row in mine if row.get("turn") != "cold"]


MEANS = ("accuracy", "zeros", "seconds", "objective")
SAME = ("effort", "epoch", "alpha", "way", "level")


def averaged(rows: Rows) -> Rows:
    """Rows that differ in their start alone as one, with means and the number of starts."""
    groups: dict[tuple, Rows] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(key) for key in SAME), []).append(row)
    return [
        mine[0] | {key: float(np.mean([row[key] for row in mine])) for key in MEANS} | {"starts": len(mine)}
        for mine in groups.values()
    ]


def best_of_starts(rows: Rows) -> float | None:
    """The best accuracy that a start ever had, as a mean over starts."""
    by_start: dict[int, float] = {}
    for row in rows:
        by_start[row["start"]] = max(by_start.get(row["start"], 0.0), row["accuracy"])
    return float(np.mean(list(by_start.values()))) if by_start else None


def dense(rows: Rows, nets: list[str]) -> tuple[str, list[str], list[list[Any]]]:
    """Seconds after which the mean over starts has reached each goal, and the best accuracy."""
    out: list[list[Any]] = []
    for net in nets:
        for part, words in (("adam", "PyTorch Adam"), ("deepprox", f"deepprox, alpha {WEAK:g}")):
            mine = of(rows, part, net)
            every = averaged(mine)
            firsts = [
                min((r["seconds"] for r in every if r["accuracy"] >= goal), default=None) for goal in GOALS
            ]
            best = best_of_starts(mine)
            if best:
                starts = max(row["starts"] for row in every)
                out.append([net, words, *firsts, 100 * best, max(row["seconds"] for row in every), starts])
    goals = [f"s to {100 * goal:g} %" for goal in GOALS]
    return "Dense", ["network", "system", *goals, "best % test", "longest s", "starts"], out


def weakest(rows: Rows, level: float) -> dict[str, Any] | None:
    """The model of fewest zeros with at least so many."""
    there = [row for row in rows if row["zeros"] >= level - SHORT]
    return min(there, key=lambda row: (row["zeros"], row["seconds"]), default=None)


def ways(rows: Rows, net: str) -> dict[str, Rows]:
    """The ways to sparse networks, each with its models, means over starts."""
    found: dict[str, Rows] = {"deepprox": averaged(of(rows, "deepprox, sparse", net))}
    for row in averaged(of(rows, "pruning", net)):
        if row["way"] != "dense":
            found.setdefault(f"PyTorch Adam, {row['way']}", []).append(row)
    for row in averaged(of(rows, "proximal adam", net)):
        found.setdefault(f"PyTorch proximal Adam, {row['epoch']} epochs", []).append(row)
    return found


def sparse(rows: Rows, net: str) -> tuple[str, list[str], list[list[Any]]]:
    """At each level of zeros, the model of every way that just has them."""
    out: list[list[Any]] = []
    for level in LEVELS:
        for words, mine in ways(rows, net).items():
            best = weakest(mine, level)
            if best:
                told = [100 * best["zeros"], 100 * best["accuracy"], best["seconds"], best["starts"]]
                charged = best["alpha"] or None
                out.append([f"{level:.0%}", words, *told, charged, best["objective"] if charged else None])
    columns = ["zeros", "system", "% zeros", "% test", "seconds", "starts", "alpha", "objective"]
    return f"{net}: at least so many zeros", columns, out


def phases(rows: Rows, nets: list[str]) -> tuple[str, list[str], list[list[Any]]]:
    """What an iteration of each phase costs at best, with the weak penalty, and what the card multiplies."""
    ceilings = {row["precision"]: row["tflops"] for row in rows if "tflops" in row}
    out: list[list[Any]] = []
    for net in nets:
        every = [row for part in PARTS if part.startswith("deepprox") for row in of(rows, part, net)]
        for phase in ("batch", "split", "join"):
            mine = [row for row in every if row["iterations"][phase] and row["alpha"] == WEAK]
            best = min(mine, key=lambda row: row["phases"][phase] / row["iterations"][phase], default=None)
            if best:
                pace = best["phases"][phase] / best["iterations"][phase]
                flops = best["flops"][phase] * (shrunk(best, net) if phase == "join" else 1)
                card = ceilings.get("tensorfloat32" if phase == "batch" else "highest", np.nan)
                rate = flops / pace / 1e12
                out.append([net, phase, 1000 * pace, rate, card, rate / card])
    columns = ["network", "phase", "ms an iteration", "TFLOP/s", "of the card", "share"]
    return "Phases (an iteration of the batch phase is 50 steps)", columns, out


def shrunk(row: dict[str, Any], net: str) -> float:
    """The share of the operations that a join step does: it works on live units, if they are few."""
    from deepprox.joining.live import Live, live_widths, n_weights

    sizes = (784, *NETS[net].hidden, 10)
    masks = [np.arange(size) < live for size, live in zip(NETS[net].hidden, row["live units"])]
    widths = (784, *live_widths(Live((np.ones(784, bool), *masks))), 10)
    cut, full = (n_weights((b, 1 + a) for a, b in pairwise(each)) for each in (widths, sizes))
    part = cut <= full / 2
    return gradient_flops(1, widths) / gradient_flops(1, sizes) if part else 1.0


def spread(rows: Rows) -> tuple[str, list[str], list[list[Any]]]:
    """Rows on one card in two ways, and sweeps in place of batches."""
    out = []
    for part in ("deepprox, devices", "deepprox, sweeps"):
        for row in of(rows, part, "2 x 1000"):
            words = f"devices={row['devices']}" if "devices" in row else f"sweeps, alpha {row['alpha']:g}"
            out.append([words, row["effort"], row["seconds"], 100 * row["accuracy"]])
    return (
        "2 x 1000: spread over all cards, here one, and sweeps",
        ["", "iterations", "seconds", "% test"],
        out,
    )


def wanted(rows: Rows, nets: list[str]) -> list[tuple[str, str, bool]]:
    """At 95 % zeros near dense Adam and sooner than pruning; a join phase that never rises."""
    out = []
    for net in nets:
        adam = best_of_starts(of(rows, "adam", net))
        found = ways(rows, net)
        ours = weakest(found.get("deepprox", []), 0.95)
        if ours and adam:
            text = f"{net}, 95 % zeros: within 0.5 point of dense Adam's best"
            told = f"{ours['accuracy']:.2%} beside {adam:.2%}"
            out.append((text, told, ours["accuracy"] >= adam - 0.005))
        kinds = ("globally", "by layer")
        pruned = [weakest(found.get(f"PyTorch Adam, pruned {kind}, retrained", []), 0.95) for kind in kinds]
        retrained = max((row for row in pruned if row), key=lambda row: row["accuracy"], default=None)
        if ours and retrained:
            text = f"{net}, 95 % zeros: in less time than Adam, pruning and retraining"
            told = (
                f"{ours['seconds']:.2f} s beside {retrained['seconds']:.2f} s ({retrained['accuracy']:.2%})"
            )
            out.append((text, told, ours["seconds"] < retrained["seconds"]))
        joined = [row for row in of(rows, "deepprox", net) if row["join monotone"] is not None]
        if joined:
            longest = max(joined, key=lambda row: row["iterations"]["join"])
            ends = longest["join objectives"]
            told = f"{longest['iterations']['join']} steps, {ends[0]:.4f} to {ends[-1]:.4f}"
            out.append((f"{net}: the join phase never rises", told, all(r["join monotone"] for r in joined)))
    return out


LEAST_SHOWN = 0.8  # what is below would flatten the rest of the picture


def panel(rows: Rows, net: str) -> dict[str, Any]:
    """Zeros against accuracy of a network."""
    curves = []
    for words, mine in ways(rows, net).items():
        if "by layer" in words or (words.startswith("PyTorch Adam") and "retrained" not in words):
            continue
        shown = [row for row in mine if 0.5 < row["zeros"] < 0.999 and row["accuracy"] > LEAST_SHOWN]
        mine = sorted(shown, key=lambda row: row["zeros"])
        curves.append((words, [100 * r["zeros"] for r in mine], [100 * r["accuracy"] for r in mine]))
    dense = best_of_starts(of(rows, "adam", net))
    lines = [] if dense is None else [(100 * dense, "dense Adam, best")]
    return {"title": net, "x": "% zeros", "y": "% test accuracy", "curves": curves, "lines": lines}


def main() -> None:
    """Pack the data, run one part, or run all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__.splitlines()[0])
    parser.add_argument("--pack", type=Path, metavar="FOLDER", help="write the images there and end")
    parser.add_argument("--data", type=Path, default=Path("build/gpu"), metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=Path("build/gpu/results.jsonl"), metavar="FILE")
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--nets", nargs="+", choices=NETS, default=list(NETS))
    parser.add_argument(
        "--tell", nargs="+", type=Path, metavar="FILE", help="tables of what was found, and end"
    )
    parser.add_argument("--tiny", action="store_true", help="small networks on 2048 images")
    parser.add_argument("--parts", nargs="+", choices=PARTS)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    if options.pack:
        pack(options.pack)
    elif options.tell:
        tell(options.tell)
    elif options.parts:
        work(options)
    else:
        run_all(options)


if __name__ == "__main__":
    main()
