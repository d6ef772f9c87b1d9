"""A model as an ONNX graph of standard operators: a matrix product, an exponential, and another matrix product."""

import json
from typing import Any

import numpy as np

from streamsvm._version import __version__
from streamsvm.export.description import ONE_VS_ONE, THRESHOLD, Description, describe

OPSET, IR_VERSION = 17, 8  # of 2022: any ONNX Runtime since 1.13 reads them


def to_onnx(model: Any, double: bool = False) -> bytes:
    """A model as the bytes of an ONNX file.

    The graph takes ``x``, a tensor (rows, features), and gives ``label``, ``values`` and ``probabilities``.  The model's
    metadata hold the names of the features in their order, and the labels, as JSON.  There are no probabilities for a
    `OneVsOne`: they need a loop.

    Parameters
    ----------
    model
        The model; see `describe`, which also says what is raised.
    double
        Whether the graph computes in double precision; default: in single precision.

    Raises
    ------
    ImportError
        If the package ``onnx`` is missing: ``pip install 'streamsvm[onnx]'``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from streamsvm import LASVM
    >>> model = LASVM(gamma=0.5)
    >>> model.learn_many([{"a": 0.0}, {"a": 1.0}], [False, True])
    >>> Path("model.onnx").write_bytes(to_onnx(model))  # doctest: +SKIP
    """
    try:
        import onnx
    except ImportError as error:
        raise ImportError("to write ONNX, install the package onnx: pip install 'streamsvm[onnx]'") from error

    found = describe(model)
    graph = _Graph(np.dtype(np.float64 if double else np.float32))
    outputs = _decided(graph, found, _margins(graph, found))
    kind = onnx.helper.np_dtype_to_tensor_dtype(graph.dtype)
    shapes = {"label": (_label_type(found.labels), ["n"])} | dict.fromkeys(("values", "probabilities"), (kind, ["n", None]))
    inputs = [onnx.helper.make_tensor_value_info("x", kind, ["n", len(found.features)])]
    given = [onnx.helper.make_tensor_value_info(name, *shapes[name]) for name in outputs]
    nodes = [onnx.helper.make_node(*node, name=node[2][0], **options) for node, options in graph.nodes]
    constants = [onnx.numpy_helper.from_array(array, name) for name, array in graph.constants.items()]
    made = onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "streamsvm", inputs, given, constants),
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="streamsvm",
        producer_version=__version__,
    )
    onnx.helper.set_model_props(made, {"features": json.dumps(found.features), "labels": json.dumps(found.labels)})
    onnx.checker.check_model(made, full_check=True)
    data: bytes = made.SerializeToString()
    return data


class _Graph:
    """Nodes and constants of a graph that grows; a number or an array in the place of a name becomes a constant."""

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = dtype
        self.nodes: list[tuple[tuple[str, list[str], list[str]], dict[str, Any]]] = []
        self.constants: dict[str, np.ndarray] = {}

    def add(self, operator: str, *inputs: Any, to: str | None = None, **options: Any) -> str:
        """Add a node; the name of what it gives."""
        out = to or f"{operator.lower()}_{len(self.nodes)}"
        names = [given if isinstance(given, str) else self.constant(given) for given in inputs]
        self.nodes.append(((operator, names, [out]), options))
        return out

    def constant(self, values: Any) -> str:
        name, array = f"constant_{len(self.constants)}", np.asarray(values)
        self.constants[name] = array.astype(self.dtype) if array.dtype == np.float64 else array
        return name


def _margins(graph: _Graph, found: Description) -> str:
    """f of each machine, (n, K)."""
    z = graph.add("Mul", graph.add("Sub", "x", found.shift), found.factor)
    if np.isfinite(found.limit):
        z = graph.add("Clip", z, -found.limit, found.limit)
    members = found.members.toarray()
    if found.kernel != "rbf":
        k = _of_products(graph, found, graph.add("MatMul", z, members.T))
    else:
        # gamma |x - z|^2 = gamma |x|^2 + (gamma |z|^2 - 2 gamma <x, z>): one product has the second part.
        squares = graph.add("ReduceSum", graph.add("Mul", z, z), np.array([1]), keepdims=1)
        own = graph.add("Gemm", z, -2.0 * found.gamma * members.T, found.gamma * np.square(members).sum(axis=1))
        distance = graph.add("Add", own, graph.add("Mul", squares, found.gamma))
        k = graph.add("Exp", graph.add("Neg", graph.add("Relu", distance)))
    return graph.add("Gemm", k, found.coefficients.T, found.bias, to="margins")


def _of_products(graph: _Graph, found: Description, products: str) -> str:
    if found.kernel == "linear":
        return products
    base = graph.add("Add", graph.add("Mul", products, found.gamma), found.coef0)
    return graph.add("Pow", base, float(found.degree)) if found.kernel == "poly" else graph.add("Tanh", base)


def _decided(graph: _Graph, found: Description, margins: str) -> list[str]:
    """The names of the outputs."""
    if found.decision == ONE_VS_ONE:
        values = _votes(graph, found, margins)
        graph.add("Gather", _labels(found.labels), values, to="label")
        return ["label", "values"]
    graph.add("Identity", margins, to="values")
    positive = graph.add("Greater", margins, 0.0)
    slopes = graph.add("Where", positive, found.slopes[:, 1], found.slopes[:, 0])
    p = graph.add("Sigmoid", graph.add("Mul", margins, slopes))
    if found.decision == THRESHOLD:
        graph.add("Concat", graph.add("Sub", 1.0, p), p, to="probabilities", axis=1)
        above = graph.add("Cast", graph.add("Greater", margins, found.threshold), to_type=6)
        place = graph.add("Squeeze", above, np.array([1]))
    else:
        total = graph.add("ReduceSum", p, np.array([1]), keepdims=1)
        place = graph.add("ArgMax", graph.add("Div", p, total, to="probabilities"), axis=1, keepdims=0)
    graph.add("Gather", _labels(found.labels), place, to="label")
    return ["label", "values", "probabilities"]


def _votes(graph: _Graph, found: Description, margins: str) -> str:
    """Add the decision values; the name of the places of the predicted labels."""
    raise NotImplementedError


def _labels(labels: list) -> np.ndarray:
    """The labels as a tensor: of bool or int64 if all are, otherwise of texts."""
    kinds = set(map(type, labels))
    return np.array(labels) if kinds in ({bool}, {int}) else np.array(list(map(str, labels)), object)


def _label_type(labels: list) -> int:
    """The number of ONNX for the type of `_labels`."""
    return {"b": 9, "i": 7, "O": 8}[_labels(labels).dtype.kind]
