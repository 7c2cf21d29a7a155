"""Write the pages on links, losses and penalties, and draw their pictures, from the code itself.

Run with ``.venv/bin/python docs/vocabulary.py``. Formulas are the first lines of the docstrings, curves are
what the objects compute, so neither can drift; a test holds the pages to the code.
"""

import inspect
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from deepprox import links, losses, penalties
from deepprox.struct import replace

HERE = Path(__file__).parent
PICTURES = HERE / "images" / "vocabulary"
BLUE, GREEN, RED, GREY = "#1F4E9C", "#1E7F5C", "#C2502E", "#B5BBC4"

LINKS = {
    "Identity": (
        links.Identity(),
        '"identity"',
        "No bend at all: a narrow linear layer is reduced-rank regression.",
    ),
    "Sigmoid": (
        links.Sigmoid(),
        '"sigmoid", "logistic"',
        "The paper's own choice. Bounded, smooth, never negative; slow to train when deep.",
    ),
    "Tanh": (
        links.Tanh(),
        '"tanh"',
        "The first to try for a smooth response: bounded, odd, well scaled at the start.",
    ),
    "ReLU": (
        links.ReLU(),
        '"relu"',
        "The default. Piecewise linear networks with units that are exactly off.",
    ),
    "LeakyReLU": (
        links.LeakyReLU(0.1),
        '"leaky_relu"',
        "A ReLU whose units never go silent: fewer dead units, one slope more to choose.",
    ),
    "Softplus": (
        links.Softplus(),
        '"softplus"',
        "A smooth ReLU, where derivatives are wanted everywhere (degrees of freedom, posteriors).",
    ),
    "ELU": (
        links.ELU(),
        '"elu"',
        "Between tanh and ReLU: linear to the right, bounded to the left, with a continuous derivative.",
    ),
    "SiLU": (links.SiLU(), '"silu", "swish"', "A smooth ReLU with a dip: common in deeper networks."),
    "GELU": (
        links.GELU(),
        '"gelu"',
        "As SiLU, with the normal distribution function; the choice of transformers.",
    ),
    "HardSigmoid": (
        links.HardSigmoid(),
        '"hard_sigmoid"',
        "A sigmoid of three straight pieces: closed Z-step, exact zeros and ones.",
    ),
    "HardTanh": (
        links.HardTanh(),
        '"hard_tanh"',
        "A tanh of three straight pieces: closed Z-step, saturation that is exact.",
    ),
    "Sine": (
        links.Sine(),
        '"sine"',
        "Periodic effects; many local minima, so give it several starts (`n_init`).",
    ),
    "GaussianRBF": (
        links.GaussianRBF(),
        '"rbf"',
        "Local bumps along a direction: a response that is large only near a surface.",
    ),
    "Softmax": (
        links.Softmax(),
        '"softmax"',
        "Units that compete: mixtures of experts, soft trees. Of all units, or of groups.",
    ),
    "LogSumExp": (
        links.LogSumExp(),
        '"log_sum_exp"',
        "A smooth maximum of a group of units: convex piecewise surfaces, softened.",
    ),
    "LpNorm": (
        links.LpNorm(),
        '"lp_norm"',
        "Energy of a group of units, whatever their direction: p = 2 for invariance to rotation.",
    ),
    "MaxAbs": (
        links.MaxAbs(),
        '"max_pool"',
        "The strongest of a group of units, of either sign. Narrows the layer by the size of the group.",
    ),
}

