"""Draws from a posterior: weights, predictions, and whether they can be trusted.

Chains agree when the rank-normalised split R-hat (Vehtari, Gelman, Simpson, Carpenter, Buerkner 2021) of what
they say is at most 1.01 and their effective draws, in the bulk and in the tails, are at least 100 a
chain. Units of a network can be relabelled: two chains may be in the same network with its units in another
order, and single weights then disagree for no reason. Function values, ``eta`` at observations, know
nothing of labels, so that they are judged first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from deepprox.arrays import answers_numpy
from deepprox.blocks import Block
from deepprox.checks import is_number, is_whole, shown
from deepprox.losses import Loss
from deepprox.problem import Network, Weights
from deepprox.report.table import Report, Table
from deepprox.runtime import precision

AGREE = 1.01  # R-hat above which chains disagree
ENOUGH = 100  # effective draws of every chain
MOST_ROWS = 20  # of a table of weights or inputs
PIECE = 256  # rows of inputs whose predictions are held for all draws at once


class Diagnostics(NamedTuple):
    """Of every number drawn: rank-normalised split R-hat, effective draws in the bulk and in the tails."""

    rhat: np.ndarray
    ess_bulk: np.ndarray
    ess_tail: np.ndarray

    @classmethod
    def of(cls, draws: np.ndarray) -> "Diagnostics":
        """Of an array over (chain, draw, ...); numbers that never vary have none (nan)."""
        try:
            from arviz_stats.base import array_stats
        except ImportError as error:
            raise ImportError(
                "Diagnostics of draws need ArviZ: pip install 'deepprox[posterior]'."
            ) from error
        flat = draws.reshape(*draws.shape[:2], -1)
        varies = np.ptp(flat, axis=(0, 1)) > 0
        out = np.full((3, flat.shape[2]), np.nan)
        if varies.any():
            axes = {"chain_axis": 0, "draw_axis": 1}
            out[0, varies] = array_stats.rhat(flat[:, :, varies], method="rank", **axes)
            out[1, varies] = array_stats.ess(flat[:, :, varies], method="bulk", **axes)
            out[2, varies] = array_stats.ess(flat[:, :, varies], method="tail", prob=(0.05, 0.95), **axes)
        return cls(*out.reshape(3, *draws.shape[2:]))

    def worst(self) -> tuple[float, float, float]:
        """The largest R-hat and the smallest numbers of effective draws."""
        if not np.isfinite(self.rhat).any():
            return np.nan, np.nan, np.nan
        return float(np.nanmax(self.rhat)), float(np.nanmin(self.ess_bulk)), float(np.nanmin(self.ess_tail))


def _one(network: Network, loss: Loss, W: Weights, mode: Weights | None, X: Any, as_mean: bool) -> Array:
    """``eta`` of one draw, or its mean: of the network, or of what is linear in the weights around a mode."""
    if mode is None:
        eta = network.forward(W, X)[-1]
    else:
        away = jax.tree.map(jnp.subtract, W, mode)
        eta = sum(jax.jvp(lambda W: network.forward(W, X)[-1], (mode,), (away,)))
    return loss.mean(eta) if as_mean else eta


@partial(jax.jit, static_argnames="as_mean")
def _outputs(
    network: Network, loss: Loss, W: Weights, mode: Weights | None, X: Array, as_mean: bool
) -> Array:
    return lax.map(lambda W: _one(network, loss, W, mode, X, as_mean), W)


@dataclass(frozen=True, repr=False)
class Draws:
    """Chains of draws of all weights of a fitted network, for standardised inputs, and what came with them.

    Parameters
    ----------
    W : tuple of ndarray of shape (n_chains, n_draws, n_out, 1 + n_in)
        Weights of every block on the scale of the fit, the bias in column 0.
    method : str
        How they were drawn.
    network, loss, sigma
        The model: with squared loss ``sigma`` is its standard deviation, a number or one for every draw of
        every chain; else None.
    points, y : ndarray
        Some observations of the fit, inputs on the scale of the fit: function values are judged there.
    statistics : dict of ndarray of shape (n_chains, n_draws)
        Acceptance, log density, divergences, as far as the method has them.
    input_names : sequence of str
        Names of the inputs.
    seconds : float
        Time taken.
    complete : bool
        False after an interruption.
    mode : tuple of ndarray or None
        Of Laplace's approximation, which is linear in the weights around it: predictions are so too. The
        network at Gaussian weights is another model, and a poor one (Immer, Korzepa, Bauer 2021).
    log_evidence : float or None
        The log marginal likelihood of Laplace's approximation, where it is known.
    evidence_message : str
        What it is of, or why there is none.
    """

    W: tuple[np.ndarray, ...]
    method: str
    network: Network
    loss: Loss
    points: np.ndarray
    y: np.ndarray
    sigma: Any = None
    statistics: dict[str, np.ndarray] = field(default_factory=dict)
    input_names: Sequence[str] = ()
    seconds: float = 0.0
    complete: bool = True
    mode: tuple[np.ndarray, ...] | None = None
    log_evidence: float | None = None
    evidence_message: str = "only with method='laplace'"
    _known: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def n_chains(self) -> int:
        """How many chains ran side by side."""
        return self.W[0].shape[0]

    @property
    def n_draws(self) -> int:
        """Draws of every chain."""
        return self.W[0].shape[1]

    def __len__(self) -> int:
        return self.n_chains * self.n_draws

    def __repr__(self) -> str:
        return f"Draws({self.method}: {self.n_chains} chains of {self.n_draws})"

    def outputs(self, X: np.ndarray, as_mean: bool = False) -> np.ndarray:
        """``eta`` of all draws, or their means, at inputs on the scale of the fit: (draws, rows, columns)."""
        flat, X = tuple(w.reshape(-1, *w.shape[2:]) for w in self.W), np.asarray(X, float)
        if self._in_numpy:
            with np.errstate(all="ignore"):
                draws = [_one(self.network, self.loss, W, None, X, as_mean) for W in zip(*flat)]
            return np.asarray(draws)
        with precision(np.float64):
            return np.asarray(_outputs(self.network, self.loss, flat, self.mode, X, as_mean))

    @property
    def _in_numpy(self) -> bool:
        """Whether predictions need no derivatives: one block is linear in its weights as it is."""
        links = [block.link for block in self.network.blocks]
        return (self.mode is None or len(links) == 1) and answers_numpy(*links, self.loss)

    def mean(self, X: np.ndarray) -> np.ndarray:
        """The expected response, averaged over the draws, at inputs on the scale of the fit."""
        return np.concatenate([self.outputs(piece, as_mean=True).mean(0) for piece in _pieces(X)])

    def interval(self, X: np.ndarray, level: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the central interval that holds a new response with probability ``level``, row by row."""
        rng = np.random.default_rng(seed)
        tails = [(1 - level) / 2, (1 + level) / 2]
        ends = [np.quantile(self.responses(piece, rng), tails, axis=0) for piece in _pieces(X)]
        low, high = np.concatenate(ends, axis=1)
        return low, high

    def responses(self, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A new response of every draw at every row: (draws, rows, columns)."""
        means = self.outputs(X, as_mean=True)
        precisions = np.ravel(1.0 if self.sigma is None else self.sigma / self.loss.unit()) ** -2.0
        count = np.broadcast_to(precisions[:, None], means.shape[:2]).reshape(-1, 1)
        return self.loss.draw(rng, means.reshape(-1, means.shape[2]), count).reshape(means.shape)

    @property
    def draws_sigma(self) -> bool:
        """Whether ``sigma`` was drawn with the weights."""
        return np.ndim(self.sigma) > 0

    @property
    def eta(self) -> np.ndarray:
        """``eta`` at ``points``: (chains, draws, points, columns)."""
        if "eta" not in self._known:
            eta = self.outputs(self.points)
            self._known["eta"] = eta.reshape(self.n_chains, self.n_draws, *eta.shape[1:])
        return self._known["eta"]

    @property
    def function_values(self) -> np.ndarray:
        """``eta`` at ``points``, less its mean over classes where the response does not see it."""
        eta = self.eta
        return eta - eta.mean(-1, keepdims=True) if self.loss.simplex else eta

    def input_norms(self) -> np.ndarray:
        """Norms of the weights that read each input, whatever the order of units: (draws, inputs)."""
        first = Block.slopes(self.W[0]).reshape(len(self), *self.W[0].shape[2:-1], -1)
        return np.linalg.norm(first, axis=1)

    def diagnostics(self) -> dict[str, Diagnostics]:
        """``"function"`` for function values at ``points``, then ``"W1"``, ``"W2"``, ... for the blocks.

        Where ``sigma`` was drawn it is the last of the function values: predictions need both.
        """
        if "diagnostics" not in self._known:
            values = self.function_values.reshape(self.n_chains, self.n_draws, -1)
            if self.draws_sigma:
                values = np.concatenate([values, self.sigma[..., None]], axis=2)
            found = {"function": Diagnostics.of(values)}
            found |= {f"W{l + 1}": Diagnostics.of(w) for l, w in enumerate(self.W)}
            self._known["diagnostics"] = found
        return self._known["diagnostics"]

    def worst(self) -> dict[str, tuple[float, float, float]]:
        """The largest R-hat and the fewest effective draws of function values and of weights."""
        found = self.diagnostics()
        weights = np.array([each.worst() for name, each in found.items() if name != "function"])
        largest = (
            float(np.nanmax(weights[:, 0])),
            float(np.nanmin(weights[:, 1])),
            float(np.nanmin(weights[:, 2])),
        )
        return {"function": found["function"].worst(), "weights": largest}

    def verdict(self) -> str:
        """Whether the chains agree, in words; capitals where they do not."""
        if self.method == "laplace":
            return "independent draws of a Gaussian approximation: exact only as far as the posterior is one"
        (rhat, *ess), (rhat_w, *_) = self.worst().values()
        wanted = ENOUGH * self.n_chains
        if not rhat <= AGREE:
            return (
                f"CHAINS DISAGREE: R-hat of function values is {rhat:.3f}, above {AGREE}: do not trust these "
                f"draws. Draw more, warm up longer, or compare the chains: they may be in different modes"
            )
        if not min(ess) >= wanted:
            return f"TOO FEW EFFECTIVE DRAWS: {min(ess):.0f}, and {wanted} are wanted: draw more"
        if not rhat_w <= AGREE:
            return (
                f"predictions can be trusted, SINGLE WEIGHTS CANNOT: R-hat of weights is {rhat_w:.3f}, as "
                f"when units are relabelled between chains"
            )
        return "the chains agree"

    def to_arviz(self) -> Any:
        """A tree of xarray data sets that ArviZ's plots and statistics take as it is.

        Returns
        -------
        tree : xarray.DataTree
            ``posterior`` has ``W1``, ``W2``, ... and ``eta``; ``sample_stats`` the log density ``lp``,
            ``acceptance_rate`` and ``diverging``, as far as the method has them.
        """
        try:
            from arviz_base import from_dict
        except ImportError as error:
            raise ImportError("to_arviz() needs ArviZ: pip install 'deepprox[posterior]'.") from error
        names = {"log_density": "lp", "acceptance": "acceptance_rate"}
        variables = {f"W{l + 1}": w for l, w in enumerate(self.W)} | {"eta": self.eta}
        units = [f"unit{l}" for l in range(1, len(self.W))] + ["output"]
        reads = ["input", *(f"read{l}" for l in range(1, len(self.W)))]
        dims = {f"W{l + 1}": [units[l], reads[l]] for l in range(len(self.W))}
        if self.draws_sigma:
            variables["sigma"] = self.sigma
        groups = {"posterior": variables}
        if self.statistics:
            groups["sample_stats"] = {names.get(k, k): v for k, v in self.statistics.items()}
        coords = {"input": ["bias", *self.names()]}
        return from_dict(groups, dims=dims | {"eta": ["point", "output"]}, coords=coords)

    def summary(self, level: float = 0.9) -> Report:
        """What was drawn and whether it can be trusted, then weights or inputs with intervals.

        Parameters
        ----------
        level : float, default=0.9
            Probability of the intervals.

        Returns
        -------
        report : Report
            Prints as aligned tables, shows as HTML in a notebook.
        """
        need_level(level)
        detail = self._weight_table(level) if len(self.W) == 1 else self._input_table(level)
        return Report((Table(self._rows(level), title=f"Posterior by {self.method}"), detail))

    def _rows(self, level: float) -> list[tuple[str, str]]:
        said = {
            name: f"R-hat {rhat:.3f} at most, effective draws at least {bulk:.0f} (bulk), {tail:.0f} (tails)"
            for name, (rhat, bulk, tail) in self.worst().items()
        }
        kept = "" if self.complete else ", INTERRUPTED: what was drawn is kept"
        rows = [
            ("verdict", self.verdict()),
            ("draws", f"{self.n_chains} chains of {self.n_draws}{kept}"),
            ("function values", f"{said['function']}, at {len(self.points)} observations"),
            ("weights", said["weights"]),
        ]
        if "acceptance" in self.statistics:
            rows.append(("acceptance", f"{self.statistics['acceptance'].mean():.3f}"))
        if "diverging" in self.statistics:
            rows.append(("divergences", f"{int(self.statistics['diverging'].sum())}"))
        if self.sigma is not None:
            rows.append(("sigma", self._said_of_sigma(level)))
        evidence = "" if self.log_evidence is None else f"{self.log_evidence:.6g}, "
        rows.append(("log evidence", evidence + self.evidence_message))
        return [*rows, ("seconds", f"{self.seconds:.2f}")]

    def _said_of_sigma(self, level: float) -> str:
        if not self.draws_sigma:
            return f"{self.sigma:.4g}, taken as known"
        low, high = np.quantile(self.sigma, [(1 - level) / 2, (1 + level) / 2])
        return f"{self.sigma.mean():.4g}, {level:.0%} between {low:.4g} and {high:.4g}"

    def names(self) -> list[str]:
        """Names of the inputs."""
        return list(self.input_names) or [f"x{j}" for j in range(self.W[0].shape[-1] - 1)]

    def _weight_table(self, level: float) -> Table:
        w, found = self.W[0], self.diagnostics()["W1"]
        flat, names = w.reshape(len(self), -1), ["bias", *self.names()]
        labels = [
            f"{name}" + (f" -> {k}" if w.shape[2] > 1 else "") for k in range(w.shape[2]) for name in names
        ]
        low, high = np.quantile(flat, [(1 - level) / 2, (1 + level) / 2], axis=0)
        strength = np.abs(flat.mean(0)) / np.where(flat.std(0) > 0, flat.std(0), np.inf)
        order = np.argsort(-strength, kind="stable")
        rows = [
            (
                labels[j],
                *(f"{x:.4g}" for x in (flat[:, j].mean(), flat[:, j].std(), low[j], high[j])),
                f"{found.rhat.ravel()[j]:.3f}",
                f"{found.ess_bulk.ravel()[j]:.0f}",
            )
            for j in order[:MOST_ROWS]
        ]
        header = ("weight", "mean", "sd", *_ends(level), "R-hat", "effective draws")
        more = f", the first {MOST_ROWS} of {len(order)}" if len(order) > MOST_ROWS else ""
        title = f"Weights for standardised inputs, by mean over sd{more}"
        return Table(rows, header, title, numeric=range(1, 7))

    def _input_table(self, level: float) -> Table:
        norms, names = self.input_norms(), self.names()
        low, high = np.quantile(norms, [(1 - level) / 2, (1 + level) / 2], axis=0)
        order = np.argsort(-norms.mean(0), kind="stable")[:MOST_ROWS]
        rows = [(names[j], *(f"{x:.4g}" for x in (norms[:, j].mean(), low[j], high[j]))) for j in order]
        more = f", the first {MOST_ROWS} of {len(names)}" if len(names) > MOST_ROWS else ""
        title = f"Inputs by the norm of the weights that read them{more}"
        return Table(rows, ("input", "mean", *_ends(level)), title, numeric=range(1, 4))

    def plot(self) -> Any:
        """Log density, function values of every chain, and inputs with intervals, in one figure.

        Returns
        -------
        figure : matplotlib Figure
            With four panels.
        """
        from deepprox.posterior.pictures import overview

        return overview(self)

    def plot_check(self, n_replicates: int = 50, random_state: int = 0) -> Any:
        """A posterior predictive check: responses that the draws would give, beside those that were seen.

        Parameters
        ----------
        n_replicates : int, default=50
            How many replicated sets of responses.
        random_state : int, default=0
            Seed of the replicates.

        Returns
        -------
        figure : matplotlib Figure
            Counts of classes, or distribution functions of a numeric response.
        """
        from deepprox.posterior.pictures import predictive_check

        for name, value in (("n_replicates", n_replicates), ("random_state", random_state)):
            if not is_whole(value, least := int(name == "n_replicates")):
                raise ValueError(f"{name} must be a whole number of at least {least}, got {shown(value)}.")
        return predictive_check(self, n_replicates, random_state)


def _ends(level: float) -> tuple[str, str]:
    return f"{(1 - level) / 2:.1%}", f"{(1 + level) / 2:.1%}"


def need_level(level: Any) -> None:
    """Complain about what is no probability."""
    if not is_number(level) or not 0 < level < 1:
        raise ValueError(f"level must be a probability between 0 and 1, got {shown(level)}.")


def _pieces(X: np.ndarray) -> list[np.ndarray]:
    return [X[begin : begin + PIECE] for begin in range(0, len(X), PIECE)]
