"""Exported models: how exact they are on many rows, and how fast.

    python benchmarks/export.py                          # a million rows of each model
    python benchmarks/export.py --quick                  # 10000 rows
    python benchmarks/export.py --models pairs sparse    # of these models, and no times

Every model of tests/helpers/exported.py decides the same rows in Python, in C (double and single precision), through
ONNX Runtime, in Node and in Java, where these are there.  The error is that of the decision values, relative to the
largest one: of double precision beside the formulas of docs/export.md, of single precision beside Python.  Then 1000
members with 2 and with 22 columns are timed in C, and ONNX's own SVMClassifier beside the graph of standard operators.
It needs a C compiler, onnx and onnxruntime.
"""

import argparse
import ctypes
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from streamsvm import LASVM
from streamsvm.export import describe, to_c, to_java, to_javascript, to_onnx
from streamsvm.online.outputs.votes import class_values

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))
import exported

LOOP = """
void many(const double *x, long n, double *values, int *labels) {
    for (long i = 0; i < n; i++) {
        model_values(x + i * FEATURES, values + i * model_n_values);
        labels[i] = model_predict(x + i * FEATURES);
    }
}
void values_only(const double *x, long n, double *values) {
    for (long i = 0; i < n; i++) model_values(x + i * FEATURES, values);
}
"""
NODE = """
import { labels, predict, values } from "./model.mjs";
const width = Number(process.argv[2]) * 8, out = [];
let rest = Buffer.alloc(0);
for await (const chunk of process.stdin) {
  rest = Buffer.concat([rest, chunk]);
  let start = 0;
  for (; start + width <= rest.length; start += width) {
    const x = Array.from({ length: width / 8 }, (_, j) => rest.readDoubleBE(start + 8 * j));
    out.push(...values(x), labels.indexOf(predict(x)));
  }
  rest = rest.subarray(start);
}
const told = Buffer.alloc(8 * out.length);
out.forEach((value, i) => told.writeDoubleBE(value, 8 * i));
process.stdout.write(told);
"""
JAVA = """
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;

public class Many {
    public static void main(String[] none) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
        double[] x = new double[Model.FEATURES.length];
        try (DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out))) {
            while (true) {
                for (int j = 0; j < x.length; j++) x[j] = in.readDouble();
                for (double value : Model.values(x)) out.writeDouble(value);
                out.writeDouble(Model.decide(x));
            }
        } catch (EOFException end) {
            return;
        }
    }
}
"""
DOUBLES, INTEGERS = ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_int)


def compiled(model, folder, *options):
    """The functions of LOOP for a model."""
    (folder / "model.c").write_text(to_c(model) + LOOP)
    library = folder / f"{time.monotonic_ns()}.so"
    subprocess.run(
        [shutil.which("cc"), "-std=c99", "-fPIC", "-shared", *options, "model.c", "-o", library, "-lm"],
        cwd=folder,
        check=True,
    )
    return ctypes.CDLL(str(library))


def by_c(library, X, n_values):
    values, labels = np.empty((len(X), n_values)), np.empty(len(X), np.int32)
    library.many(
        X.ctypes.data_as(DOUBLES),
        ctypes.c_long(len(X)),
        values.ctypes.data_as(DOUBLES),
        labels.ctypes.data_as(INTEGERS),
    )
    return values, labels


def session_of(data):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