LOSSES = {
    "Squared": (losses.Squared(), '"squared"', "A response on the whole line with even noise.", 0.5),
    "Softmax": (losses.Softmax(), '"softmax"', "Any number of classes; the classifier's default.", None),
    "Logistic": (
        losses.Logistic(),
        '"logistic"',
        "Two classes with one output instead of two: half the weights in the last block.",
        1.0,
    ),
    "Hinge": (
        losses.Hinge(),
        '"hinge"',
        "A support vector machine on learned features: margins, no probabilities.",
        1.0,
    ),
    "SquaredHinge": (
        losses.SquaredHinge(),
        '"squared_hinge"',
        "The smooth support vector machine: easier to certify than the hinge.",
        1.0,
    ),
    "Huber": (losses.Huber(), '"huber"', "A response with outliers: quadratic near, linear far.", 0.5),
    "Quantile": (
        losses.Quantile(),
        '"quantile"',
        "The median or another quantile of the response: prediction intervals, costs that are not even.",
        0.5,
    ),
    "Poisson": (losses.Poisson(), '"poisson"', "Counts whose variance is their mean.", 2.0),
    "NegativeBinomial": (
        losses.NegativeBinomial(),
        '"negative_binomial"',
        "Counts with more variance than Poisson's.",
        2.0,
    ),
    "Gamma": (
        losses.Gamma(),
        '"gamma"',
        "Positive amounts whose error grows with their size: costs, durations.",
        2.0,
    ),
}

PENALTIES = {
    "Zero": (penalties.Zero(), '"none"', "No shrinkage: the loss alone, with as many minima as it has."),
    "L1": (penalties.L1(1.0), '"l1", "lasso", "laplace"', "The default: exact zeros, and a problem that stays well behaved. Takes an array of strengths, one for each weight: `L1(alpha * adaptive(coef))` is the adaptive lasso."),
    "L2": (penalties.L2(1.0), '"l2", "ridge"', "Prediction without selection: all weights small, none zero."),
    "ElasticNet": (penalties.ElasticNet(1.0), '"elasticnet"', "Inputs in correlated groups: keeps them together where the lasso picks one."),
    "L0": (penalties.L0(1.0), '"l0"', "The count itself: unshrunk weights, many local minima; start from a lasso solution."),
    "MCP": (penalties.MCP(1.0), '"mcp"', "Zeros as the lasso's, large weights unshrunk. The last block should keep a penalty that grows, or weights may run off."),
    "SCAD": (penalties.SCAD(1.0), '"scad"', "As MCP, with a gentler turn: unbiased large weights in the classical sense."),
    "CappedL1": (penalties.CappedL1(1.0), '"capped_l1"', "The lasso with a ceiling: every weight above it costs the same."),
    "Bridge": (penalties.Bridge(1.0), '"bridge"', "Sparser than the lasso at the same fit; steeper towards zero the smaller q."),
    "LogSum": (penalties.LogSum(1.0), '"log_sum"', "Reweighted l1 in one penalty: heavy tails (a generalised double Pareto prior)."),
    "HorseshoeLike": (penalties.HorseshoeLike(1.0), '"horseshoe"', "The strongest contrast: noise to zero, signals left alone. Heavy-tailed prior with a spike."),
    "StudentT": (penalties.StudentT(1.0), '"student_t"', "Shrinks small weights as ridge does and leaves large ones: robust, not sparse."),
    "GroupL2": (penalties.GroupL2(1.0), '"group_inputs", "group_units"', "Whole inputs, whole units or given groups of columns leave together: selection of variables or of width."),
    "SparseGroup": (penalties.SparseGroup(1.0), '"sparse_group_inputs", "sparse_group_units"', "Whole groups leave, and single weights within those that stay."),
    "MaxNorm": (penalties.MaxNorm(1.0), '"max_norm"', "Bounds the largest weight of a unit: many weights at the same size, which compress well."),
    "Nuclear": (penalties.Nuclear(1.0), '"nuclear"', "A layer of low rank: fewer directions, not fewer weights."),
    "NonNegative": (penalties.NonNegative(), '"nonnegative"', "Weights that only add: parts, monotone effects."),
    "Box": (penalties.Box(-1.0, 1.0), "", "Weights within given bounds."),
    "Mask": (penalties.Mask(np.array([[True]])), "", "A zero pattern that is known: an architecture by hand, or a refit on a chosen support. The weights that are free may have a penalty of their own: `Mask(mask, L1(0.01))`. With `penalize_bias=True` its first column is for biases; outputs without one are `fit_intercept=False`."),
}  # fmt: skip


PAIRS = {"GroupL2", "SparseGroup", "MaxNorm", "Nuclear"}  # what they do shows beside a second weight


