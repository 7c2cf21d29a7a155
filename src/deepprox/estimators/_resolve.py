"""From what a user writes to what the solver takes: the only place that knows strings.

A name becomes an object of the vocabulary; an object, the user's own class included, passes straight
through. Everything wrong is said here, in one sentence, before JAX sees it.
"""

from collections.abc import Callable, Iterator, Mapping, Set
from itertools import islice
from numbers import Integral
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from deepprox import links
from deepprox.activities import Activity
from deepprox.blocks import Block, Dense
from deepprox.checks import is_number, is_whole, shown
from deepprox.estimators._words import as_arrays, example, need_numbers, need_strength, rehearse
from deepprox.links import Link
from deepprox.losses import (
    Gamma,
    Hinge,
    Huber,
    Logistic,
    Loss,
    NegativeBinomial,
    Poisson,
    Quantile,
    Softmax,
    Squared,
    SquaredHinge,
)
from deepprox.losses.contract import Separable
from deepprox.network import Network
from deepprox.penalties import (
    L0,
    L1,
    L2,
    MCP,
    SCAD,
    Bridge,
    CappedL1,
    ElasticNet,
    GroupL2,
    HorseshoeLike,
    LogSum,
    MaxNorm,
    NonNegative,
    Nuclear,
    Penalty,
    SparseGroup,
    StudentT,
    Zero,
)
from deepprox.problem import Problem
from deepprox.spreading import Devices, Spread, same
from deepprox.struct import replace

DEFAULT_ALPHA = 1e-2  # where nothing chooses another one
ROWS = (2, 3)  # observations of a rehearsal: what fits both fits any number of them
MOST_LAYERS = 10_000  # nobody fits as many, and what claims to have more is no list of widths
BATCH, MANY = 512, 10_000  # rows of a batch, and of the data from which a fit begins with batches

LINKS: Mapping[str, Callable[[], Link]] = {
    "identity": links.Identity,
    "sigmoid": links.Sigmoid,
    "logistic": links.Sigmoid,
    "tanh": links.Tanh,
    "relu": links.ReLU,
    "leaky_relu": links.LeakyReLU,
    "softplus": links.Softplus,
    "elu": links.ELU,
    "silu": links.SiLU,
    "swish": links.SiLU,
    "gelu": links.GELU,
    "hard_sigmoid": links.HardSigmoid,
    "hard_tanh": links.HardTanh,
    "sine": links.Sine,
    "rbf": links.GaussianRBF,
    "softmax": links.Softmax,
    "log_sum_exp": links.LogSumExp,
    "lp_norm": links.LpNorm,
    "max_pool": links.MaxAbs,
}

CLASSIFICATION_LOSSES: Mapping[str, Callable[[], Loss]] = {
    "softmax": Softmax,
    "logistic": Logistic,
    "hinge": Hinge,
    "squared_hinge": SquaredHinge,
}
REGRESSION_LOSSES: Mapping[str, Callable[[], Loss]] = {
    "squared": Squared,
    "huber": Huber,
    "quantile": Quantile,
    "poisson": Poisson,
    "negative_binomial": NegativeBinomial,
    "gamma": Gamma,
}

PENALTIES: Mapping[str, Callable[[float], Penalty]] = {
    "none": lambda alpha: Zero(),
    "l1": L1,
    "lasso": L1,
    "laplace": L1,
    "l2": L2,
    "ridge": L2,
    "elasticnet": ElasticNet,
    "group_inputs": lambda alpha: GroupL2(alpha, by="input"),
    "group_units": lambda alpha: GroupL2(alpha, by="unit"),
    "sparse_group_inputs": lambda alpha: SparseGroup(alpha, by="input"),
    "sparse_group_units": lambda alpha: SparseGroup(alpha, by="unit"),
    "mcp": MCP,
    "scad": SCAD,
    "l0": L0,
    "bridge": Bridge,
    "log_sum": LogSum,
    "capped_l1": CappedL1,
    "max_norm": MaxNorm,
    "nuclear": Nuclear,
    "student_t": StudentT,
    "horseshoe": HorseshoeLike,
    "nonnegative": lambda alpha: NonNegative(),
}


