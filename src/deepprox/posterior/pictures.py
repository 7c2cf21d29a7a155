"""Pictures of draws: do the chains agree, which inputs matter, and would the model give such data."""

from typing import Any

import numpy as np

from deepprox.plotting.colours import INK, MUTED

CHAINS = ("#1F3B73", "#C8553D", "#2A7F62", "#E0A458", "#7A5195", "#5F7A8A")
MOST_INPUTS = 20


def overview(draws: Any) -> Any:
    """Traces, densities of one function value by chain, and a forest of inputs."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(9.6, 6.4), layout="constrained")
    _log_density(axes[0, 0], draws)
    _function_trace(axes[0, 1], draws)
    _function_density(axes[1, 0], draws)
    _forest(axes[1, 1], draws)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
    figure.suptitle(
        f"{draws.method}: {draws.verdict()}", x=0.01, ha="left", fontsize=10, color=INK, wrap=True
    )
    return figure


def _log_density(ax: Any, draws: Any) -> None:
    values = draws.statistics.get("log_density")
    if values is None:
        values, name = np.linalg.norm(draws.function_values, axis=(2, 3)), "norm of the function values"
    else:
        name = "log density"
    _traces(ax, values)
    ax.set_title(name, loc="left", fontsize=9, color=MUTED)


def _worst_value(draws: Any) -> np.ndarray:
    """The function value on which the chains agree least."""
    values = draws.function_values.reshape(draws.n_chains, draws.n_draws, -1)
    rhat = draws.diagnostics()["function"].rhat[: values.shape[2]]  # sigma may come after them
    return values[:, :, np.nanargmax(rhat)]


def _function_trace(ax: Any, draws: Any) -> None:
    _traces(ax, _worst_value(draws))
    ax.set_title("function value of the largest R-hat", loc="left", fontsize=9, color=MUTED)


def _traces(ax: Any, values: np.ndarray) -> None:
    for k, chain in enumerate(values):
        ax.plot(chain, lw=0.6, color=CHAINS[k % len(CHAINS)], alpha=0.8)
    ax.set_xlabel("draw")


def _function_density(ax: Any, draws: Any) -> None:
    values = _worst_value(draws)
    edges = np.histogram_bin_edges(values, bins=40)
    for k, chain in enumerate(values):
        ax.hist(
            chain, edges, density=True, histtype="step", color=CHAINS[k % len(CHAINS)], label=f"chain {k + 1}"
        )
    ax.set_title("its distribution in every chain", loc="left", fontsize=9, color=MUTED)
    ax.legend(frameon=False, fontsize=8)


def _forest(ax: Any, draws: Any) -> None:
    norms, names = draws.input_norms(), draws.names()
    order = np.argsort(-norms.mean(0), kind="stable")[:MOST_INPUTS][::-1]
    low, quarter, middle, three, high = np.quantile(norms[:, order], [0.05, 0.25, 0.5, 0.75, 0.95], axis=0)
    rows = np.arange(len(order))
    ax.hlines(rows, low, high, color=INK, lw=1)
    ax.hlines(rows, quarter, three, color=INK, lw=3)
    ax.plot(middle, rows, "o", color=INK, ms=4)
    ax.set_yticks(rows, [names[j] for j in order], fontsize=8, parse_math=False)
    ax.set_xlim(left=0)
    ax.set_title("norm of the weights that read an input, 50 % and 90 %", loc="left", fontsize=9, color=MUTED)


def predictive_check(draws: Any, n_replicates: int, seed: int) -> Any:
    """Replicated responses at the observations that the draws carry, beside those that were seen."""
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(draws), min(n_replicates, len(draws)), replace=False)
    replicates = draws.responses(draws.points, rng)[chosen]
    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    if draws.loss.simplex or draws.loss.binary:
        _class_counts(ax, replicates, draws.y)
    else:
        _distributions(ax, replicates, draws.y)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=9)
    return figure


def _class_counts(ax: Any, replicates: np.ndarray, y: np.ndarray) -> None:
    counts, seen = replicates.sum(1), y.sum(0)
    low, high = np.quantile(counts, [0.05, 0.95], axis=0)
    at = np.arange(len(seen))
    ax.vlines(at, low, high, color=INK, lw=3, label="90 % of replicates")
    ax.plot(at, seen, "o", color=CHAINS[1], label="seen")
    ax.set_xlabel("class")
    ax.set_ylabel("observations")
    ax.set_xticks(at)


def _distributions(ax: Any, replicates: np.ndarray, y: np.ndarray) -> None:
    share = np.arange(1, y.size + 1) / y.size
    for k, one in enumerate(replicates):
        ax.step(
            np.sort(one.ravel()),
            share,
            color=MUTED,
            lw=0.5,
            alpha=0.5,
            label="replicates" if k == 0 else None,
        )
    ax.step(np.sort(y.ravel()), share, color=CHAINS[1], lw=1.8, label="seen")
    ax.set_xlabel("response")
    ax.set_ylabel("share at most as large")
