"""`streamsvm crossval` and `streamsvm search`: tables, files, and what is said about wrong input."""

import argparse
import csv
import json
import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import metrics as of_sklearn

from streamsvm import LASVM
from streamsvm.batch import SmoothSVM
from streamsvm.batch import options as solver_options
from streamsvm.batch.ssvm.model import SOLVERS
from streamsvm.connectors.commands import cli
from streamsvm.connectors.commands.arguments import options, tuning
from streamsvm.connectors.commands.tuning.training_set import read_training_set
from streamsvm.connectors.records.columns import Columns
from streamsvm.connectors.records.files import FORMATS, read_examples
from streamsvm.connectors.runtime.folders import FileError
from streamsvm.core.device.choice import DEVICES
from streamsvm.core.kernel_table import KERNELS
from streamsvm.metrics import prbep_score
from streamsvm.validation import compare, cross_validate, folds, grid_search, leave_one_out
from streamsvm.validation.held_out.splits import CHAINS, SEEDINGS
from streamsvm.validation.scale import resolve_scaling
from streamsvm.validation.scores import BY_NAME, roc_auc

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def call(capsys):
    """Run a command; return its exit code and the lines of both outputs."""

    def call(*arguments):
        try:
            code = cli.main([str(argument) for argument in arguments])
        except SystemExit as error:  # of argparse
            code = error.code
        captured = capsys.readouterr()
        return code, captured.out.splitlines(), captured.err.splitlines()

    return call


def noisy(n=120):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)).round(4)
    return X, X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=n) > 0.7


@pytest.fixture
def points(tmp_path):
    """A CSV of `noisy`: id, three features, label."""
    X, y = noisy()
    rows = [f"p{i},{a},{b},{c},{'ham' if y[i] else 'spam'}" for i, (a, b, c) in enumerate(X.tolist())]
    path = tmp_path / "points.csv"
    path.write_text("\n".join(["id,a,b,c,class", *rows]) + "\n")
    return path


@pytest.fixture
def grouped(points):
    """The same with a group for each example, of which there are seven."""
    header, *rows = points.read_text().splitlines()
    path = points.with_name("grouped.csv")
    path.write_text("\n".join([f"{header},who", *(f"{row},g{i % 7}" for i, row in enumerate(rows))]) + "\n")
    return path


GROUPS = [i % 7 for i in range(120)]
OPTIONS = ("--label", "class", "--positive", "ham", "--id", "id")


def named(value):
    """The same id in every process: functions have addresses in theirs."""
    return "made" if callable(value) else str(value)