def formula(cls: type) -> str:
    """The first line of a docstring: the mathematics, and what it is."""
    return (inspect.getdoc(cls) or "").splitlines()[0]


def signature(word: Any) -> str:
    """How it is made, with its defaults."""
    parameters = [p for p in inspect.signature(type(word)).parameters.values()]
    return f"{type(word).__name__}({', '.join(str(p).split(':')[0] + default(p) for p in parameters)})"


def default(parameter: inspect.Parameter) -> str:
    """Its default as it is written."""
    return "" if parameter.default is inspect.Parameter.empty else f"={parameter.default!r}"


def derivative(f: Any, t: np.ndarray) -> np.ndarray:
    """``df / dt`` of every entry."""
    return np.asarray(jax.vmap(jax.grad(f))(t))


def panels(name: str, curves: list[tuple[str, str, list]]) -> None:
    """One picture: a row of small panels, each with a title, a label and its curves."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(curves), figsize=(2.9 * len(curves), 2.1), layout="constrained")
    for ax, (title, label, lines) in zip(np.atleast_1d(axes), curves):
        for (x, y, legend), colour in zip(lines, (BLUE, GREEN, RED)):
            ax.plot(x, y, color=colour, lw=1.8, label=legend)
        ax.axhline(0, color=GREY, lw=0.8, zorder=0)
        ax.axvline(0, color=GREY, lw=0.8, zorder=0)
        ax.set_title(title, fontsize=9)
        ax.set_xlabel(label, fontsize=8)
        ax.tick_params(labelsize=7, length=2, color=GREY)
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[["left", "bottom"]].set_color(GREY)
        if any(legend for *_, legend in lines):
            ax.legend(frameon=False, fontsize=7)
    PICTURES.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURES / f"{name}.png", dpi=85)
    plt.close(figure)


def draw_link(name: str, link: links.Link) -> None:
    """Value, derivative, and the pull of the next block on a pre-activation at rest."""
    z = np.linspace(-4, 4, 801)
    if link.elementwise:
        q = np.linspace(-2, 3, 801)
        pulled = [
            (q, np.asarray(link.pull(0 * q + 0.5, q, np.full_like(q, k), 0 * q + 0.5, 200)), f"kappa = {k:g}")
            for k in (1.0, 10.0)
        ]
        curves = [
            ("link(z)", "z", [(z, np.asarray(link(z)), "")]),
            ("derivative", "z", [(z, derivative(link, z), "")]),
            ("pull of q from c = 0.5", "q", pulled),
        ]
    else:
        lines = []
        for other in (0.0, 2.0):
            of_first = lambda t, other=other: link(jnp.stack([t, jnp.full_like(t, other)])[None])[0, 0]  # noqa: E731
            lines.append((of_first, f"second unit at {other:g}"))
        curves = [
            ("link(z), a group of two", "first unit", [(z, np.asarray(jax.vmap(f)(z)), text) for f, text in lines]),
            ("derivative", "first unit", [(z, derivative(f, z), text) for f, text in lines]),
        ]  # fmt: skip
    panels(f"link_{name}", curves)


def draw_loss(name: str, loss: losses.Loss, y: float | None) -> None:
    """Value, derivative and prox for one response."""
    eta = np.linspace(-4, 4, 801)
    if y is None:  # three classes, the first observed, the first eta varied

        def row(t: Any) -> Any:
            return jnp.stack([t, jnp.zeros_like(t), jnp.zeros_like(t)])[None]

        y_row, title = jnp.array([[1.0, 0.0, 0.0]]), "first of three classes observed"
    else:

        def row(t: Any) -> Any:
            return t[None, None]

        y_row, title = jnp.full((1, 1), y), f"y = {y:g}"
    value = lambda t: loss.value(row(t), y_row)[0]  # noqa: E731
    prox = [
        (eta, np.asarray(jax.vmap(lambda t, s=s: loss.prox(row(t), y_row, jnp.full((1, 1), s), row(t), 50)[0, 0])(eta)), f"step {s:g}")
        for s in (0.5, 5.0)
    ]  # fmt: skip
    panels(f"loss_{name}", [
        (f"loss, {title}", "eta", [(eta, np.asarray(jax.vmap(value)(eta)), "")]),
        ("derivative", "eta", [(eta, derivative(value, eta), "")]),
        ("prox", "v", prox),
    ])  # fmt: skip


def draw_penalty(name: str, penalty: penalties.Penalty) -> None:
    """Value, derivative and prox of one weight; for penalties of many weights, beside a second one."""
    w = np.linspace(-4, 4, 801)
    if name in PAIRS:
        penalty = replace(penalty, by="unit") if "by" in penalty.__dict__ else penalty
        beside = [
            (lambda t, o=other: jnp.stack([t, jnp.full_like(t, o)])[None], f"beside {other:g}")
            for other in (0.0, 2.0)
        ]
        proxes = [(1.5, row, text) for row, text in beside]
    else:
        beside = [(lambda t: t[None, None], "")]
        proxes = [(step, beside[0][0], f"step {step:g}") for step in (0.5, 1.5)]
    values, slopes = [], []
    for row, text in beside:
        value = lambda t, row=row: penalty.value(row(t))  # noqa: E731
        height = np.asarray(jax.vmap(value)(w))
        allowed = np.isfinite(height)
        slope = np.where(allowed, derivative(value, np.where(allowed, w, 0.0)), np.nan)
        values.append((w, np.where(allowed, height, np.nan), text))
        slopes.append((w, np.where(np.abs(slope) < 20, slope, np.nan), text))
    of_first = lambda row, s: np.asarray(jax.vmap(lambda t: penalty.prox(row(t), s)[0, 0])(w))  # noqa: E731
    panels(f"penalty_{name}", [
        ("penalty", "w", values),
        ("derivative", "w", slopes),
        ("prox, step 1.5" if name in PAIRS else "prox", "v", [(w, of_first(row, s), text) for s, row, text in proxes]),
    ])  # fmt: skip


PAGES = {
    "links": (
        "Links",
        "The activation function of a hidden layer. `link=` takes a name, an object, or one for each hidden layer. The "
        "pictures show the function, its derivative, and the Z-step's scalar problem: where a pre-activation "
        "at rest at 0.5 goes when the next block wants to read `q`.",
        LINKS,
        "link",
    ),
    "losses": (
        "Losses",
        "Negative log-likelihoods of the response given the last pre-activation `eta`. `loss=` takes a name or "
        "an object. The pictures show the loss of one observation, its derivative, and its prox.",
        LOSSES,
        "loss",
    ),
    "penalties": (
        "Penalties",
        "What keeps weights small or zero. `penalty=` takes a name (with `alpha=` as its strength), an object, "
        "or one for each block. The pictures show the penalty of one weight at strength 1, its derivative, and "
        "its prox, which is the global minimiser for every step. Penalties of groups are shown beside a second "
        "weight of the same unit.",
        PENALTIES,
        "penalty",
    ),
}


def page(name: str) -> str:
    """The text of one page."""
    title, opening, table, kind = PAGES[name]
    lines = [f"# {title}", "", opening, ""]
    for word, (instance, by_name, when, *_) in table.items():
        shown = f"By name: `{by_name}`. " if by_name else ""
        lines += [
            f"## {word}", "", formula(type(instance)).replace("``", "`"), "",
            f"![{word}](images/vocabulary/{kind}_{word}.png)", "",
            f"{shown}`deepprox.{name}.{signature(instance)}`", "", f"*When:* {when}", "",
        ]  # fmt: skip
    lines += ["## Write your own", "", f"See [Write your own](write-your-own.md): one class, ten lines, and `{kind}=` takes it.", ""]  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    """All pages and pictures."""
    jax.config.update("jax_enable_x64", True)
    for name in PAGES:
        (HERE / f"{name}.md").write_text(page(name))
    for word, (link, *_) in LINKS.items():
        draw_link(word, link)
    for word, (loss, _, _, y) in LOSSES.items():
        draw_loss(word, loss, y)
    for word, (penalty, *_) in PENALTIES.items():
        draw_penalty(word, penalty)


if __name__ == "__main__":
    main()
