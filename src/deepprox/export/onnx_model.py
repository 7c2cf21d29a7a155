"""A fitted network as an ONNX model: live inputs and units only, on the scale of the raw inputs.

    X -> Gather live inputs -> Sub centre -> (MatMul, Add, link) for every block -> mean of the loss

The spread of the inputs is folded into the first weights. So is their mean, up to a centre that the
graph's precision can hold: a sum of large terms that cancel would lose its digits in single precision.
"""

import json
import math
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

from deepprox import links, losses
from deepprox.blocks import Block
from deepprox.checks import need_name
from deepprox.losses.positive import largest
from deepprox.pruned import Pruned, prune

OPSET, IR_VERSION = 17, 8


def to_onnx(model: Any, dtype: str = "float32") -> Any:
    """The ONNX model of a fitted estimator; see :meth:`deepprox.DeepClassifier.to_onnx`."""
    try:
        from onnx import checker, helper
    except ImportError:
        raise ImportError("ONNX export needs the onnx package: pip install 'deepprox[onnx]'.") from None
    need_name("dtype", dtype, ("float32", "float64"))
    fitted = model.fitted_
    graph = Graph(np.dtype(dtype), largest(fitted.W[0]))
    eta = forward(graph, prune(fitted.network, fitted.W), fitted.scale)
    outputs = _classes(graph, model, eta) if "classes_" in vars(model) else _numbers(graph, model, eta)
    number = helper.np_dtype_to_tensor_dtype(graph.dtype)
    inputs = [helper.make_tensor_value_info("X", number, ["n", model.n_features_in_])]
    body = helper.make_graph(graph.nodes, type(model).__name__, inputs, outputs, graph.constants)
    made = helper.make_model(
        body,
        producer_name="deepprox",
        producer_version=version("deepprox"),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    if "feature_names_in_" in vars(model):
        helper.set_model_props(made, {"feature_names": json.dumps([*model.feature_names_in_])})
    checker.check_model(made, full_check=True)
    return made


class Graph:
    """Nodes and constants of an ONNX graph as it grows."""

    def __init__(self, dtype: np.dtype, largest: float) -> None:
        # where the model's own exp gives up, or that of the graph, whose last digits are rounded, would
        self.dtype, self.largest = dtype, min(largest, math.log(float(np.finfo(dtype).max) / 2))
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, op: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Append a node and return the name of its output."""
        from onnx import helper

        output = output or f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [*inputs], [output], **attributes))
        return output

    def cast(self, name: str, dtype: Any) -> str:
        """The same numbers in another type."""
        from onnx import helper

        return self.add("Cast", name, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def constant(self, value: Any, dtype: Any = None) -> str:
        """A constant, in the precision of the graph unless told otherwise."""
        from onnx import numpy_helper

        name = f"c{len(self.constants)}"
        array = np.asarray(value, self.dtype if dtype is None else dtype)
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def output(self, name: str, dtype: Any, *shape: Any) -> Any:
        """The description of an output."""
        from onnx import TensorProto, helper

        text = np.dtype(dtype).kind in "OU"
        kind = TensorProto.STRING if text else helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return helper.make_tensor_value_info(name, kind, ["n", *shape])


def forward(graph: Graph, pruned: Pruned, scale: Any) -> str:
    """``eta`` of the raw inputs."""
    if not pruned.network.is_dense_chain:
        raise ValueError("ONNX export knows dense blocks that read the block before, and others are here.")
    inputs, first = pruned.places[0], pruned.W[0]
    if not len(inputs):  # every row gets the last bias: a weight of 0 on some input gives it its rows
        inputs, first = np.arange(1), np.column_stack([first, np.zeros(len(first))])
    mean, spread, constant = (part[inputs] for part in scale)
    slopes = np.where(constant, 0.0, Block.slopes(first) / spread)
    centre = mean.astype(graph.dtype)
    bias = Block.biases(first) + slopes @ (centre.astype(float) - mean)
    reads = graph.add("Gather", "X", graph.constant(inputs, np.int64), axis=1)
    if centre.any():
        reads = graph.add("Sub", reads, graph.constant(centre))
    blocks = [(slopes, bias), *((Block.slopes(w), Block.biases(w)) for w in pruned.W[1:])]
    for l, (w, b) in enumerate(blocks):
        product = graph.add("MatMul", reads, graph.constant(w.T))
        reads = graph.add("Add", product, graph.constant(b))
        if l < len(blocks) - 1:
            reads = _link(graph, pruned.network.blocks[l].link, reads, len(b))
    return reads


def _classes(graph: Graph, model: Any, eta: str) -> list[Any]:
    """The label, and its probabilities or, where the loss has none, the decision."""
    labels, one = np.array(model.classes_.tolist()), model.n_outputs_ == 1
    if labels.dtype.kind not in "bifU":
        raise ValueError(f"ONNX has no type for labels of {labels.dtype}: fit with texts or whole numbers.")
    labels = labels.astype(object) if labels.dtype.kind == "U" else labels
    if one:
        positive = graph.add("Greater", eta, graph.constant(0.0))
        best = graph.add("Squeeze", graph.cast(positive, np.int64), graph.constant([1], np.int64))
    else:
        best = graph.add("ArgMax", eta, axis=1, keepdims=0)
    graph.add("Gather", graph.constant(labels, labels.dtype), best, output="label")
    if not model.fitted_.loss.likelihood:
        graph.add("Identity", eta, output="decision")
        return [graph.output("label", labels.dtype), graph.output("decision", graph.dtype, model.n_outputs_)]
    p = _mean(graph, model.fitted_.loss, eta)
    p = graph.add("Concat", graph.add("Sub", graph.constant(1.0), p), p, axis=1) if one else p
    graph.add("Identity", p, output="probabilities")
    return [graph.output("label", labels.dtype), graph.output("probabilities", graph.dtype, len(labels))]


def _numbers(graph: Graph, model: Any, eta: str) -> list[Any]:
    """The mean of the loss, in the shape of the response of the fit."""
    mean = _mean(graph, model.fitted_.loss, eta)
    if model.fitted_.one_column:
        graph.add("Squeeze", mean, graph.constant([1], np.int64), output="prediction")
        return [graph.output("prediction", graph.dtype)]
    graph.add("Identity", mean, output="prediction")
    return [graph.output("prediction", graph.dtype, model.n_outputs_)]


def _mean(graph: Graph, loss: Any, eta: str) -> str:
    return _known(MEANS, loss, "loss")(graph, loss, eta)


def _in_units(graph: Graph, loss: Any, eta: str) -> str:
    """``centre + spread eta``."""
    scaled = eta if loss.spread is None else graph.add("Mul", eta, graph.constant(loss.spread))
    return scaled if loss.centre is None else graph.add("Add", scaled, graph.constant(loss.centre))


def _exponential(graph: Graph, loss: Any, eta: str) -> str:
    return graph.add("Exp", graph.add("Min", eta, graph.constant(graph.largest)))


MEANS: dict[type, Callable[[Graph, Any, str], str]] = {
    losses.Squared: _in_units,
    losses.Huber: _in_units,
    losses.Quantile: _in_units,
    losses.Poisson: _exponential,
    losses.NegativeBinomial: _exponential,
    losses.Gamma: _exponential,
    losses.Softmax: lambda graph, loss, eta: graph.add("Softmax", eta, axis=1),
    losses.Logistic: lambda graph, loss, eta: graph.add("Sigmoid", eta),
}


def _link(graph: Graph, link: Any, z: str, size: int) -> str:
    write = _known(LINKS, link, "link")
    if link.elementwise:
        return write(graph, link, z)
    group = link.group or size
    grouped = graph.add("Reshape", z, graph.constant([0, -1, group], np.int64))
    flat = graph.constant([0, size // group * (link.width(group))], np.int64)
    return graph.add("Reshape", write(graph, link, grouped), flat)


def _leaky(graph: Graph, link: Any, z: str) -> str:
    zero = graph.constant(0.0)
    below = graph.add("Mul", graph.add("Min", z, zero), graph.constant(link.slope))
    return graph.add("Add", graph.add("Max", z, zero), below)


def _elu(graph: Graph, link: Any, z: str) -> str:
    zero = graph.constant(0.0)
    below = graph.add("Sub", graph.add("Exp", graph.add("Min", z, zero)), graph.constant(1.0))
    return graph.add("Add", graph.add("Max", z, zero), below)


def _softplus(graph: Graph, link: Any, z: str) -> str:
    fall = graph.add("Exp", graph.add("Neg", graph.add("Abs", z)))
    bend = graph.add("Log", graph.add("Add", fall, graph.constant(1.0)))
    return graph.add("Add", graph.add("Max", z, graph.constant(0.0)), bend)


def _gelu(graph: Graph, link: Any, z: str) -> str:
    scaled = graph.add("Mul", z, graph.constant(math.sqrt(0.5)))
    if graph.dtype == np.float64:  # onnxruntime has this function in single precision only
        error = graph.cast(graph.add("Erf", graph.cast(scaled, np.float32)), np.float64)
    else:
        error = graph.add("Erf", scaled)
    share = graph.add("Mul", graph.add("Add", error, graph.constant(1.0)), graph.constant(0.5))
    return graph.add("Mul", z, share)


def _bump(graph: Graph, link: Any, z: str) -> str:
    return graph.add("Exp", graph.add("Mul", graph.add("Mul", z, z), graph.constant(-0.5)))


def _clip(graph: Graph, z: str, low: float, high: float) -> str:
    return graph.add("Min", graph.add("Max", z, graph.constant(low)), graph.constant(high))


def _hard_sigmoid(graph: Graph, link: Any, z: str) -> str:
    line = graph.add("Add", graph.add("Mul", z, graph.constant(1 / 6)), graph.constant(0.5))
    return _clip(graph, line, 0.0, 1.0)


def _lp_norm(graph: Graph, link: Any, z: str) -> str:
    size = graph.add("Abs", z)
    tiny = graph.constant(np.finfo(graph.dtype).tiny)
    # relative to the largest: powers of large numbers overflow
    largest = graph.add("Max", graph.add("ReduceMax", size, axes=[2], keepdims=1), tiny)
    powers = graph.add("Pow", graph.add("Div", size, largest), graph.constant(link.p))
    total = graph.add("ReduceSum", powers, graph.constant([2], np.int64), keepdims=1)
    return graph.add("Mul", graph.add("Pow", total, graph.constant(1 / link.p)), largest)


def _max_abs(graph: Graph, link: Any, z: str) -> str:
    return graph.add("ReduceMax", graph.add("Abs", z), axes=[2], keepdims=1)


LINKS: dict[type, Callable[[Graph, Any, str], str]] = {
    links.Identity: lambda graph, link, z: z,
    links.Sigmoid: lambda graph, link, z: graph.add("Sigmoid", z),
    links.Tanh: lambda graph, link, z: graph.add("Tanh", z),
    links.ReLU: lambda graph, link, z: graph.add("Relu", z),
    links.LeakyReLU: _leaky,
    links.Softplus: _softplus,
    links.ELU: _elu,
    links.SiLU: lambda graph, link, z: graph.add("Mul", z, graph.add("Sigmoid", z)),
    links.GELU: _gelu,
    links.Sine: lambda graph, link, z: graph.add("Sin", z),
    links.GaussianRBF: _bump,
    links.HardTanh: lambda graph, link, z: _clip(graph, z, -1.0, 1.0),
    links.HardSigmoid: _hard_sigmoid,
    links.Softmax: lambda graph, link, z: graph.add("Softmax", z, axis=2),
    links.LogSumExp: lambda graph, link, z: graph.add("ReduceLogSumExp", z, axes=[2], keepdims=1),
    links.LpNorm: _lp_norm,
    links.MaxAbs: _max_abs,
}


def _known(table: dict[type, Any], word: Any, noun: str) -> Any:
    if type(word) not in table:
        raise ValueError(
            f"The {noun} {word!r} has no ONNX form here: export knows the {noun}s of deepprox, so fit with "
            f"one of them."
        )
    return table[type(word)]
