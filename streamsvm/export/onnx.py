"""A model as an ONNX graph of standard operators: a matrix product, an exponential, and another matrix product."""

import json
from typing import Any

import numpy as np

from streamsvm._version import __version__
from streamsvm.export.description import ONE_VS_ONE, ONE_VS_REST, THRESHOLD, Description, describe
from streamsvm.export.fields import require_numbers
from streamsvm.export.writing import texts_of

OPSET = 17  # of 2022: any ONNX Runtime since 1.13 reads it


def to_onnx(model: Any, double: bool = False) -> bytes:
    """A model as the bytes of an ONNX file.

    The graph takes ``x``, a tensor (rows, features), and gives ``label``, ``values`` and ``probabilities``.  The file's
    metadata hold the names of the features in their order, and the labels, as JSON.  NaN is a missing feature.  There
    are no probabilities for a `OneVsOne`: they need a loop.  Of a model that decides, ``set`` (rows, labels) says which
    labels cannot be excluded.

    Parameters
    ----------
    model
        The model; see `describe`, which also says what is raised.
    double
        Whether the graph takes and computes double precision; default: single precision, which is twice as fast, and
        has few digits for features far from 0.

    Raises
    ------
    ValueError
        If a `OneVsOne` decides, or the model takes raw records.
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
    require_numbers(found.records, "ONNX")
    if found.guarantee is not None and found.decision == ONE_VS_ONE:
        raise ValueError("ONNX has no probabilities of a OneVsOne, so it cannot decide; choose C, Java or JavaScript")
    opsets = [onnx.helper.make_opsetid("", OPSET)]
    graph = _Graph(np.dtype(np.float64 if double else np.float32))
    _decide(graph, found, _margins(graph, found))
    kind, typed = onnx.helper.np_dtype_to_tensor_dtype(graph.dtype), onnx.helper.make_tensor_value_info
    outputs = [typed("label", onnx.helper.np_dtype_to_tensor_dtype(_labels(found.labels).dtype), ["n"])]
    wide = ["values"] if found.decision == ONE_VS_ONE else ["values", "probabilities"]
    outputs += [typed(name, kind, ["n", None]) for name in wide]
    if found.guarantee is not None:
        outputs.append(typed("set", onnx.TensorProto.BOOL, ["n", None]))
    nodes = [onnx.helper.make_node(*node, name=node[2][0], **options) for node, options in graph.nodes]
    constants = [onnx.numpy_helper.from_array(array, name) for name, array in graph.constants.items()]
    x = typed("x", kind, ["n", len(found.features)])
    made = onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "streamsvm", [x], outputs, constants),
        opset_imports=opsets,
        ir_version=onnx.helper.find_min_ir_version_for(opsets),
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

    def add(self, operator: str, *inputs: Any, name: str | None = None, **options: Any) -> str:
        """Add a node; the name of what it gives."""
        out = name or f"{operator.lower()}_{len(self.nodes)}"
        names = [given if isinstance(given, str) else self.constant(given) for given in inputs]
        self.nodes.append(((operator, names, [out]), options))
        return out

    def constant(self, values: Any) -> str:
        name, array = f"constant_{len(self.constants)}", np.asarray(values)
        self.constants[name] = array.astype(self.dtype) if array.dtype == np.float64 else array
        return name


def _margins(graph: _Graph, found: Description) -> str:
    """f of each machine, (n, K)."""
    members, shift = found.members.toarray(), found.shift
    if not np.isfinite(found.limit) and found.kernel == "rbf":
        # Distances depend on no shift, but their precision does.
        centre = members.mean(axis=0)
        members = members - centre
        shift = shift + np.divide(centre, found.factor, out=np.zeros_like(centre), where=found.factor != 0.0)
    z = graph.add("Sub", graph.add("Where", graph.add("IsNaN", "x"), found.missing, "x"), shift)
    if (found.factor != 1.0).any():
        z = graph.add("Mul", z, found.factor)
    if np.isfinite(found.limit):
        z = graph.add("Clip", z, -found.limit, found.limit)
    if found.kernel != "rbf":
        k = _of_products(graph, found, graph.add("MatMul", z, members.T))
    else:
        # The exponent -gamma |x - z|^2 is one product: |x|^2 is a feature more, and |z|^2 is in the constant.
        squares = graph.add("ReduceSumSquare", z, axes=[1], keepdims=1)
        weights = np.vstack([2.0 * found.gamma * members.T, -found.gamma])
        constant = -found.gamma * np.square(members).sum(axis=1)
        k = graph.add("Exp", graph.add("Gemm", graph.add("Concat", z, squares, axis=1), weights, constant))
    name = "margins" if found.decision == ONE_VS_ONE else "values"
    return graph.add("Gemm", k, found.coefficients.T, found.bias, name=name)


def _of_products(graph: _Graph, found: Description, products: str) -> str:
    if found.kernel == "linear":
        return products
    base = graph.add("Add", graph.add("Mul", products, found.gamma), found.coef0)
    return graph.add("Pow", base, float(found.degree)) if found.kernel == "poly" else graph.add("Tanh", base)


def _decide(graph: _Graph, found: Description, margins: str) -> None:
    """Add the outputs."""
    labels = _labels(found.labels)
    if found.decision == THRESHOLD and found.guarantee is None:
        _probabilities(graph, found, margins)
        is_second = graph.add("Greater", margins, found.threshold)
        if labels.dtype == bool:  # False and True
            graph.add("Squeeze", is_second, np.array([1]), name="label")
        else:
            graph.add("Squeeze", graph.add("Where", is_second, labels[1:], labels[:1]), np.array([1]), name="label")
        return
    if found.decision == ONE_VS_ONE:
        place = _count_votes(graph, len(labels), margins)
    else:
        p = _probabilities(graph, found, margins)
        place = graph.add("ArgMax", p, axis=1, keepdims=0)
        if found.guarantee is not None:
            is_best = graph.add("Equal", graph.add("Unsqueeze", place, np.array([1])), np.arange(len(labels)))
            kept = graph.add("GreaterOrEqual", p, np.array(found.guarantee.thresholds))
            graph.add("Or", is_best, kept, name="set")
    graph.add("Gather", labels, place, name="label")


def _probabilities(graph: _Graph, found: Description, margins: str) -> str:
    """Add the probabilities, (n, L)."""
    correction, sides = found.guarantee and found.guarantee.correction, np.array([-1.0, 1.0])
    below, above = found.slopes.T
    if found.decision == THRESHOLD and correction is None:
        below, above = sides * below, sides * above  # of both labels at once: p of -f and of f
    t = graph.add("Mul", margins, graph.add("Where", graph.add("Greater", margins, 0.0), above, below))
    if found.decision == THRESHOLD and correction is None:
        return graph.add("Sigmoid", t, name="probabilities")
    if found.decision == ONE_VS_REST:
        p = graph.add("Sigmoid", t)
        if correction is None:
            return graph.add("Div", p, graph.add("ReduceSum", p, np.array([1]), keepdims=1), name="probabilities")
        first, second = (graph.add("Gather", p, np.array([label]), axis=1) for label in range(2))
        t = graph.add("Log", graph.add("Div", second, first))
    if correction is not None:
        t = graph.add("Mul", graph.add("Clip", t, -8.0, 8.0), correction[1])
        t = graph.add("Clip", graph.add("Add", t, correction[0]), -12.0, 12.0)
    return graph.add("Sigmoid", graph.add("Mul", t, sides), name="probabilities")


def _count_votes(graph: _Graph, n_labels: int, margins: str) -> str:
    """Add the values; the name of the places of the labels with the most votes."""
    first, second = (np.eye(n_labels)[own] for own in np.triu_indices(n_labels, 1))

    def votes(operator: str) -> str:
        for_first = graph.add("Where", graph.add(operator, margins, 0.0), 1.0, 0.0)
        return graph.add("Gemm", for_first, first - second, second.sum(axis=0))

    sums = graph.add("MatMul", margins, first - second)
    size = graph.add("Add", graph.add("Mul", graph.add("Abs", sums), 3.0), 3.0)
    graph.add("Add", votes("GreaterOrEqual"), graph.add("Div", sums, size), name="values")
    return graph.add("ArgMax", votes("Greater"), axis=1, keepdims=0)


def _labels(labels: list) -> np.ndarray:
    """The labels as a tensor: of bool or int64 if all are, otherwise of texts."""
    kinds = set(map(type, labels))
    return np.array(labels) if kinds in ({bool}, {int}) else np.array(texts_of(labels), object)