def resolve_network(params: Mapping[str, Any], n_in: int, n_out: int, dtype: np.dtype) -> Network:
    """Blocks from sizes, links, penalties with their strength, activities, and which biases there are."""
    layers = (*resolve_sizes(params["hidden_layer_sizes"]), Dense(n_out))
    hidden = resolve_links(params["link"], len(layers) - 1)
    penalties = resolve_penalties(params["penalty"], params["alpha"], len(layers))
    blocks: list[Block] = []
    width = n_in
    activities = (*resolve_activities(params["activity"], len(layers) - 1), None)
    for given, link, penalty, activity in zip(layers, (*hidden, links.Identity()), penalties, activities):
        link, penalty = as_arrays(link, dtype), as_arrays(penalty, dtype)
        own = {"bias": resolve_intercept(params) or len(blocks) < len(layers) - 1}
        own |= {"penalize_bias": bool(params["penalize_bias"]), "penalty": penalty, "link": link}
        block = replace(resolve_block(given, width, bool(blocks), params), **own)
        n_units, n_columns = block.shape(width)
        weights = example(n_units, n_columns - block.first, dtype=dtype)
        rehearse(penalty, "value", penalty.value, weights, ())
        prox = lambda w, p=penalty: p.prox(w, jnp.ones((), w.dtype))  # noqa: E731
        rehearse(penalty, "prox", prox, weights, weights.shape)
        size = block.numbers(width)
        width = link.width(size)
        for n in ROWS:
            rehearse(link, "call", link, example(n, size, dtype=dtype), (n, width))
        if activity is not None:
            activity = as_arrays(activity, dtype)
            units = example(ROWS[0], size if activity.on == "z" else width, dtype=dtype)
            charge = lambda A, act=activity: act.value(A, jnp.ones(len(A), A.dtype))  # noqa: E731
            rehearse(activity, "value", charge, units, ())
        blocks.append(replace(block, activity=activity))
    return Network(tuple(blocks))


def resolve_block(given: int | Block, n_in: int, inside: bool, params: Mapping[str, Any]) -> Block:
    """A block that reads ``n_in`` numbers, of other blocks if it is ``inside``, from a width or a block."""
    if not isinstance(given, Block):
        return Dense(given)
    name = type(given).__name__
    if jax.tree.leaves(given) == [given]:
        raise ValueError(
            f"{name} is a block that programs do not know: declare it with deepprox.struct.struct."
        )
    if type(given.link) is not links.Identity or type(given.penalty) is not Zero or given.activity:
        raise ValueError(
            f"A block in hidden_layer_sizes has the link, penalty and activity of the estimator: "
            f"leave those of {name} out, and give link=, penalty= or activity= a tuple."
        )
    if given.by_unit:
        return given
    if not inside and params["standardize"]:
        raise ValueError(
            f"{name} reads an input at several places, where it has one scale: set standardize=False, "
            f"or let a dense layer come before."
        )
    at = given.columns(n_in)
    if not (isinstance(at, np.ndarray) and at.ndim == 2 and at.dtype.kind == "i" and at.size):
        raise ValueError(f"{name}.columns({n_in}) must be a table of whole numbers, places by columns.")
    if at.min() < -1 or at.max() >= n_in:
        raise ValueError(
            f"{name}.columns({n_in}) must hold numbers from -1 to {n_in - 1}, got {at.min()} to {at.max()}."
        )
    return replace(given, n_in=n_in)


def resolve_intercept(params: Mapping[str, Any]) -> bool:
    """Whether the outputs have a bias."""
    return bool(params["fit_intercept"])


def resolve_centre(params: Mapping[str, Any]) -> bool:
    """Whether the first block has a bias, which makes up for inputs of mean 0."""
    return resolve_intercept(params) or bool(resolve_sizes(params["hidden_layer_sizes"]))


def resolve_sizes(hidden_layer_sizes: Any) -> tuple[int | Block, ...]:
    """Widths of the hidden layers, or blocks; none at all is a generalised linear model."""
    if isinstance(hidden_layer_sizes, Integral | Block):
        hidden_layer_sizes = (hidden_layer_sizes,)
    # a fit reads them more than once and in order
    once = isinstance(hidden_layer_sizes, Iterator | Set | Mapping | bytes | bytearray)
    try:
        sizes = (None,) if once else tuple(islice(hidden_layer_sizes, MOST_LAYERS))
    except TypeError:
        sizes = (None,)
    whole = [is_whole(size.size if isinstance(size, Block) else size) for size in sizes]
    if len(sizes) == MOST_LAYERS or not all(whole):
        raise ValueError(
            f"hidden_layer_sizes must be whole numbers of at least 1, one per hidden layer, in a tuple or a "
            f"list, got {shown(hidden_layer_sizes)}."
        )
    return tuple(size if isinstance(size, Block) else int(size) for size in sizes)


def resolve_widths(hidden_layer_sizes: Any) -> list[int]:
    """The same where no block will do."""
    sizes = resolve_sizes(hidden_layer_sizes)
    if any(isinstance(size, Block) for size in sizes):
        raise ValueError(
            "Rows from files are fitted with widths in hidden_layer_sizes: fit blocks to arrays."
        )
    return [*sizes]  # type: ignore[list-item]