def read_csv(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def line(out, name):
    """The cells of a line of the table."""
    return next(text.split() for text in out if text.split()[:1] == [name])


# ---------------------------------------------------------------------------------------------------------------- files


def test_a_csv_becomes_a_matrix(grouped):
    examples = read_training_set(grouped, "auto", Columns("class", "id", "ham", "who"), "none")
    X, y = noisy()
    assert sp.issparse(examples.X)
    np.testing.assert_array_equal(examples.X.toarray(), X)
    np.testing.assert_array_equal(examples.y, y)
    assert examples.features == ["a", "b", "c"]
    assert examples.ids[:2] == ["p0", "p1"]
    assert examples.groups[:8] == ["g0", "g1", "g2", "g3", "g4", "g5", "g6", "g0"]
    assert examples.w is None


def test_missing_features_are_zero_and_numbers_are_in_order(tmp_path):
    path = tmp_path / "d.libsvm"
    path.write_text("+1 10:3 2:1\n-1 1:0 2:5\n-1\n")
    examples = read_training_set(path, "auto", Columns(), "none")
    assert examples.features == ["1", "2", "10"]
    assert examples.X.toarray().tolist() == [[0, 1, 3], [0, 5, 0], [0, 0, 0]]
    assert examples.X.nnz == 3
    assert examples.ids == ["d:1", "d:2", "d:3"]


@pytest.mark.parametrize("is_flat", [True, False])
def test_json_lines_have_weights_and_groups(tmp_path, is_flat):
    path = tmp_path / "d.jsonl"
    xs, ys, groups = [{"a": 1.5}, {"b": 2.0}, {"a": 1.0, "b": 1.0}], [1, 0, 1], ["u", 7, "u"]
    if is_flat:
        rows = [x | {"y": y, "who": group} for x, y, group in zip(xs, ys, groups, strict=True)]
    else:
        rows = [{"x": x, "y": y, "who": group, "w": 2} for x, y, group in zip(xs, ys, groups, strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    examples = read_training_set(path, "auto", Columns(label="y" if is_flat else None, group="who"), "none")
    assert examples.X.toarray().tolist() == [[1.5, 0.0], [0.0, 2.0], [1.0, 1.0]]
    assert examples.groups == ["u", "7", "u"]
    assert (examples.w is None) if is_flat else examples.w.tolist() == [2.0, 2.0, 2.0]


def test_scaling_is_by_all_examples(points):
    X, _ = noisy()
    columns = Columns("class", "id", "ham")
    standard = read_training_set(points, "auto", columns, "standard").X.toarray()
    np.testing.assert_allclose(standard, (X - X.mean(axis=0)) / X.std(axis=0), atol=1e-12)
    minmax = read_training_set(points, "auto", columns, "minmax").X.toarray()
    np.testing.assert_allclose(minmax, (X - X.min(axis=0)) / np.ptp(X, axis=0), atol=1e-12)


def test_features_of_very_different_sizes_are_spoken_of(points, tmp_path, call):
    assert call("crossval", points, *OPTIONS)[2] == []
    path = tmp_path / "d.csv"
    path.write_text("a,b,y\n" + "".join(f"{i % 3},{100 + i // 2},{i % 2}\n" for i in range(40)))
    _, _, err = call("crossval", path, "--label", "y", "-k", 2)
    assert len(err) == 1
    assert "'b' goes up to 119" in err[0]
    assert "--scale" in err[0]
    _, out, err = call("crossval", path, "--label", "y", "-k", 2, "--scale", "minmax")
    assert err == []
    assert "scaled (minmax) by the statistics of all of them" in out[0]


def test_scaling_what_leaves_out_zeros_is_spoken_of(tmp_path, call):
    path = tmp_path / "d.libsvm"
    path.write_text("".join(f"{'+-'[i % 2]}1 1:{i % 5 + 1} {i % 3 + 2}:1\n" for i in range(20)))
    assert call("crossval", path, "-k", 2)[2] == []
    code, _, err = call("crossval", path, "-k", 2, "--scale", "standard")
    assert code == 0
    assert len(err) == 1
    assert "20 examples lack features" in err[0]


def test_an_example_without_a_label_is_refused(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_text('{"x": {"a": 1}, "y": 1}\n{"x": {"a": 2}}\n')
    with pytest.raises(FileError, match=r"d\.jsonl, line 2: no label; --label names its column or field"):
        list(read_examples(path))


@pytest.mark.parametrize("numbers", [range(40), range(400, 0, -10), np.random.default_rng(0).permutation(40) + 7])
def test_an_id_is_no_feature_unless_it_is_said_to_be_one(tmp_path, call, numbers):
    """Sorted by class, it would be the best feature of all."""
    path = tmp_path / "d.csv"
    rows = [f"{number},{i % 5},{i % 3},{int(i > 20)}\n" for i, number in enumerate(numbers)]
    path.write_text("number,a,b,y\n" + "".join(rows))
    for command in ("crossval", "search"):
        code, out, err = call(command, path, "--label", "y", "-k", 2)
        assert (code, out) == (1, [])
        assert "'number' numbers the examples" in err[0]
        assert "--id number" in err[0]
        assert "--feature number" in err[0]
    assert (
        call("crossval", path, "--label", "y", "-k", 2, "--id", "number")[1][0]
        == "40 examples, 19 positive, 2 features"
    )
    code, out, _ = call("crossval", path, "--label", "y", "-k", 2, "--feature", "number")
    assert (code, out[0]) == (0, "40 examples, 19 positive, 3 features")


def test_whole_numbers_that_rise_in_a_few_rows_are_no_id(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("a,y\n" + "".join(f"{i},{i % 2}\n" for i in range(19)))
    assert read_training_set(path, "auto", Columns("y"), "none").features == ["a"]


@pytest.mark.parametrize(("command", "name"), [("crossval", "d.csv"), ("search", "d.tsv")])
def test_a_label_that_is_not_named_is_asked_for(tmp_path, call, command, name):
    separator = "," if name == "d.csv" else "\t"
    (tmp_path / name).write_text("a,class\n1,spam\n2,ham\n".replace(",", separator))
    code, _, err = call(command, tmp_path / name)
    assert code == 1
    assert err == [
        f"streamsvm: {tmp_path / name}: --label is missing: it names the column of the label; there are 'a', 'class'"
    ]


# ------------------------------------------------------------------------------------------------------------- crossval


def test_the_table_is_that_of_the_engine(grouped, call):
    code, out, err = call("crossval", grouped, *OPTIONS, "--group", "who", "--C", 5, "--gamma", "2^-1", "-k", 4)
    assert (code, err) == (0, [])
    X, y = noisy()
    result = cross_validate(LASVM(C=5.0, gamma=0.5), X, y, folds=folds.grouped(GROUPS, 4))
    assert out[0] == f"120 examples, {y.sum()} positive, 3 features"
    assert out[2] == "rbf kernel, C = 5, gamma = 0.5; 4 folds"
    assert out[3].startswith(f"seeding {result.seeding}: ")
    header = next(text for text in out if text.startswith("fold"))
    assert header.split()[1:6] == ["tested", "start", "SVs", "iterations", "rows"]
    assert header.endswith("kernel evals  seconds  accuracy  g_mean")
    for number, part in enumerate(result.per_fold, 1):
        cells = line(out, str(number))
        assert cells[1:7] == [
            str(len(part.test)),
            part.start,
            str(part.n_support),
            f"{part.iterations:,}",
            str(part.rows_computed),
            f"{part.kernel_evaluations:,}",
        ]
        assert cells[8] == f"{result.scores()[number - 1]:.4f}"
    total = line(out, "total")
    assert total[3:6] == [f"{result.iterations:,}", str(result.rows_computed), f"{result.kernel_evaluations:,}"]
    assert total[7:] == [f"{result.accuracy:.4f}", f"{result.g_mean:.4f}"]
    assert line(out, "mean")[1:] == [f"{result.scores().mean():.4f}", f"{result.scores('g_mean').mean():.4f}"]
    assert line(out, "deviation")[1] == f"{result.scores().std():.4f}"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], lambda y: folds.stratified(y, 10)),
        (["-k", 3, "--seed", 5], lambda y: folds.stratified(y, 3, seed=5)),
        (["--folds", "v-fold", "-k", 3], lambda y: folds.v_fold(len(y), 3)),
        (["--folds", "hold-out"], lambda y: folds.hold_out(len(y), 0.25, y=y)),
        (["--folds", "hold-out", "--test", 20], lambda y: folds.hold_out(len(y), 20, y=y)),
        (["--folds", "hold-out", "--test", 0.4], lambda y: folds.hold_out(len(y), 0.4, y=y)),
        (["--folds", "leave-one-out"], lambda y: folds.leave_one_out(len(y))),
        (["--folds", "leave-p-out", "-p", 1], lambda y: folds.leave_p_out(len(y), 1)),
        (["-k", 3, "--repeat", 2], lambda y: folds.repeated(lambda seed: folds.stratified(y, 3, seed=seed), 2)),
    ],
    ids=named,
)
def test_kinds_of_folds(tmp_path, call, points, options, expected):
    code, _, err = call("crossval", points, *OPTIONS, *options, "--out", tmp_path / "out.jsonl")
    assert (code, err) == (0, [])
    rows = [json.loads(row) for row in (tmp_path / "out.jsonl").read_text().splitlines()]
    X, y = noisy()
    result = cross_validate(LASVM(), X, y, folds=expected(y))
    tests = {
        (f"p{i}", fold): (f, bool(y[i]))
        for fold, part in enumerate(result.per_fold, 1)
        for i, f in zip(part.test, part.decision_values, strict=True)
    }
    assert {(row["id"], row["fold"]): (row["decision_value"], row["y"]) for row in rows} == tests
    assert all(row["prediction"] == (row["decision_value"] > 0) for row in rows)
    assert [int(row["id"][1:]) for row in rows] == sorted(int(row["id"][1:]) for row in rows)


def test_many_folds_are_summed_up_by_their_start(points, call):
    _, out, _ = call("crossval", points, *OPTIONS, "--folds", "leave-one-out")
    X, y = noisy()
    result = cross_validate(LASVM(), X, y, folds=folds.leave_one_out(len(y)))
    starts = {start: [part for part in result.per_fold if part.start == start] for start in ("copied", "path")}
    for start, parts in starts.items():
        cells = next(text.split() for text in out if text.split()[3:4] == [start])
        assert cells[:3] == [str(len(parts)), "folds", str(len(parts))]
        assert cells[5] == f"{sum(part.iterations for part in parts):,}"
    assert line(out, "total")[-2:] == [f"{result.accuracy:.4f}", f"{result.g_mean:.4f}"]
    assert not any(text.startswith("mean") for text in out)  # of single examples says nothing
    _, out, _ = call("crossval", points, *OPTIONS, "-k", 10, "--repeat", 3)
    assert line(out, "mean")


def test_predictions_as_csv(tmp_path, points, call):
    code, out, _ = call("crossval", points, *OPTIONS, "-k", 3, "--out", tmp_path / "out.csv")
    assert code == 0
    assert out[-1] == f"wrote 120 rows to {tmp_path / 'out.csv'}"
    rows = read_csv(tmp_path / "out.csv")
    assert list(rows[0]) == ["id", "fold", "y", "prediction", "decision_value"]
    right = np.mean([row["y"] == row["prediction"] for row in rows])
    assert line(out, "total")[7] == f"{right:.4f}"


def test_metrics_by_name(points, call):
    names = ",".join(BY_NAME)
    code, out, _ = call("crossval", points, *OPTIONS, "-k", 3, "--metric", names)
    assert code == 0
    X, y = noisy()
    result = cross_validate(LASVM(), X, y, folds=folds.stratified(y, 3))
    f, predicted = result.decision_values, result.predictions
    expected = [
        result.accuracy,
        result.g_mean,
        of_sklearn.roc_auc_score(y, f),
        prbep_score(y, f),
        of_sklearn.f1_score(y, predicted),
        of_sklearn.precision_score(y, predicted),
        of_sklearn.recall_score(y, predicted),
        of_sklearn.balanced_accuracy_score(y, predicted),
        of_sklearn.matthews_corrcoef(y, predicted),
    ]
    assert line(out, "total")[7:] == [f"{value:.4f}" for value in expected]
    assert line(out, "fold")[-len(BY_NAME) :] == list(BY_NAME)


def test_spaces_around_names_of_metrics_do_not_matter(points, call):
    code, out, err = call("crossval", points, *OPTIONS, "-k", 3, "--metric", " accuracy, f1 ")
    assert (code, err) == (0, [])
    assert line(out, "fold")[-2:] == ["accuracy", "f1"]
    code, out, err = call("search", points, *OPTIONS, "--C", "1,2", "--gamma", 1, "--metric", " f1 ")
    assert (code, err) == (0, [])
    assert "f1, mean of the folds; * marks the best setting" in out


@pytest.mark.parametrize("command", ["crossval", "search"])
def test_a_class_of_one_example_is_told_of_other_folds(tmp_path, call, command):
    path = tmp_path / "d.csv"
    path.write_text("a,y\n" + "".join(f"{i / 20},{int(i == 7)}\n" for i in range(20)))
    code, _, err = call(command, path, "--label", "y")
    assert code == 2
    assert "and stratified folds need two of each class" in err[-1]
    assert "v_fold, leave_one_out and hold_out do not" in err[-1]


def test_the_area_under_the_curve():
    rng = np.random.default_rng(0)
    y, f = rng.random(50) < 0.3, rng.integers(0, 6, 50).astype(float)
    assert roc_auc(y, f) == pytest.approx(of_sklearn.roc_auc_score(y, f), abs=1e-12)
    assert np.isnan(roc_auc(np.ones(3, bool), f[:3]))


def test_two_settings_on_the_same_folds(points, call):
    code, out, _ = call("crossval", points, *OPTIONS, "-k", 4, "--compare", "C=100, gamma=0.01")
    assert code == 0
    X, y = noisy()
    made = folds.stratified(y, 4)
    first, second = (
        cross_validate(LASVM(C=C, gamma=gamma), X, y, folds=made) for C, gamma in ((10.0, "scale"), (100.0, 0.01))
    )
    both = compare(first, second)
    assert any(text.startswith("rbf kernel, C = 100, gamma = 0.01; 4 folds") for text in out)
    expected = [*(f"{mean:.4f}" for mean in both.means), both.by_averaging or "neither"]
    expected += [*map(str, both.wins), both.by_voting or "neither"]
    assert line(out[-3:], "accuracy")[1:] == expected


@pytest.mark.long
def test_workers_and_seedings_print_the_same_scores(points, call):
    outs = [
        call("crossval", points, *OPTIONS, "-k", 3, *more)[1]
        for more in ([], ["--jobs", 2], ["--seeding", "ato"], ["--seeding", "none"])
    ]
    assert len({tuple(line(out, "total")[-2:]) for out in outs}) == 1
    assert "seeding ato: as asked for" in outs[2][3]


def test_a_solver_that_gives_up_says_so_in_a_line(points, call, monkeypatch):
    monkeypatch.setattr(solver_options, "STEPS_PER_EXAMPLE", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        code, out, err = call("crossval", points, *OPTIONS, "-k", 3)
    assert code == 0
    assert out
    assert any(text.startswith("streamsvm: the solver gave up on 3 of 3 folds") for text in err)


def test_a_smooth_svm(points, call, tmp_path):
    options = ("--model", "ssvm", "--gamma", 0.5, "-k", 5, "--out", tmp_path / "out.csv")
    code, out, err = call("crossval", points, *OPTIONS, *options)
    assert (code, err) == (0, [])
    X, y = noisy()
    result = cross_validate(SmoothSVM(10.0, "rbf", gamma=0.5), X, y, folds=folds.stratified(y, 5))
    assert out[2] == "smooth SVM, rbf kernel, C = 10, gamma = 0.5; 5 folds"
    assert out[3].startswith("solver shared: folds share")
    assert line(out, "total")[-2:] == [f"{result.accuracy:.4f}", f"{result.g_mean:.4f}"]
    rows = read_csv(tmp_path / "out.csv")
    np.testing.assert_allclose([float(row["decision_value"]) for row in rows], result.decision_values, atol=1e-9)


def test_options_of_a_smooth_svm(points, call):
    options = ("--model", "ssvm", "--reduced", 0.25, "--solver", "strategy-1", "--seed", 3, "--tol", 1e-8)
    _, out, _ = call("crossval", points, *OPTIONS, *options, "--folds", "leave-one-out")
    X, y = noisy()
    scaled, inputs = resolve_scaling(LASVM(), X)
    smooth = SmoothSVM(10.0, "rbf", gamma=scaled.gamma, reduced=0.25, seed=3)
    result = leave_one_out(smooth, inputs, y)
    assert "solver strategy-1: as asked for" in out[3]
    assert line(out, "total")[-2:] == [f"{result.accuracy:.4f}", f"{result.g_mean:.4f}"]
    assert any("copied" in text for text in out)


def test_a_smooth_svm_beside_the_other(points, call):
    code, out, _ = call("crossval", points, *OPTIONS, "-k", 4, "--compare", "model=ssvm,C=3", "--solver", "newton")
    assert code == 0
    X, y = noisy()
    made = folds.stratified(y, 4)
    first = cross_validate(LASVM(), X, y, folds=made)
    scaled, inputs = resolve_scaling(LASVM(), X)
    second = cross_validate(SmoothSVM(3.0, "rbf", gamma=scaled.gamma), inputs, y, folds=made)
    expected = [*(f"{mean:.4f}" for mean in compare(first, second).means)]
    assert line(out[-3:], "accuracy")[1:3] == expected


def test_a_smooth_svm_needs_no_compiler(points, call, monkeypatch):
    monkeypatch.setattr("streamsvm.connectors.commands.tuning.crossval.prepare", lambda: pytest.fail("compiles"))
    assert call("crossval", points, *OPTIONS, "--model", "ssvm")[0] == 0


# --------------------------------------------------------------------------------------------------------------- search

GRID = ("--C", "0.1:10:10", "--gamma", "2^-3,1,0.5")


def test_the_grid_is_that_of_the_engine(points, tmp_path, call):
    files = ("--out", tmp_path / "t.csv", "--plot", tmp_path / "t.png")
    code, out, err = call("search", points, *OPTIONS, *GRID, "--metric", "roc_auc", "--scale", "standard", *files)
    assert (code, err) == (0, [])
    X, y = noisy()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    found = grid_search(LASVM(), X, y, Cs=[0.1, 1.0, 10.0], gammas=[0.125, 0.5, 1.0], metric=roc_auc, refit=False)
    table = {text.split()[0]: text.split()[1:] for text in out if text.startswith("10^")}
    header = next(text.split() for text in out if text.startswith("C \\ gamma"))
    assert header == ["C", "\\", "gamma", "2^-3", "2^-1", "2^0"]
    shown = np.array([[float(cell.strip("*")) for cell in table[C]] for C in ("10^-1", "10^0", "10^1")])
    np.testing.assert_allclose(shown, found.scores, atol=0.0051)
    marked = [(row, column) for row in range(3) for column in range(3) if "*" in list(table.values())[row][column]]
    rows = read_csv(tmp_path / "t.csv")
    assert list(rows[0]) == ["C", "gamma", "roc_auc", "deviation", "iterations", "kernel_evaluations", "seconds"]
    scores = np.array([float(row["roc_auc"]) for row in rows])
    best = rows[int(np.argmax(scores))]
    assert marked == [divmod(int(np.argmax(scores)), 3)]
    setting = {name: f"{float(best[name]):g}" for name in ("C", "gamma")}
    told = f"best: C = {setting['C']}, gamma = {setting['gamma']}, with roc_auc {scores.max():.4f}"
    assert any(text.startswith(told) for text in out)
    train = next(text for text in out if text.startswith("train with it: streamsvm run CONFIG.toml"))
    assert f"--set model.C={setting['C']} --set model.gamma={setting['gamma']}" in train
    assert "model.scaling=standard" in train
    assert any(text.startswith("or in Python:  LASVM(C=") and text.endswith('scaling="standard")') for text in out)
    assert (tmp_path / "t.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    ("options", "seeding", "expected"),
    [
        ([], "none", lambda y: folds.stratified(y, 3)),
        (["-k", 4, "--seed", 5], "none", lambda y: folds.stratified(y, 4, seed=5)),
        (["--group", "who"], "none", lambda y: folds.grouped(GROUPS, 3)),
        (["--folds", "grouped", "--group", "who", "-k", 4], "none", lambda y: folds.grouped(GROUPS, 4)),
        (["--folds", "hold-out", "--test", 20], "none", lambda y: folds.hold_out(len(y), 20, y=y)),
        (["--folds", "leave-one-out"], "auto", lambda y: folds.leave_one_out(len(y))),
        (["--folds", "leave-p-out", "-p", 1], "auto", lambda y: folds.leave_p_out(len(y), 1)),
        (
            ["--folds", "v-fold", "--repeat", 2, "--seeding", "best"],
            "best",
            lambda y: folds.repeated(lambda seed: folds.v_fold(len(y), 3, seed=seed), 2),
        ),
    ],
    ids=named,
)
def test_a_search_has_all_kinds_of_folds(grouped, tmp_path, call, options, seeding, expected):
    table = tmp_path / "t.csv"
    features = ["--C", "0.1,10", "--gamma", "0.5", "--out", table]
    path = grouped if "--group" in options else grouped.with_name("points.csv")
    code, out, err = call("search", path, *OPTIONS, *features, *options)
    assert (code, err) == (0, [])
    X, y = noisy()
    made = expected(y)
    found = grid_search(LASVM(), X, y, Cs=[0.1, 10.0], gammas=[0.5], folds=made, seeding=seeding, refit=False)
    assert f"{len(made)} fold{'s' * (len(made) > 1)} each: " in out[1]
    for row, cell in zip(read_csv(table), found.table, strict=True):
        assert float(row["accuracy"]) == pytest.approx(cell.score, abs=1e-12)
        assert float(row["deviation"]) == pytest.approx(cell.spread, abs=1e-12)
        assert int(row["iterations"]) == cell.result.iterations


def test_other_kernels(points, call):
    code, out, _ = call("search", points, *OPTIONS, "--kernel", "linear", "--C", "1,2")
    assert code == 0
    assert "best: C = " in "".join(out)
    assert "gamma" not in "".join(out)
    assert any("LASVM(kernel='linear', C=" in text for text in out)
    options = ("--kernel", "poly", "--degree", 2, "--coef0", 1, "--C", "0.01,1", "--gamma", "0.01")
    code, out, _ = call("search", points, *OPTIONS, *options)
    assert code == 0
    assert any("--set model.kernel=poly" in text and "--set model.degree=2 --set model.coef0=1" in text for text in out)


def test_a_best_setting_at_the_edge_is_spoken_of(points, call):
    _, out, _ = call("search", points, *OPTIONS, "--C", "1e-3,2e-3", "--gamma", "1")
    assert any(text.startswith("this C is at the edge of the grid; a smaller one") for text in out)
    assert not any("this gamma" in text for text in out)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.1,1,1e1", [0.1, 1.0, 10.0]),
        ("2^-5:2^15:2^2", [2.0**e for e in range(-5, 16, 2)]),
        ("1:9:3", [1.0, 3.0, 9.0]),
        ("1:8:3", [1.0, 3.0]),
        ("0.001:1000:10", [10.0**e for e in range(-3, 4)]),
        ("5:5:2", [5.0]),
    ],
)
def test_lists_and_ranges(text, expected):
    assert options.values(text) == pytest.approx(expected, rel=1e-12)


