"""One page of what the lines say."""

from collections import defaultdict
from typing import Any

import numpy as np

Row = dict[str, Any]
LEAST = -1.0  # no R squared counts as lower: one bad split is not to decide a mean


def page(rows: list[Row]) -> str:
    """Means over tables of three kinds, then every table."""
    real = [row for row in rows if row["source"] != "drawn" and not row["held"]]
    parts = [
        "# Tables",
        "",
        "Test scores (accuracy, or R squared) of fits to 70 % of the rows, means over splits, from",
        "`python -m benchmarks tables`. A score below -1 counts as -1. Ranks go from 1, the best of a table.",
        "Non-zeros are weights and biases; seconds are a processor's, medians over fits, with compilation.",
        "",
        *summary("Tables that defaults may have been chosen on", real),
        *summary("Tables kept aside", [row for row in rows if row["held"]]),
        *summary("Drawn tables", [row for row in rows if row["source"] == "drawn"]),
        *found_inputs([row for row in rows if row["source"] == "drawn"]),
        *every(rows),
    ]
    return "\n".join(parts) + "\n"


def scores(rows: list[Row]) -> dict[str, dict[str, float]]:
    """The mean score over splits, by model and table."""
    each: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if "test" in row:
            each[row["model"]][row["table"]].append(max(row["test"], LEAST))
    return {model: {table: float(np.mean(s)) for table, s in own.items()} for model, own in each.items()}


def median(rows: list[Row], field: str) -> str:
    """The median of what rows have of a field."""
    values = [row[field] for row in rows if field in row]
    return f"{np.median(values):.3g}" if values else ""


def summary(title: str, rows: list[Row]) -> list[str]:
    """A line for every model: on the tables that all models have, so that means are of the same things."""
    found = scores(rows)
    if not found:
        return []
    full = max(len(own) for own in found.values())
    models = [model for model, own in found.items() if len(own) == full]
    tables = sorted(set.intersection(*(set(found[model]) for model in models)))
    S = np.array([[found[model][table] for table in tables] for model in models])
    ranks = 1 + (S[:, None] < S[None] - 1e-9).sum(1) + ((np.abs(S[:, None] - S[None]) < 1e-9).sum(1) - 1) / 2
    lines = [f"## {title}", "", f"{len(tables)} tables.", ""]
    lines += ["| model | mean score | least | mean rank | non-zeros | inputs, share | seconds | certified |"]
    lines += ["|---|---:|---:|---:|---:|---:|---:|---:|"]
    for k in np.argsort(-S.mean(1)):
        own = [row for row in rows if row["model"] == models[k] and row["table"] in tables]
        shares = [{"share": len(row["inputs"]) / row["p"]} for row in own if "inputs" in row]
        ends = [row["status"] in ("converged", "settled") for row in own if "status" in row]
        cells = [models[k], f"{S[k].mean():.3f}", f"{S[k].min():.3f}", f"{ranks[k].mean():.1f}"]
        cells += [median(own, "n_nonzero"), median(shares, "share"), median(own, "seconds")]
        lines += ["| " + " | ".join([*cells, f"{np.mean(ends):.0%}" if ends else ""]) + " |"]
    left = [f"{model} ({len(own)})" for model, own in found.items() if model not in models]
    return [*lines, "", *([f"Not on all tables: {', '.join(left)}.", ""] if left else [])]


def found_inputs(rows: list[Row]) -> list[str]:
    """Of drawn tables: how many of the inputs that act were found, and how many that do not."""
    own = [row for row in rows if "inputs" in row and row["truth"] is not None]
    if not own:
        return []
    lines = ["Inputs found, share of those that act / of those that do not:", "", "| model | right | wrong |"]
    lines += ["|---|---:|---:|"]
    for model in dict.fromkeys(row["model"] for row in own):
        shares = []
        for row in own:
            if row["model"] == model:
                truth, chosen = set(row["truth"]), set(row["inputs"])
                shares.append(
                    (len(truth & chosen) / len(truth), len(chosen - truth) / (row["p"] - len(truth)))
                )
        right, wrong = np.mean(shares, axis=0)
        lines.append(f"| {model} | {right:.2f} | {wrong:.2f} |")
    return [*lines, ""]


def every(rows: list[Row]) -> list[str]:
    """The mean score of every model on every table."""
    found = scores(rows)
    if not found:
        return []
    about = {row["table"]: row for row in rows}
    lines = ["## Every table", "", "| table | rows, inputs | " + " | ".join(found) + " |"]
    lines += ["|---|---:|" + "---:|" * len(found)]
    for table, row in sorted(about.items()):
        best = max((own[table] for own in found.values() if table in own), default=0.0)
        cells = [f"{own[table]:.3f}" if table in own else "" for own in found.values()]
        cells = [f"**{cell}**" if cell == f"{best:.3f}" else cell for cell in cells]
        name = f"{table} (aside)" if row["held"] else table
        lines += [f"| {name}, {row['source']} | {row['n']} x {row['p']} | " + " | ".join(cells) + " |"]
    failed = [f"{row['model']} on {row['table']}: {row['failed']}" for row in rows if "failed" in row]
    return [*lines, "", *(["Fits that broke off: " + "; ".join(failed), ""] if failed else [])]
