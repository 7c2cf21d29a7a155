"""What the lines of the study say: mean scores of the rules of choice, penalty by penalty, beside peers."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]
LOSSES = ("loss", "brier", "miss")


def rows_of(out: Path) -> list[Row]:
    """All lines of all files."""
    lines = [line for file in sorted(out.glob("*.jsonl")) for line in file.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def numbers(values: Any) -> np.ndarray:
    """Numbers; what was not finite is not one."""
    return np.array(values, float)


def least(losses: Any) -> int:
    """The place of the smallest."""
    return int(np.argmin(np.nan_to_num(numbers(losses), nan=np.inf)))


def singles(row: Row) -> dict[str, float]:
    """The test score of one network on all rows to train, by the rule that chose its strength."""
    fixed, walk, early = row["fixed"], row["walk"], row["early"]
    test, walked = numbers(fixed["full"]["test"]), numbers(walk["full"]["test"])[0]
    levels, alphas = numbers(walk["levels"]), numbers(row["alphas"])
    out = {"hindsight": test[0].max()}
    lowest = np.argmin(numbers(fixed["full"]["objective"]), axis=0)
    for name in LOSSES:
        folds, along = numbers(fixed[f"fold_{name}"]), numbers(walk[f"fold_{name}"])
        k, w = least(folds[0]), least(along[0])
        nearest = least(np.abs(np.log(alphas / levels[w])))
        out[f"a fifth held back, {name}"] = test[0, k]
        out[f"walk, a fifth held back, {name}"] = walked[w]
        out[f"walk, a fifth held back, {name}, fitted anew"] = test[0, nearest]
        mean, along = folds.mean(0), along.mean(0)
        k, w = least(mean), least(along)
        within = np.flatnonzero(mean <= mean[k] + numbers(fixed[f"se_{name}"])[k]).max()
        out[f"five folds, {name}"] = test[0, k]
        out[f"five folds, {name}, lowest of 3"] = test[lowest[k], k]
        out[f"five folds, {name}, mean of 3"] = numbers(fixed["full"]["average"])[k]
        out[f"five folds, {name}, 1se"] = test[0, within]
        out[f"walk, five folds, {name}"] = walked[w]
        first = numbers(early[f"fold_{name}"])[0]
        out[f"stopped early, {name}"] = numbers(early["test"])[0, least(first)]
    out |= {f"criterion {name}": test[0, k] for name, k in criteria(row).items()}
    return out


def criteria(row: Row) -> dict[str, int]:
    """The strength that a criterion chooses: weights count, the variance is that of the fifth held back."""
    full, n = row["fixed"]["full"], row["n"]
    loss, df = numbers(full["train"])[0], numbers(full["n_nonzero"])[0]
    held = numbers(row["fixed"]["fold_loss"])[0].min()
    deviance = 2 * n * loss if row["classes"] else 2 * n * loss / max(held, 1e-12)
    cost = {"AIC": 2.0, "BIC": np.log(n)}
    out = {name: least(deviance + each * df) for name, each in cost.items()}
    small = np.where(df < n - 1, 2 * df * n / np.maximum(n - df - 1, 1), np.inf)
    return out | {"AICc": least(deviance + small)}


def averages(row: Row) -> dict[str, float]:
    """The test score of averages of the five networks of the folds."""
    out = {"hindsight": max(numbers(row["fixed"]["average"]))}
    for phase in ("fixed", "early", "walk"):
        for name in LOSSES:
            for which in ("min", "near", "share", "own"):
                out[f"{phase}, {name}, {which}"] = row[phase][f"average_{name}"][f"test_{which}"]
    return out


def formulas(rows: list[Row]) -> dict[str, dict[tuple[str, int], float]]:
    """A strength in proportion to a fact about the data, the factor chosen on all other tables."""
    out: dict[str, dict[tuple[str, int], float]] = {}
    facts: dict[str, Callable[[Row], float]] = {
        "constant": lambda row: 1.0,
        "null": lambda row: row["null"],
        "noise": lambda row: row["noise95"],
        "root": lambda row: np.sqrt(np.log(max(row["p"], 2)) / row["n"]),
        "noise times share": lambda row: row["noise95"] * row["fixed"]["fold_loss"][0][4],
    }
    factors = np.geomspace(1e-3, 10, 33)
    for name, fact in facts.items():
        scores = np.array([[at(row, factor * fact(row)) for factor in factors] for row in rows])
        tables = np.array([row["table"] for row in rows])
        found = {}
        for row, own in zip(rows, scores):
            others = scores[tables != row["table"]].mean(0)
            found[row["table"], row["split"]] = float(own[int(np.argmax(others))])
        out[f"formula {name}"] = found
    return out


def at(row: Row, alpha: float) -> float:
    """The test score at a strength, between those that were run."""
    test = numbers(row["fixed"]["full"]["test"]).mean(0)
    return float(np.interp(np.log(max(alpha, 1e-12)), np.log(row["alphas"]), test))


def by_table(scores: dict[tuple[str, int], float], tables: Iterable[str]) -> list[float]:
    """The mean over splits of every table."""
    found = defaultdict(list)
    for (table, _), score in scores.items():
        found[table].append(max(score, -1.0))  # one bad R squared is not to decide
    return [float(np.mean(found[table])) for table in tables if table in found]


def report(out: Path) -> None:
    """Tables of mean scores: rules by penalties, and peers."""
    rows = rows_of(out)
    for held in (False, True):
        lanes = [row for row in rows if row["work"] == "lanes" and row["held"] == held]
        peers = [row for row in rows if row["work"] == "peer" and row["held"] == held]
        if lanes:
            print(f"\n# {'Tables kept aside' if held else 'Tables to choose on'}\n")
            print_lanes(lanes, peers)


def print_lanes(lanes: list[Row], peers: list[Row]) -> None:
    """All variants, then the peers on the same tables."""
    kinds = list(dict.fromkeys((row["kind"], row["variant"]) for row in lanes))
    plain = [kind for kind in kinds if kind[1] == "plain"]
    every = [{row["table"] for row in lanes if (row["kind"], row["variant"]) == kind} for kind in plain]
    tables = sorted(set.intersection(*every)) if every else []
    print(f"{len(tables)} tables, splits {sorted({row['split'] for row in lanes})}\n")
    columns: dict[str, dict[str, float]] = {}
    for kind in kinds:
        own = [row for row in lanes if (row["kind"], row["variant"]) == kind and row["table"] in tables]
        if {row["table"] for row in own} == set(tables):
            columns["/".join(kind)] = means(own, tables)
    names = list(dict.fromkeys(name for column in columns.values() for name in column))
    print("| rule | " + " | ".join(columns) + " |\n|---|" + "---:|" * len(columns))
    for name in names:
        cells = " | ".join(f"{column.get(name, np.nan):.3f}" for column in columns.values())
        print(f"| {name} | {cells} |")
    print("\n| peer | mean score |\n|---|---:|")
    for name in dict.fromkeys(row["kind"] for row in peers):
        there = {(row["table"], row["split"]) for row in lanes}
        own = {(row["table"], row["split"]): row["test"] for row in peers if row["kind"] == name}
        found = by_table({key: own[key] for key in own if key in there}, tables)
        print(f"| {name} ({len(found)}) | {np.mean(found):.3f} |")


def means(rows: list[Row], tables: list[str]) -> dict[str, float]:
    """The mean score of every rule over tables."""
    found: dict[str, dict[tuple[str, int], float]] = defaultdict(dict)
    for row in rows:
        key = row["table"], row["split"]
        for group, told in (("one", singles(row)), ("average", averages(row))):
            for name, score in told.items():
                found[f"{group}: {name}"][key] = score
    found |= {f"one: {name}": scores for name, scores in formulas(rows).items()}
    return {name: float(np.mean(by_table(scores, tables))) for name, scores in found.items()}