# ---------------------------------------------------------------------------------------------------------- wrong input


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--metric", "auc"], 2, "'auc' is unknown; use one of accuracy, g_mean, roc_auc"),
        (["--metric", "accuracy,"], 2, "'' is unknown"),
        (["-k", 80], 2, "examples of the smallest class; k must be at most"),
        (["-k", 1], 2, "k=1"),
        (["--test", 0.5], 2, "--test goes with --folds hold-out only"),
        (["-p", 2], 2, "-p goes with --folds leave-p-out only"),
        (
            ["--folds", "leave-one-out", "--repeat", 2],
            2,
            "--repeat goes with --folds stratified or v-fold or hold-out only",
        ),
        (["--folds", "v-fold", "--group", "who"], 2, "--group goes with --folds grouped only"),
        (
            ["--folds", "grouped"],
            2,
            "--folds grouped needs --group, the column or field that holds the group of an example",
        ),
        (["--folds", "magic"], 2, "invalid choice"),
        (["--folds", "5"], 2, "'5' must be a kind of folds (stratified, v-fold, "),
        (["--folds", "5"], 2, "; their number is -k 5"),
        (["--C", "1_0"], 2, "'1_0' must be a positive number"),
        (["--C", 0], 2, "'0' must be a positive number"),
        (["--gamma", "2^x"], 2, "'2^x' must be a positive number"),
        (["--tol", "nan"], 2, "'nan' must be a positive number"),
        (["--jobs", 0], 2, "'0' must be -1 or a whole number"),
        (["--compare", "D=3"], 2, "'D=3' must be one of C=..., gamma=..."),
        (["--compare", "kernel=rbv"], 2, "'rbv' must be one of rbf, linear"),
        (["--model", "tree"], 2, "invalid choice"),
        (["--compare", "model=tree"], 2, "'tree' must be one of svm, ssvm"),
        (["--solver", "newton"], 2, "--solver goes with --model ssvm only"),
        (["--reduced", "0.1"], 2, "--reduced goes with --model ssvm only"),
        (["--model", "ssvm", "--seeding", "path"], 2, "--seeding goes with --model svm only"),
        (["--model", "ssvm", "--jobs", 2], 2, "--jobs goes with --model svm only"),
        (["--model", "ssvm", "--cache-mb", 2], 2, "--cache-mb goes with --model svm only"),
        (["--model", "ssvm", "--kernel", "linear", "--reduced", "0.1"], 2, "reduced=0.1 needs a kernel"),
        (["--model", "ssvm", "--reduced", 500], 2, "reduced=500 exceeds the 120 examples"),
        (["--out", "x.txt"], 2, "the name must end with .csv or .jsonl"),
        (["--out", "nowhere/x.csv"], 1, "there is no folder 'nowhere'"),
        (["--label", "y"], 1, "no column 'y'"),
        (["--positive", "eggs"], 1, "no record has the label 'eggs'"),
        (["--group", "nobody"], 1, "no column 'nobody'"),
    ],
    ids=str,
)
def test_crossval_refuses_in_a_line(points, call, options, code, message):
    got, out, err = call("crossval", points, *OPTIONS, *options)
    assert got == code
    assert message in err[-1]
    assert not any("Traceback" in text for text in err)
    assert len(out) <= 1  # nothing was trained


