"""Exported models: how exact they are on many rows, and how fast.

    python benchmarks/export.py            # a million rows of each model, in C, ONNX and Python
    python benchmarks/export.py --quick    # 10000 rows

Every model of tests/helpers/exported.py decides the same rows in Python, in C (double and single precision) and through
ONNX Runtime.  Then 1000 members with 2 and with 22 columns are timed in C, and ONNX's own SVMClassifier beside the
graph of standard operators.  It needs a C compiler, onnx and onnxruntime.
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
from streamsvm.export import describe, to_c, to_onnx

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


def compare(name, n_rows, folder):
    """Print how far the targets are from Python's own values and labels, on so many rows."""
    model = exported.model_of(name)
    found = describe(model)
    names, labels = found.features, list(found.labels)
    libraries = [compiled(model, folder, "-O2"), compiled(model, folder, "-O2", "-DSTREAMSVM_FLOAT")]
    sessions = [session_of(to_onnx(model, True)), session_of(to_onnx(model))]
    worst, wrong, size, done = np.zeros(4), np.zeros(4, int), 1.0, 0
    while done < n_rows:
        n = min(10_000, n_rows - done)
        exported.SEED = done + 1
        rows, _ = exported.rows_of(name, n)
        right, _, right_labels = exported.answers_of(name, n)
        X = np.array([[x.get(feature, 0.0) for feature in names] for x in rows])
        answers = [
            (v, [labels[k] for k in own]) for v, own in (by_c(library, X, right.shape[1]) for library in libraries)
        ]
        for session, kind in zip(sessions, (np.float64, np.float32), strict=True):
            values, own = session.run(["values", "label"], {"x": X.astype(kind)})
            answers.append((values, own.tolist()))
        size, done = max(size, np.abs(right).max()), done + n
        for k, (values, own) in enumerate(answers):
            worst[k] = max(worst[k], np.abs(values - right).max())
            wrong[k] += sum(a != b for a, b in zip(own, right_labels, strict=True))
    told = "  ".join(f"{error / size:.0e} {count:3d}" for error, count in zip(worst, wrong, strict=True))
    print(f"| {name} | {len(found.gamma)} | {told.replace('  ', ' | ')} |", flush=True)


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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="not used: the data are drawn")
    parser.add_argument("--quick", action="store_true", help="10000 rows of each model")
    rows = 10_000 if parser.parse_args().quick else 1_000_000
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        time_c(folder)
        time_onnx()
        print(f"\nError relative to the largest value, and labels that differ, of {rows} rows:\n")
        print("| model | members | C double | C float | ONNX double | ONNX float |\n|" + "---|" * 6)
        for name in exported.MODELS:
            compare(name, rows, folder)


if __name__ == "__main__":
    main()
