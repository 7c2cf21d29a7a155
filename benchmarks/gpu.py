"""Fashion-MNIST on one GPU: deepprox against PyTorch's Adam, pruning and proximal Adam, in single precision.

    PYTHONPATH=src:. python -m benchmarks.gpu --pack build/gpu              # once, where the data are
    PYTHONPATH=src:. python -m benchmarks.gpu --data build/gpu --minutes 9  # on the machine with the card

Needs jax, torch and scikit-learn. Every part is a process of its own with a share of the time, and writes a
line of JSON for everything that it finds, so that nothing is lost when time is up. ``--tiny`` is the same
with small networks on few images, for a machine without a card.
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
ALPHAS = (1e-5, 2e-5, 3e-5, 4e-5, 6e-5, 1e-4, 2e-4, 1e-3)  # on the mean loss
WEAK = ALPHAS[0]
BATCH, RATE, EPOCHS, RETRAIN = 1024, 2e-3, 30, 10
BATCHES = 60  # iterations of the whole batch phase: fewer are a shorter one, and no join phase
EFFORTS = (4, 8, 15, 30, BATCHES, BATCHES + 25, BATCHES + 100)  # iterations, all phases together
SPARSE_EFFORTS = (BATCHES, BATCHES + 50)
SWEEPS = 40  # of a whole split phase
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
    rows = model._history
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

    told = {"batch_size": BATCH} | params
    return DeepClassifier(
        given.hidden, alpha=alpha, standardize=False, dtype="float32", tol=alpha / 30, max_iter=max_iter,
        random_state=0, **told,
    )  # fmt: skip


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
    for effort in (EFFORTS[0], EFFORTS[-1]):  # without and with a join phase
        model = estimator(given, WEAK, effort)
        yield {"cold": True, "effort": effort, "seconds": fit(model, given)}
    for effort in EFFORTS:
        if given.late():
            return
        model = estimator(given, WEAK, effort)
        yield {"effort": effort} | described(model, given, fit(model, given))


def deepprox_sparse(given: Given) -> Found:
    """Every strength from random weights, twice: a network that shrinks compiles anew the first time."""
    for effort in SPARSE_EFFORTS:
        for alpha in ALPHAS[::-1]:
            for turn in ("cold", "warm"):
                if given.late():
                    return
                model = estimator(given, alpha, effort)
                yield {"turn": turn, "effort": effort} | described(model, given, fit(model, given))


def sweeping(given: Given) -> Found:
    """The split phase in the place of batches, alone and with steps after it."""
    for alpha, effort in ((WEAK, SWEEPS), (WEAK, SWEEPS + 100), (ALPHAS[5], SWEEPS + 100)):
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
        device = str(jax.devices()[0])
        yield {"precision": precision, "tflops": 2 * size**3 / min(times) / 1e12, "device": device}


# PyTorch


class Trained:
    """A ReLU network on the card, biases in column 0, trained by Adam; only training is timed."""

    def __init__(self, given: Given) -> None:
        import torch

        self.torch, self.given, self.seconds = torch, given, 0.0
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.manual_seed(0)
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


def warmed(given: Given) -> Trained:
    """A new network, after the card has been through a few steps."""
    for _ in Trained(given._replace(X=given.X[:BATCH], y=given.y[:BATCH])).epochs(
        3, lambda _: None, RATE, False
    ):
        pass
    return Trained(given)


def adam(given: Given) -> Found:
    """Dense training, judged after every epoch."""
    net = warmed(given)
    for epoch in net.epochs(EPOCHS, lambda _: None, RATE, False):
        yield {"epoch": epoch} | net.judged()
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
    net = warmed(given)
    for _ in net.epochs(EPOCHS // 2, lambda _: None, RATE, False):
        pass
    yield {"way": "dense"} | net.judged()
    dense, spent = [w.detach().clone() for w in net.W], net.seconds
    for level in LEVELS:
        for by_layer in (False, True):
            if given.late():
                return
            with net.torch.no_grad():
                for w, start in zip(net.W, dense):
                    w.copy_(start)
            net.seconds, masks = spent, largest(net, level, by_layer)

            def hold(_: Any, masks: list[Any] = masks) -> None:
                for w, mask in zip(net.W, masks):
                    w.mul_(mask)

            with net.torch.no_grad():
                hold(None)
            way = "pruned by layer" if by_layer else "pruned globally"
            yield {"way": way, "level": level} | net.judged()
            for _ in net.epochs(RETRAIN, hold, RATE, True):
                pass
            yield {"way": f"{way}, retrained", "level": level} | net.judged()


def proximal_adam(given: Given) -> Found:
    """Adam with the exact soft-threshold in its own metric after every step, for every strength."""
    for alpha in ALPHAS:
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
# part, network, precision of JAX's products, share of the time
PLAN = [
    ("products", "2 x 1000", "default", 1),
    ("adam", "2 x 1000", "default", 2),
    ("deepprox", "2 x 1000", "default", 6),
    ("deepprox, sparse", "2 x 1000", "default", 14),
    ("pruning", "2 x 1000", "default", 3),
    ("proximal adam", "2 x 1000", "default", 4),
    ("deepprox", "10 x 600", "default", 7),
    ("adam", "10 x 600", "default", 2),
    ("deepprox", "3 x 1500", "default", 5),
    ("adam", "3 x 1500", "default", 2),
    ("deepprox, devices", "2 x 1000", "default", 3),
    ("deepprox, sweeps", "2 x 1000", "default", 5),
]


def work(options: argparse.Namespace) -> None:
    """One part in this process."""
    part, net = options.part, NETS[options.net]
    began = time.perf_counter()
    data = load(options.data, options.tiny)
    given = Given(*data, net.tiny if options.tiny else net.hidden, began + options.seconds)
    label = {
        "part": part,
        "net": options.net,
        "precision": os.environ.get("JAX_DEFAULT_MATMUL_PRECISION", "default"),
    }
    for row in PARTS[part](given):
        with options.out.open("a") as file:
            file.write(json.dumps(label | row) + "\n")


def run_all(options: argparse.Namespace) -> None:
    """Every part in turn, each with its share; one that fails or is late leaves a line that says so."""
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("")
    ends, plan = time.perf_counter() + 60 * options.minutes, PLAN
    for k, (part, net, precision, share) in enumerate(plan):
        left = ends - time.perf_counter()
        seconds = min(max(1.2 * left * share / sum(p[-1] for p in plan[k:]), LEAST), left - 5)
        if seconds < LEAST / 2:
            break
        environment = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        if precision != "default":
            environment["JAX_DEFAULT_MATMUL_PRECISION"] = precision
        command = [sys.executable, "-m", "benchmarks.gpu", "--part", part, "--net", net]
        command += ["--seconds", f"{0.85 * seconds:.0f}", "--data", options.data, "--out", options.out]
        command += ["--tiny"] if options.tiny else []
        print(f"{part}, {net}, {precision}: {seconds:.0f} s", flush=True)
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
                file.write(
                    json.dumps({"part": part, "net": net, "precision": precision, "trouble": trouble}) + "\n"
                )
    summary([json.loads(line) for line in options.out.read_text().splitlines()])


def summary(rows: list[dict[str, Any]]) -> None:
    """The answers, in lines."""
    for row in rows:
        if "tflops" in row:
            print(f"products, {row['precision']}: {row['tflops']:.1f} TFLOP/s on {row['device']}")
    runs = dict.fromkeys(
        (r["part"], r["net"], r["precision"]) for r in rows if r["part"] in ("adam", "deepprox")
    )
    for run in runs:
        mine = [r for r in rows if (r["part"], r["net"], r["precision"]) == run and "accuracy" in r]
        firsts = [min((r["seconds"] for r in mine if r["accuracy"] >= goal), default=None) for goal in GOALS]
        told = ", ".join(f"{g:.1%} in {'-' if s is None else f'{s:.2f} s'}" for g, s in zip(GOALS, firsts))
        best = max((r["accuracy"] for r in mine), default=float("nan"))
        print(f"{', '.join(run)}: {told}, best {best:.2%}")
        if run[0] == "deepprox" and mine:
            rates = "; ".join(pace(mine, phase) for phase in ("batch", "join"))
            told = [r["join monotone"] for r in mine if r["join monotone"] is not None]
            print(f"  {rates}; join phase monotone: {all(told) if told else 'not reached'}")
    for row in rows:
        if row["part"] in ("deepprox, devices", "deepprox, sweeps") and "accuracy" in row:
            told = {key: row.get(key) for key in ("devices", "turn", "effort", "alpha", "phases")}
            print(f"{row['part']}: {told}, {row['seconds']:.2f} s, {row['accuracy']:.2%}")
    sparse = [
        r for r in rows if "zeros" in r and r["part"] in ("pruning", "proximal adam", "deepprox, sparse")
    ]
    for level in LEVELS:
        print(f"at least {level:.0%} zeros:")
        for name in dict.fromkeys(map(_kind, sparse)):
            mine = [r for r in sparse if _kind(r) == name]
            there = [r for r in mine if r["zeros"] >= level - 1e-3]
            if there:
                best = min(there, key=lambda r: (r["zeros"], r["seconds"]))  # the weakest that is there
                words = ", ".join(word for word in name if word)
                told = f"{best['accuracy']:.2%} with {best['zeros']:.2%} zeros in {best['seconds']:.2f} s"
                print(f"  {words}: {told}, objective {best['objective']:.4f} at alpha {best['alpha']:g}")


def pace(rows: list[dict[str, Any]], phase: str) -> str:
    """What an iteration of a phase costs, and the phase beside its iterations, by least squares over fits."""
    rows = [row for row in rows if row["iterations"][phase]]
    counts = [row["iterations"][phase] for row in rows]
    if len(set(counts)) < 2:
        return f"{phase}: too few fits to say"
    slope, fixed = np.polyfit(counts, [row["phases"][phase] for row in rows], 1)
    rate = rows[0]["flops"][phase] / slope / 1e12
    return f"{phase} {1000 * slope:.1f} ms an iteration ({rate:.2f} TFLOP/s) and {fixed:.2f} s beside them"


def _kind(row: dict[str, Any]) -> tuple[str, ...]:
    told = (row.get(key, "") for key in ("way", "turn", "effort", "epoch"))
    return (row["part"], *(str(word) for word in told))


def main() -> None:
    """Pack the data, run one part, or run all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__.splitlines()[0])
    parser.add_argument("--pack", type=Path, metavar="FOLDER", help="write the images there and end")
    parser.add_argument("--data", type=Path, default=Path("build/gpu"), metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=Path("build/gpu/results.jsonl"), metavar="FILE")
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--tiny", action="store_true", help="small networks on 2048 images")
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--net", choices=NETS)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    if options.pack:
        pack(options.pack)
    elif options.part:
        work(options)
    else:
        run_all(options)


if __name__ == "__main__":
    main()