class Program:
    """Node or Java, which reads rows and writes decision values and places of labels; None where it is not there."""

    def __init__(self, folder, texts, *commands):
        self.process = None
        for file, text in texts.items():
            (folder / file).write_text(text)
        if not all(shutil.which(command[0]) for command in commands):
            return
        for command in commands[:-1]:
            subprocess.run(command, cwd=folder, check=True)
        self.told = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - open until the program has ended
        self.process = subprocess.Popen(commands[-1], cwd=folder, stdin=subprocess.PIPE, stdout=self.told)

    def feed(self, X):
        if self.process:
            self.process.stdin.write(X.astype(">f8").tobytes())

    def answers(self, n_values):
        """The values and the places of all rows; NaN without a program."""
        if self.process is None:
            return np.full((1, n_values), np.nan), np.full(1, -1)
        self.process.stdin.close()
        if self.process.wait():
            raise RuntimeError(f"{self.process.args[0]} failed")
        self.told.seek(0)
        table = np.frombuffer(self.told.read(), ">f8").reshape(-1, n_values + 1)
        self.told.close()
        return table[:, :-1], table[:, -1].astype(int)


def programs(model, n_features, folder):
    return [
        Program(folder, {"model.mjs": to_javascript(model), "many.mjs": NODE}, ("node", "many.mjs", str(n_features))),
        Program(
            folder,
            {"Model.java": to_java(model), "Many.java": JAVA},
            ("javac", "Many.java", "Model.java"),
            ("java", "Many"),
        ),
    ]


def exact(found, X):
    """The decision values by the formulas of docs/export.md, in double precision."""
    Z = np.clip((np.where(np.isnan(X), found.missing, X) - found.shift) * found.factor, -found.limit, found.limit)
    members = found.members.toarray()
    K = Z @ members.T
    if found.kernel == "rbf":
        squares = np.square(Z).sum(axis=1)[:, np.newaxis] + np.square(members).sum(axis=1)
        K = np.exp(-found.gamma * np.maximum(squares - 2.0 * K, 0.0))
    elif found.kernel != "linear":
        base = found.gamma * K + found.coef0
        K = base**found.degree if found.kernel == "poly" else np.tanh(base)
    F = K @ found.coefficients.T + found.bias
    return class_values(F, len(found.labels)) if found.decision == "one-vs-one" else F


def compare(name, n_rows, folder):
    """Print how far the targets are from Python's own values and labels, on so many rows."""
    model = exported.model_of(name)
    found = describe(model)
    names, labels = found.features, np.array(found.labels)
    libraries = [compiled(model, folder, "-O2"), compiled(model, folder, "-O2", "-DSTREAMSVM_FLOAT")]
    sessions = [(session_of(to_onnx(model, double)), kind) for double, kind in ((True, "f8"), (False, "f4"))]
    fed = programs(model, len(names), folder)
    worst, wrong, right_of = np.zeros(6), np.zeros(6, int), []
    for first in range(0, n_rows, 10_000):
        n = min(10_000, n_rows - first)
        exported.SEED = first + 1
        rows, _ = exported.rows_of(name, n)
        own, _, own_labels = exported.answers_of(name, n)
        X = np.array([[x.get(feature, np.nan) for feature in names] for x in rows])
        formula, own_labels = exact(found, X), np.array(own_labels)
        answers = [by_c(library, X, own.shape[1]) for library in libraries]
        for session, kind in sessions:
            values, told = session.run(["values", "label"], {"x": X.astype(kind)})
            answers.append((values, told))
        for k, (values, told) in enumerate(answers):
            error = np.abs(values - (own if k % 2 else formula))
            if found.decision == "one-vs-one":  # an undecided pair may vote for its other label
                error = error[error < 0.1]
            worst[k] = max(worst[k], error.max())
            wrong[k] += np.count_nonzero((labels[told] if k < 2 else told) != own_labels)
        for program in fed:
            program.feed(X)
        right_of.append((formula, own_labels, np.abs(formula).max()))
    formula, own_labels = (np.concatenate([part[k] for part in right_of]) for k in range(2))
    for k, program in enumerate(fed, start=4):
        values, places = program.answers(formula.shape[1])
        worst[k], wrong[k] = np.abs(values - formula).max(), np.count_nonzero(labels[places] != own_labels)
    size = max(1.0, *(part[2] for part in right_of))
    told = " | ".join(f"{error / size:.0e} | {count}" for error, count in zip(worst, wrong, strict=True))
    print(f"| {name} | {len(found.gamma)} | {told} |", flush=True)