def resolve_links(link: Any, n_hidden: int) -> tuple[Link, ...]:
    """One link for each hidden layer, from one for all or one for each."""
    each = _spread(link, n_hidden, "link", "hidden layer")
    return tuple(_lookup(one, LINKS, Link, "link") for one in each)


def peek_loss(loss: Any, known: Mapping[str, Callable[[], Loss]]) -> Loss | None:
    """The loss before there are data; None where :func:`resolve_loss` will complain."""
    if isinstance(loss, str):
        return known[loss]() if loss in known else None
    return loss if isinstance(loss, Loss) else None


def resolve_activities(activity: Any, n_hidden: int) -> tuple[Activity | None, ...]:
    """One activity, or None, for each hidden layer."""
    each = _spread(activity, n_hidden, "activity", "hidden layer")
    for one in each:
        if one is not None and not isinstance(one, Activity):
            raise TypeError(
                f"activity must be None or an instance of deepprox.activities.Activity, got {shown(one)}."
            )
        if one is None:
            continue
        need_numbers(one)
        if not isinstance(one.on, str) or one.on not in ("reads", "z"):
            raise ValueError(f"on must be 'reads' or 'z', got {shown(one.on)} in {shown(one)}.")
        need_strength(one, "an activity")
    return each


def resolve_loss(
    loss: Any,
    known: Mapping[str, Callable[[], Loss]],
    join: Any,
    Y: np.ndarray,
    dtype: np.dtype,
) -> Loss:
    """A loss that takes the response ``Y``."""
    found: Loss = _lookup(loss, known, Loss, "loss")
    found = as_arrays(found, dtype)
    found.check()
    width = getattr(found, "width", 0.0)
    if join and not found.smooth and width is not None and not np.all(np.asarray(width) > 0):
        raise ValueError(
            f"loss={shown(loss)} has exact kinks, where the join phase cannot certify a solution: leave out "
            f"the width, give a positive one, or set join=False."
        )
    if found.differences and Y.shape[1] == 1:
        raise ValueError(
            f"loss={shown(loss)} compares the columns of a response, and this one has one column: give at "
            f"least two, or another loss."
        )
    for n in ROWS:
        eta = example(n, Y.shape[1], dtype=dtype)
        rehearse(found, "value", lambda eta: found.value(eta, eta), eta, (n,))
        rehearse(found, "mean", found.mean, eta, eta.shape)
        if isinstance(found, Separable):
            rehearse(found, "each", lambda eta: found.each(eta, eta), eta, eta.shape)
    strange = Y[~np.asarray(found.takes(Y))]
    if strange.size:
        raise ValueError(
            f"loss={shown(loss)} takes responses that are {found.responses}, but one of them is "
            f"{strange[0]:g}."
        )
    return found


def by_name(penalty: Any) -> bool:
    """Whether a penalty is given by its name, or some of several are."""
    if isinstance(penalty, tuple | list):
        return any(by_name(one) for one in penalty)
    return penalty is None or isinstance(penalty, str)


def resolve_penalties(penalty: Any, alpha: Any, n_blocks: int) -> tuple[Penalty, ...]:
    """One penalty for each block; ``alpha`` is the strength of those given by name, "auto" the constant."""
    alpha = DEFAULT_ALPHA if isinstance(alpha, str) and alpha == "auto" else alpha
    if not is_number(alpha) or alpha < 0:
        raise ValueError(f"alpha must be 'auto' or a finite number of at least 0, got {shown(alpha)}.")
    each = _spread(penalty, n_blocks, "penalty", "block")
    if alpha != DEFAULT_ALPHA and not any(one is None or isinstance(one, str) for one in each):
        raise ValueError(
            f"alpha={shown(alpha)} sets the strength of a penalty given by name, but "
            f"penalty={shown(penalty)} carries its own: give one or the other."
        )
    by_name = {name: lambda make=make: make(float(alpha)) for name, make in PENALTIES.items()}
    found = tuple(_lookup("none" if one is None else one, by_name, Penalty, "penalty") for one in each)
    for one in found:
        need_strength(one, "a penalty")
        one.check()
    return found


