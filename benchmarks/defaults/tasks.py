"""The work of the study: one task is one table and split, under lanes of networks, whole fits, or peers."""

import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.defaults.judged import Judge, by_folds, short
from benchmarks.tables.record import Table

ALPHAS = np.geomspace(1e-4, 1e-1, 10)
LEVELS = np.geomspace(1e-4, 1e-1, 19)  # every second one is among the strengths above
FOLDS = 5
STARTS = 3  # on all rows to train
FITTED = ALPHAS[[2, 4, 5, 6, 8]]  # of whole fits, which cost more
PERMUTED = 40  # responses in another order, for the strength that noise alone reaches
KINDS = ("l1", "bridge12", "bridge23", "mcp", "log_sum", "group_inputs", "group_units", "l2")
VARIANTS: dict[str, dict] = {
    "plain": {},
    "short": {"steps": 1000},
    "tanh": {"link": "tanh"},
    "two": {"hidden": (50, 50)},
    "wide": {"hidden": (200,)},
    "small": {"share": 32},
    "long": {"steps": 9000},
}


class Task(NamedTuple):
    """What to do: ``lanes`` of these kinds and this variant, a library ``fit``, or ``peers``."""

    work: str
    table: str
    split: int
    kinds: tuple[str, ...] = ()
    variant: str = "plain"
    batched: bool = True


class Part(NamedTuple):
    """One split of a table, responses as losses take them; all is centred and scaled by the rows to train."""

    X: np.ndarray
    Y: np.ndarray
    train: np.ndarray
    test: np.ndarray
    judge: Judge


def part_of(table: Table, split: int) -> Part:
    """The split with this number."""
    train, test = table.split(split)
    spread = table.X[train].std(0)
    X = (table.X - table.X[train].mean(0)) / np.where(spread > 0, spread, 1)
    if table.classes:
        Y = np.eye(int(table.y.max()) + 1)[table.y.astype(int)]
    else:
        Y = ((table.y - table.y[train].mean()) / table.y[train].std())[:, None]
    variance = 1.0 if table.classes else float(Y[train].var())
    return Part(X, Y, train, test, Judge(table.classes, variance))