def trained(n_members, n_features):
    """A model with about so many members."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_members, n_features))
    model = LASVM(gamma=1.0 / n_features, scaling=None, admission="all")
    model.learn_many(X, rng.random(len(X)) < 0.5)
    return model, rng.normal(size=(1000, n_features))


def best_of(repeats, work):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def svm_classifier(model):
    """The model as ONNX's own operator for it."""
    found = describe(model)
    order = np.argsort(found.coefficients[0] < 0, kind="stable")
    alpha, vectors = found.coefficients[0][order], found.members.toarray()[order]
    node = onnx.helper.make_node(
        "SVMClassifier",
        ["x"],
        ["label", "scores"],
        domain="ai.onnx.ml",
        kernel_type="RBF",
        kernel_params=[float(found.gamma[0]), 0.0, 3.0],
        support_vectors=vectors.ravel().tolist(),
        vectors_per_class=[int((alpha > 0).sum()), int((alpha < 0).sum())],
        coefficients=alpha.tolist(),
        rho=[float(found.bias[0])],
        classlabels_ints=[1, 0],
        post_transform="NONE",
    )
    typed, kind = onnx.helper.make_tensor_value_info, onnx.TensorProto
    given = [typed("label", kind.INT64, ["n"]), typed("scores", kind.FLOAT, ["n", None])]
    graph = onnx.helper.make_graph([node], "svm", [typed("x", kind.FLOAT, ["n", len(found.features)])], given)
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def time_c(folder):
    print("\n| columns | members | options | us a row |\n|---|---|---|---|")
    for n_features in (2, 22):
        model, X = trained(1040, n_features)
        for options in (["-O2"], ["-O3"], ["-O2", "-DSTREAMSVM_FLOAT"], ["-O3", "-DSTREAMSVM_FLOAT"]):
            library, out = compiled(model, folder, *options), np.empty(1)
            call = (X.ctypes.data_as(DOUBLES), ctypes.c_long(len(X)), out.ctypes.data_as(DOUBLES))
            seconds = best_of(30, lambda library=library, call=call: library.values_only(*call))
            print(f"| {n_features} | {model.n_support} | {' '.join(options)} | {seconds * 1e3:.2f} |", flush=True)


def time_onnx():
    print(
        "\n| columns | members | rows at once | SVMClassifier, us a row | this graph, us a row | times |\n|"
        + "---|" * 6
    )
    for n_features in (2, 22):
        model, X = trained(1040, n_features)
        old, new = session_of(svm_classifier(model)), session_of(to_onnx(model))
        for n in (1, 100, 1000):
            x = {"x": X[:n].astype(np.float32)}
            a = best_of(30, lambda old=old, x=x: old.run(None, x)) * 1e6 / n
            b = best_of(30, lambda new=new, x=x: new.run(None, x)) * 1e6 / n
            print(f"| {n_features} | {model.n_support} | {n} | {a:.2f} | {b:.2f} | {a / b:.1f} |", flush=True)


COLUMNS = ("C", "C float", "ONNX double", "ONNX", "JavaScript", "Java")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="not used: the data are drawn")
    parser.add_argument("--quick", action="store_true", help="10000 rows of each model")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of each model")
    parser.add_argument("--models", nargs="+", choices=exported.MODELS, help="only these models, and no times")
    arguments = parser.parse_args()
    n_rows = 10_000 if arguments.quick else arguments.rows
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        if arguments.models is None:
            time_c(folder)
            time_onnx()
        print(f"\nError relative to the largest value, and labels that differ from Python's, of {n_rows} rows:\n")
        print(f"| model | members | {' | | '.join(COLUMNS)} | |\n|{'---|' * 14}")
        for kind in arguments.models or exported.MODELS:
            compare(kind, n_rows, folder)


if __name__ == "__main__":
    main()