def resolve_splits(splits: Any, n_hidden: int) -> tuple[int, ...]:
    """The hidden layers, numbered from 1, whose pre-activations are split in a split phase."""
    every = tuple(range(1, n_hidden + 1))
    if isinstance(splits, str) and splits in ("all", "none"):
        return every
    chosen = splits if isinstance(splits, tuple | list) else (None,)
    known = all(isinstance(number, Integral) and number in every for number in chosen)
    if not known or len(set(chosen)) < len(chosen):
        raise ValueError(
            f"splits must be 'all', 'none', or a tuple of different hidden layers to split at, numbered from "
            f"1 and at most {n_hidden}; got {shown(splits)}."
        )
    return tuple(sorted(int(number) for number in chosen))


def resolve_batch(params: Mapping[str, Any], problem: Problem, n: int) -> int:
    """How many rows a step of the batch phase draws; 0 where there is no such phase."""
    size, network, allsum = params["batch_size"], problem.network, problem.allsum
    if size is None:
        return 0
    apart = not allsum.in_memory or allsum.chained
    if size == "auto":
        own = params["splits"] != "all" or not params["join"] or not isinstance(params["rho"], str)
        many = n >= MANY and len(network.blocks) > 1 and network.smooth
        return BATCH if many and not own and not apart else 0
    if apart:
        raise ValueError("batch_size needs all rows in memory and sums inside of programs: leave it 'auto'.")
    return int(size)


def resolve_rho(rho: Any, n_blocks: int, n: int) -> tuple[np.ndarray, ...] | None:
    """Constraint weights: None to grow by themselves, or one number or column of ``n`` for each block."""
    if isinstance(rho, str) and rho == "auto":
        return None
    sentence = (
        f"rho must be 'auto', a positive number, or one entry per block ({n_blocks}), each a positive "
        f"number or an array of {n} positive numbers, one per observation; got {shown(rho)}."
    )
    if is_number(rho):
        rho = (rho,) * n_blocks
    several = isinstance(rho, list | tuple) or (isinstance(rho, np.ndarray) and rho.ndim > 0)
    if not several or len(rho) != n_blocks:
        raise ValueError(sentence)
    try:
        each = tuple(np.asarray(one, float) for one in rho)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(sentence) from None
    if not all(one.shape in ((), (n,)) and np.all(np.isfinite(one) & (one > 0)) for one in each):
        raise ValueError(sentence)
    return tuple(one if one.ndim == 0 else one[:, None] for one in each)


def resolve_devices(devices: Any) -> Spread:
    """Where observations are: all here, or spread over devices."""
    if devices is None:
        return same
    if isinstance(devices, Spread):
        return devices
    known = jax.devices()
    if isinstance(devices, str) and devices == "all":
        return Devices(known)
    if is_whole(devices) and devices <= len(known):
        return Devices(known[: int(devices)])
    if isinstance(devices, Mesh):
        return Devices([*devices.devices.ravel()])
    if isinstance(devices, list | tuple) and devices and all(isinstance(one, jax.Device) for one in devices):
        return Devices(devices)
    raise ValueError(
        f"devices must be None, 'all', a number of devices from 1 to {len(known)}, a jax.sharding.Mesh or a "
        f"list of devices, got {shown(devices)}."
    )


def resolve_dtype(dtype: Any) -> np.dtype:
    """``float32`` or ``float64``."""
    try:
        found = np.dtype("O" if dtype is None else dtype)
    except (TypeError, ValueError):
        found = np.dtype("O")
    if found not in (np.dtype("float32"), np.dtype("float64")):
        raise ValueError(f"dtype must be 'float64' or 'float32', got {shown(dtype)}.")
    return found


def _spread(value: Any, count: int, name: str, place: str) -> tuple[Any, ...]:
    """``value`` as one for each place."""
    if not isinstance(value, tuple | list):
        return (value,) * count
    if len(value) != count:
        raise ValueError(
            f"{name} has {len(value)} entries, but there {'is' if count == 1 else 'are'} {count} "
            f"{place}{'' if count == 1 else 's'}: give one for all or one for each."
        )
    return tuple(value)


def _lookup(value: Any, known: Mapping[str, Callable[[], Any]], contract: type, noun: str) -> Any:
    """An object of the vocabulary from its name or from itself."""
    names = ", ".join(repr(name) for name in known)
    if isinstance(value, str):
        if value not in known:
            raise ValueError(f"Unknown {noun} {shown(value)}: known names are {names}.")
        return known[value]()
    if isinstance(value, contract):
        need_numbers(value)
        return value
    hint = f"; write {value.__name__}()" if isinstance(value, type) and issubclass(value, contract) else ""
    home = ".".join(contract.__module__.split(".")[:2])  # where users import it from
    raise TypeError(
        f"{noun} must be a name ({names}) or an instance of {home}.{contract.__name__}, got "
        f"{shown(value)}{hint}."
    )