def folds_of(part: Part) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows inside and outside of every fold."""
    from sklearn.model_selection import KFold, StratifiedKFold

    if not part.judge.classes:
        cut = KFold(FOLDS, shuffle=True, random_state=0).split(part.train)
    else:
        classes = part.Y[part.train].argmax(1)
        cut = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(part.train, classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [(part.train[inside], part.train[outside]) for inside, outside in cut]


def facts(table: Table, part: Part) -> dict[str, Any]:
    """What a formula for the strength may use: gradients of empty networks, and with permuted responses."""
    rng, X, Y = np.random.default_rng(0), part.X[part.train], part.Y[part.train]
    n, R = len(X), Y - Y.mean(0)
    largest = [np.abs(X.T @ R[rng.permutation(n)]).max() / n for _ in range(PERMUTED)]
    return {
        "table": table.name, "source": table.source, "held": table.held, "classes": table.classes,
        "n": n, "p": X.shape[1], "K": Y.shape[1], "null": np.abs(X.T @ R).max() / n,
        "noise50": np.quantile(largest, 0.5), "noise95": np.quantile(largest, 0.95),
        "deviation": float(R.std()),
        "constant": part.judge.score(np.tile(Y.mean(0), (len(part.test), 1)), part.Y[part.test]),
    }  # fmt: skip


def padded(rows: np.ndarray, length: int) -> np.ndarray:
    """Rows up to a length, the first one again and again."""
    return np.concatenate([rows, np.full(length - len(rows), rows[0])])


def lanes_of(task: Task, part: Part) -> tuple[Any, Any, Any, Any]:
    """What is shared, all lanes of ``fixed``, all lanes of ``walk``, and the folds."""
    import jax

    from benchmarks.defaults.lanes import How, Lanes, starts

    settings = dict(VARIANTS[task.variant])
    n, K = len(part.train), part.Y.shape[1]
    batch = max(8, min(n // 2, settings.pop("share", 0) or n // 8))
    given = {"hidden": (50,), "link": "relu", "steps": 3000} | settings
    how = How(kinds=task.kinds, outputs=K, classes=part.judge.classes, batch=batch, **given)
    folds, width = folds_of(part), n // FOLDS + K + 1
    level = np.log(np.maximum(part.Y[part.train].mean(0), 1e-8)) if how.classes else np.zeros(K)
    W = [starts(how, part.X.shape[1], level, 1000 * task.split + s) for s in range(max(FOLDS, STARTS))]
    sets = [(inside, outside, s) for s, (inside, outside) in enumerate(folds)]
    whole = [(part.train, folds[s][1], s) for s in range(STARTS)]

    def lanes(wanted: list, alphas: np.ndarray) -> Lanes:
        each = [(*one, k, a) for k in range(len(how.kinds)) for one in wanted for a in alphas]
        inside, outside, seeds, kinds, strength = zip(*each)
        keys = jax.vmap(jax.random.key)(np.array(seeds) + 10 * task.split)
        return Lanes(
            rows=np.stack([padded(one, n) for one in inside]).astype(np.int32),
            n=np.array([len(one) for one in inside], np.int32),
            held=np.stack([padded(one, width) for one in outside]).astype(np.int32),
            h=np.array([len(one) for one in outside], np.int32),
            test=np.stack([part.test] * len(each)).astype(np.int32),
            kind=np.array(kinds, np.int32),
            alpha=np.array(strength, np.float32),
            key=keys,
            W=tuple(np.stack(w) for w in zip(*(W[s] for s in seeds))),
        )

    return how, lanes(sets + whole, ALPHAS), lanes(sets + whole[:1], LEVELS[:1]), folds


def run_lanes(task: Task, table: Table) -> Iterator[dict[str, Any]]:
    """One row for every kind of penalty."""
    import jax

    from benchmarks.defaults.lanes import fixed, walk

    part = part_of(table, task.split)
    how, many, few, folds = lanes_of(task, part)
    X, Y = part.X.astype(np.float32), part.Y.astype(np.float32)
    began = time.perf_counter()
    end, best, when = jax.tree.map(np.asarray, fixed(how, X, Y, many))
    between = time.perf_counter()
    walked = jax.tree.map(np.asarray, walk(how, X, Y, few, LEVELS.astype(np.float32)))
    seconds = [between - began, time.perf_counter() - between]
    known = facts(table, part)
    for k, kind in enumerate(how.kinds):
        row = {"work": "lanes", "split": task.split, "kind": kind, "variant": task.variant, **known}
        row |= {"seconds": seconds, "kinds": len(how.kinds), "batch": how.batch, "alphas": ALPHAS}

        def cut(tree: Any, count: int, k: int = k) -> Any:
            return jax.tree.map(lambda a: a.reshape(len(how.kinds), -1, count, *a.shape[1:])[k], tree)

        row["fixed"] = told(part, folds, cut(end, len(ALPHAS)))
        row["early"] = told(part, folds, cut(best, len(ALPHAS)), whole=False)
        row["early"]["step"] = cut(when, len(ALPHAS))[:FOLDS]
        by_level = cut(walked, 1)
        row["walk"] = told(part, folds, jax.tree.map(lambda a: a[:, 0], by_level)) | {"levels": LEVELS}
        yield short(row)


def told(part: Part, folds: list, ends: Any, whole: bool = True) -> dict[str, Any]:
    """The numbers of networks by fold or start, and strength; the folds come first."""
    judge, y = part.judge, part.Y[part.test]
    test = judge.predictions(ends.test)
    held = [judge.predictions(ends.held[f, :, : len(rows)]) for f, (_, rows) in enumerate(folds)]
    out = by_folds(judge, held, [part.Y[rows] for _, rows in folds], test[:FOLDS], y)
    for name in ("n_nonzero", "inputs", "units", "train"):
        out[f"fold_{name}"] = getattr(ends, name)[:FOLDS]
    if whole:
        mean = test[FOLDS:].mean(0)
        out["full"] = {"test": judge.score(test[FOLDS:], y), "average": judge.score(mean, y)}
        out["full"]["loss"] = judge.losses(test[FOLDS:], y)["loss"].mean(-1)
        for name in ("n_nonzero", "inputs", "units", "train", "objective"):
            out["full"][name] = getattr(ends, name)[FOLDS:]
    return out


def run_fit(task: Task, table: Table) -> Iterator[dict[str, Any]]:
    """Whole fits of the library: batches or sweeps, then the join phase, to the certificate."""
    from deepprox import DeepClassifier, DeepRegressor

    part, kind = part_of(table, task.split), task.kinds[0]
    y = part.Y.argmax(1) if table.classes else part.Y[:, 0]
    make = DeepClassifier if table.classes else DeepRegressor
    batch = max(8, len(part.train) // 8) if task.batched else None
    for alpha in FITTED:
        model = make(penalty=kind, alpha=float(alpha), batch_size=batch, random_state=task.split)
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(part.X[part.train], y[part.train])
        found = model.solution_
        row: dict[str, Any] = {"work": "fit", "split": task.split, "kind": kind, "batched": task.batched}
        row |= {
            "alpha": float(alpha),
            "table": table.name,
            "held": table.held,
            "classes": table.classes,
            "n": len(part.train),
        }
        row |= {"seconds": time.perf_counter() - began, "status": found.status, "objective": model.objective_}
        row |= {"train": model.loss_, "certificate": found.certificate, "n_nonzero": model.n_nonzero_}
        row |= {"inputs": int(model.selected_features_.sum()), "n_iter": model.n_iter_}
        row["test"] = float(model.score(part.X[part.test], y[part.test]))
        yield {k: short(v) if isinstance(v, float | np.floating) else v for k, v in row.items()}


def run_peers(task: Task, table: Table) -> Iterator[dict[str, Any]]:
    """Defaults of scikit-learn on the same split."""
    from benchmarks.tables.peers import DEFAULTS, scored

    part = part_of(table, task.split)
    y = part.Y.argmax(1) if table.classes else part.Y[:, 0]
    for name, make in DEFAULTS.items():
        began = time.perf_counter()
        test = scored(make(table.classes), part.X, y, part.train, part.test)
        row = {"work": "peer", "split": task.split, "kind": name, "table": table.name, "held": table.held}
        yield row | {"classes": table.classes, "test": test, "seconds": time.perf_counter() - began}


RUN = {"lanes": run_lanes, "fit": run_fit, "peers": run_peers}


def all_tasks(names: list[str], splits: int, together: bool) -> tuple[list[Task], list[Task]]:
    """Lanes, then everything else, so ordered that what is done at any time is balanced over tables."""
    groups = [KINDS] if together else [(kind,) for kind in KINDS]
    first = [("plain", s) for s in range(min(splits, 2))]
    extra = [(variant, 0) for variant in VARIANTS if variant != "plain"]
    later = [("plain", s) for s in range(2, splits)]
    few = ("l1", "bridge12")
    lanes = [
        Task("lanes", name, split, kinds, variant)
        for variant, split in first + extra + later
        for kinds in (groups if variant == "plain" else [few])
        for name in names
    ]
    others = []
    for split in range(splits):
        others += [Task("peers", name, split) for name in names]
        for kind, batched in (("bridge", True), ("l1", True), ("l1", False), ("bridge", False)):
            others += [Task("fit", name, split, (kind,), "plain", batched) for name in names]
    return lanes, others