@pytest.mark.parametrize("command", ["crossval", "search", "produce"])
def test_all_others_are_negative_only_beside_a_positive_label(points, tmp_path, call, command):
    log = ["--dir", tmp_path / "log"] if command == "produce" else []
    code, _, err = call(command, points, "--label", "class", "--id", "id", "--rest", *log)
    assert (code, err) == (2, ["streamsvm: --rest goes with --positive, which names the label of the positive class"])


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", ["--label", "y"], "no header line"),
        ("a,y\n", ["--label", "y"], "no examples; examples of both classes are needed"),
        ("a,y\n1,1\n2,1\n", ["--label", "y"], "all 2 labels are positive"),
        ("a,y\n1,1\n2,0\n", [], "--label is missing: it names the column of the label; there are 'a', 'y'"),
        ("a,y\n1,1\n2,0\n3,2\n", ["--label", "y"], "--positive LABEL names the positive one"),
        ("a,y\n1,1\n2,0\n3,\n", ["--label", "y"], "line 4: no label; remove the line, or fill its label in"),
        ("a,y\n1,x\n2,z\n3,NaN\n", ["--label", "y", "--positive", "x"], "line 4: no label; remove the line"),
        ("a,y\n1,x\n2,z\n3,X\n", ["--label", "y", "--positive", "x"], "line 4, column 'y': label 'X' is almost 'x'"),
        ("a,y\n1,1\n,0\n", ["--label", "y"], "line 3, column 'a': the number is missing"),
    ],
)
@pytest.mark.parametrize("command", ["crossval", "search"])
def test_files_that_cannot_be_used(tmp_path, call, command, content, options, message):
    path = tmp_path / "d.csv"
    path.write_text(content)
    code, out, err = call(command, path, *options)
    assert (code, out, len(err)) == (1, [], 1)
    assert message in err[0]
    assert str(path) in err[0]
    assert call(command, tmp_path / "none.csv")[0] == 1


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--C", "1:10"], 2, "must be a list such as 0.1,1,10 or a range"),
        (["--C", "10:1:2"], 2, "must rise"),
        (["--C", "1:10:0.5"], 2, "must rise"),
        (["--C", "1,1"], 2, "has a value twice"),
        (["--kernel", "linear", "--gamma", "1"], 2, "--gamma: the linear kernel has no gamma"),
        (["--metric", "accuracy,f1"], 2, "'accuracy,f1' is unknown"),
        (["-k", 100], 2, "examples of the smallest class"),
        (["--folds", "grouped"], 2, "--folds grouped needs --group"),
        (["--group", "nobody"], 1, "no column 'nobody'"),
        (["--folds", "leave-one-out", "-k", 5], 2, "-k goes with --folds stratified or v-fold or grouped only"),
        (
            ["--folds", "leave-one-out", "--metric", "roc_auc"],
            2,
            "--metric roc_auc is not defined on fold 1, which tests one class only",
        ),
        (["--seeding", "sir"], 2, "invalid choice"),
        (["--folds", "5"], 2, "; their number is -k 5"),
        (["--plot", "x.bmpx"], 2, "the suffix '.bmpx' is not that of a picture"),
        (["--plot", "nowhere/x.png"], 1, "there is no folder 'nowhere'"),
    ],
    ids=str,
)
def test_search_refuses_in_a_line(points, call, options, code, message):
    got, out, err = call("search", points, *OPTIONS, *options)
    assert got == code
    assert message in err[-1]
    assert len(out) <= 1


def test_a_picture_needs_matplotlib(points, call, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, out, err = call("search", points, *OPTIONS, "--plot", "x.png")
    assert (code, out) == (2, [])
    assert "pip install 'streamsvm[plot]'" in err[0]


# --------------------------------------------------------------------------------------------------------------- output


@pytest.mark.parametrize("command", ["crossval", "search"])
def test_every_option_is_explained(command, call):
    code, out, _ = call(command, "--help")
    assert code == 0
    text = " ".join(" ".join(out).split())
    of_examples = ("--label", "--positive", "--scale", "--group")
    of_folds = ("--folds", "-k", "--test", "-p", "--repeat", "--seed", "--seeding")
    for name in (*of_examples, *of_folds, "--C", "--gamma", "--kernel", "--jobs", "--metric", "--out"):
        assert name in text
    assert all(metric in text for metric in BY_NAME)
    assert all(action.help for action in actions_of(command))


def actions_of(command):
    return cli.make_parser()._subparsers._group_actions[0].choices[command]._actions


def test_options_know_what_the_engine_knows():
    choices = {command: {} for command in ("crossval", "search")}
    for command, found in choices.items():
        found |= {action.dest: action.choices for action in actions_of(command)}
    assert list(choices["crossval"]["seeding"]) == list(SEEDINGS)
    assert set(choices["search"]["seeding"]) == set(SEEDINGS) - set(CHAINS)
    assert sorted(choices["crossval"]["solver"]) == sorted(["auto", "shared", *SOLVERS])
    assert choices["crossval"]["kernel"] is KERNELS
    assert ", ".join(BY_NAME) == tuning.METRICS
    assert options.DEVICES == DEVICES
    assert ("auto", *FORMATS) == options.FILE_FORMATS


@pytest.mark.long
def test_a_pipe_gets_the_table_and_nothing_else(points):
    """No bar and no message."""
    script = "import sys; from streamsvm.connectors.commands.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", script, "crossval", str(points), *OPTIONS]
    environment = dict(os.environ, PYTHONWARNINGS="error")
    answer = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""
    assert "\r" not in answer.stdout
    assert answer.stdout.splitlines()[-1].startswith("deviation")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *(
            (kind, text)
            for kind in ("count", "partitions", "replication", "offset")
            for text in ("-1", "9" * 40, "٣", "", "1.5")
        ),
        *((kind, "0") for kind in ("count", "partitions", "replication", "jobs")),
        ("partitions", "2000000000"),
        ("jobs", "-2"),
        ("jobs", "many"),
        ("megabytes", "1e300"),
        ("megabytes", "nan"),
        ("megabytes", "0"),
        ("seconds", "inf"),
        ("seconds", "1e300"),
        ("share", "nan"),
        ("values", "1:10:1.0000001"),
        ("values", "1e-300:1e300:1.1"),
        ("positive", "inf"),
        ("values", ""),
        ("positive", "-0"),
        ("number", "inf"),
        ("test_size", "9" * 40),
        ("moment", "9" * 40),
        ("moment", "yesterday"),
        ("topic", ".."),
    ],
)
def test_flags_refuse_what_makes_no_sense(kind, text):
    with pytest.raises(argparse.ArgumentTypeError, match=re.escape(repr(text))):
        getattr(options, kind)(text)


def test_a_mistaken_argument_is_not_repeated_if_it_holds_a_secret(call):
    code, _, err = call("run", "app.toml", "kafka.sasl_plain_password=hunter2")
    assert code == 2
    assert "kafka.sasl_plain_password=..." in err[-1]
    assert "hunter2" not in "".join(err)
