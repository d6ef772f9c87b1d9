"""Models in LIBSVM's format: what LIBSVM itself makes of them, and what the numbers in them mean."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import _libsvm
from states import state_of

from streamsvm import LASVM, LASVMG, LASVMI, LASVMNC, AutoLASVM, FullSVM, OneVsRest, SnapshotError, WarmupScaler, save
from streamsvm.connectors.commands.shared.saved_model import read_model
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.trainer.state.stored_state import read_state
from streamsvm.connectors.trainer.trainer import run
from streamsvm.core.expansion import COMPRESSED, STORAGE
from streamsvm.export import to_libsvm
from streamsvm.export.libsvm import feature_numbers
from streamsvm.features import Records

KERNELS = [
    {"kernel": "rbf", "gamma": 0.3},
    {"kernel": "linear"},
    {"kernel": "poly", "gamma": 0.5, "degree": 3, "coef0": 1.0},
    {"kernel": "sigmoid", "gamma": 0.05, "coef0": -0.5},
]
PARAMETERS = {"degree": int, "gamma": float, "coef0": float}


def examples(n=160, n_features=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features)).astype(np.float32)
    return X, X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=n) > 0.4


def export_model(model, path):
    """Both files of a model."""
    legend = path.with_name(f"{path.name}.json")
    texts = to_libsvm(model)
    for file, text in zip((path, legend), texts, strict=True):
        file.write_text(text, encoding="utf-8")
    return path, legend


def read(path):
    """The header of a model file, and its coefficients with their features by number."""
    header, _, body = path.read_text().partition("SV\n")
    vectors = [line.split() for line in body.splitlines()]
    rows = [{int(n): float(v) for n, v in (pair.split(":") for pair in pairs)} for _, *pairs in vectors]
    return dict(line.split(" ", 1) for line in header.splitlines()), [float(line[0]) for line in vectors], rows


def dense(rows, width):
    X = np.zeros((len(rows), width))
    for row, pairs in enumerate(rows):
        for number, value in pairs.items():
            X[row, number - 1] = value
    return X


def by_scikit_learn(path, X):
    """Decision values of the LIBSVM inside scikit-learn, which is given what the file says."""
    header, alpha, rows = read(path)
    n_support = np.array(header["nr_sv"].split(), np.int32)
    assert (header["svm_type"], header["nr_class"], header["label"]) == ("c_svc", "2", "1 -1")
    assert len(alpha) == n_support.sum() == int(header["total_sv"])
    vectors = dense(rows, X.shape[1])
    return _libsvm.decision_function(
        sp.csr_matrix(X, dtype=np.float64).toarray(),
        np.arange(len(alpha), dtype=np.int32),
        vectors,
        n_support,
        np.array([alpha]),
        np.array([-float(header["rho"])]),
        kernel="poly" if header["kernel_type"] == "polynomial" else header["kernel_type"],
        **{name: kind(header[name]) for name, kind in PARAMETERS.items() if name in header},
    ).ravel()


def by_libsvm(path, X):
    """Decision values of LIBSVM itself, whose labels are their signs."""
    svmutil = pytest.importorskip("libsvm.svmutil", reason="pip install libsvm-official, which needs a C++ compiler")
    model = svmutil.svm_load_model(str(path))
    assert model.get_labels() == [1, -1]
    assert model.get_nr_sv() == len(read(path)[1])
    labels, _, values = svmutil.svm_predict([], sp.csr_matrix(X, dtype=np.float64), model, "-q")
    found = np.array(values)[:, 0]
    np.testing.assert_array_equal(np.array(labels), np.where(found > 0, 1, -1))
    return found


DECIDE = pytest.mark.parametrize("decide", [by_scikit_learn, by_libsvm])


def scaled(path, X, names):
    """The columns of an array as the second file says that LIBSVM takes them, in the order of the file's numbers."""
    legend = json.loads(path.with_name(f"{path.name}.json").read_text())
    meanings = {feature["name"]: feature for feature in legend["features"]}
    Z = np.zeros(X.shape)
    for x, name in zip(X.T, names, strict=True):
        scale = {"shift": 0.0, "factor": 1.0, "limit": np.inf} | meanings[name]
        z = np.clip((x - scale["shift"]) * scale["factor"], -scale["limit"], scale["limit"])
        Z[:, scale["number"] - 1] = z
    return Z


def assert_close(values, expected):
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def learned(made=LASVM, X=None, y=None, **parameters):
    X, y = examples() if X is None else (X, y)
    model = made(**{"C": 2.0, "scaling": None} | parameters)
    model.learn_many(X, y)
    return model


MODELS = {
    "scaled": {"made": LASVM, "scaling": "standard"},
    **{f"lasvm-{given['kernel']}": {"made": LASVM, **given} for given in KERNELS},
    **{made.__name__: {"made": made, **KERNELS[0]} for made in (LASVMG, LASVMNC, LASVMI, FullSVM)},
    "window": {"made": LASVM, "window": 60, **KERNELS[0]},
    "remove": {"made": LASVM, "budget": 30, **KERNELS[0]},
    "merge": {"made": LASVMG, "budget": 30, "on_budget": "merge", **KERNELS[0]},
    "project": {"made": LASVM, "budget": 30, "on_budget": "project", **KERNELS[2]},
}


@pytest.mark.parametrize("given", MODELS.values(), ids=MODELS)
@DECIDE
def test_libsvm_decides_as_the_model_does(tmp_path, given, decide):
    model = learned(**given)
    path, _ = export_model(model, tmp_path / "m.model")
    X, _ = examples(300, seed=1)
    expected = model.decision_function_many(X)
    assert 20 < np.count_nonzero(expected > 0) < 280
    assert_close(decide(path, scaled(path, X, range(X.shape[1]))), expected)


@DECIDE
def test_the_learner_that_tunes_itself_gives_the_model_that_predicts(tmp_path, decide):
    model = AutoLASVM()
    model.learn_many(*examples(1100))
    path, _ = export_model(model, tmp_path / "m.model")
    X, _ = examples(300, seed=1)
    assert_close(decide(path, scaled(path, X, range(X.shape[1]))), model.decision_function_many(X))


@pytest.mark.parametrize("made", [LASVM, LASVMG])
def test_rho_is_the_bias_with_the_other_sign(tmp_path, made):
    model = learned(made)
    header, _, _ = read(export_model(model, tmp_path / "m.model")[0])
    assert float(header["rho"]) == -model.bias
    assert (header["rho"] == "0.0") is (made is LASVMG)


def test_positive_coefficients_come_first(tmp_path):
    model = learned()
    header, alpha, rows = read(export_model(model, tmp_path / "m.model")[0])
    assert sorted(alpha) == sorted(model.dual_coef.tolist())
    assert header["nr_sv"] == f"{(model.dual_coef > 0).sum()} {(model.dual_coef < 0).sum()}"
    assert sorted(np.sign(alpha), reverse=True) == np.sign(alpha).tolist()
    exported = {(a, *np.float32(row)) for a, row in zip(alpha, dense(rows, 5), strict=True)}
    held = {(a, *row) for a, row in zip(model.dual_coef, model.support_vectors.toarray(), strict=True)}
    assert exported == held  # not a bit is lost


@DECIDE
def test_binary_features(tmp_path, decide):
    rng = np.random.default_rng(0)
    X = (rng.random((120, 12)) < 0.3).astype(np.float32)
    model = learned(X=X, y=X[:, :3].sum(axis=1) > X[:, 3:6].sum(axis=1), gamma=0.3)
    path, _ = export_model(model, tmp_path / "m.model")
    assert set().union(*(row.values() for row in read(path)[2])) == {1.0}
    assert_close(decide(path, X), model.decision_function_many(X))


@DECIDE
def test_wide_and_sparse_members(tmp_path, monkeypatch, decide):
    monkeypatch.setattr("streamsvm.core.storage.members.WIDE_BYTES", 4 * 4000)
    X = sp.random_array((120, 2000), density=0.01, random_state=np.random.default_rng(0), dtype=np.float32).tocsr()
    y = np.asarray(X[:, :1000].sum(axis=1)).ravel() > np.asarray(X[:, 1000:].sum(axis=1)).ravel()
    model = learned(X=X, y=y, gamma=0.3)
    path, legend = export_model(model, tmp_path / "m.model")
    assert 0 < sum(map(len, read(path)[2])) < 0.02 * 2000 * model.n_support
    assert {
        feature["number"] - feature["name"] for feature in json.loads(legend.read_text(encoding="utf-8"))["features"]
    } == {1}
    assert state_of(model).expansion.counts[STORAGE] == COMPRESSED
    assert_close(decide(path, X), model.decision_function_many(X))


@DECIDE
def test_an_example_without_features_is_a_support_vector_like_others(tmp_path, decide):
    model = LASVM(C=1.0)
    model.learn_many([{}, {"a": 1.0}], [True, False])
    path, _ = export_model(model, tmp_path / "m.model")
    assert {} in read(path)[2]
    X = np.array([[0.0], [0.4], [1.0]])
    assert_close(decide(path, X), model.decision_function_many([{"a": value} for (value,) in X]))


# --- names and numbers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "numbers"),
    [
        (["b", "a"], [1, 2]),
        (["7", "3"], [7, 3]),
        (["7", "03"], [1, 2]),
        (["7", "0"], [1, 2]),
        (["7", 3], [1, 2]),
        ([6, 0], [7, 1]),
        ([-1, 2], [1, 2]),
        ([True, 2], [1, 2]),
        ([2**31, 1], [1, 2]),
        (["12345678901", "1"], [1, 2]),
        ([], []),
    ],
)
def test_features_that_are_numbers_keep_them(names, numbers):
    assert feature_numbers(names).tolist() == numbers


def test_names_go_into_the_second_file(tmp_path):
    scaler = WarmupScaler("minmax", warmup=2)
    for value in (1.0, 3.0):
        scaler.learn_one({"größe": value})
    model = LASVM(C=1.0)
    model.learn_many([{"größe": 0.0, 2.5: 1.0}, {"größe": 1.0, 2.5: 1.0}], [True, False])
    path, legend = export_model(scaler | model, tmp_path / "m.model")
    assert legend == tmp_path / "m.model.json"
    assert json.loads(legend.read_text(encoding="utf-8")) == {
        "format": "libsvm",
        "labels": {"1": True, "-1": False},
        "features": [{"number": 1, "name": 2.5}, {"number": 2, "name": "größe", "shift": 1.0, "factor": 0.5}],
        "probability": {"slope_negative": model.slopes[0], "slope_positive": model.slopes[1], "threshold": 0.0},
    }
    assert {key for row in read(path)[2] for key in row} == {1, 2}


def test_the_slopes_give_the_probabilities():
    model = learned()
    X, _ = examples(50, seed=2)
    f = model.decision_function_many(X)
    p = 1 / (1 + np.exp(-np.where(f > 0, model.slopes[1], model.slopes[0]) * f))
    np.testing.assert_allclose(model.predict_proba_many(X)[:, 1], p, rtol=1e-12)


def test_numbers_rise_in_every_line(tmp_path):
    model = LASVM(C=1.0, scaling=None)
    model.learn_many([{"9": 1.0, "10": 2.0, "2": 3.0}, {"9": -1.0, "2": 1.0}], [True, False])
    for row in read(export_model(model, tmp_path / "m.model")[0])[2]:
        assert list(row) == sorted(row)


def test_a_name_that_no_file_can_hold_is_refused(tmp_path):
    model = LASVM(scaling=None)
    model.learn_many([{("a", 1): 1.0}, {("a", 1): 2.0}], [True, False])
    with pytest.raises(ValueError, match=r"feature name \('a', 1\) is a tuple"):
        export_model(model, tmp_path / "m.model")
    assert not list(tmp_path.iterdir())


def test_a_model_without_support_vectors_is_refused(tmp_path):
    with pytest.raises(ValueError, match="has no support vectors"):
        export_model(LASVM(), tmp_path / "m.model")
    assert not list(tmp_path.iterdir())


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def call(call):
    """Run a command; return its exit code and both outputs as texts."""

    def texts(*arguments):
        code, *outputs = call(*arguments)
        return code, *("".join(f"{line}\n" for line in lines) for lines in outputs)

    return texts


@pytest.fixture
def make_state(tmp_path):
    """A finished run of a daemon, and its states."""

    def make(n_partitions=1, per="partition", n=120):
        (tmp_path / "app.toml").write_text(f'[model]\nC = 2.0\ngamma = 0.3\n[daemon]\nper = "{per}"\nfollow = false\n')
        X, y = examples(n, 3)
        with LocalLog(tmp_path / "log") as log:
            log.create("events", n_partitions)
            for i, (x, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
                event = {"id": i, "x": dict(zip("abc", x, strict=True)), "y": label}
                log.produce(
                    "events", json.dumps(event).encode(), key=b"ab"[i % 2 : i % 2 + 1], partition=i % n_partitions
                )
        return run(load(tmp_path / "app.toml", {}))

    return make


@pytest.mark.parametrize("made", [LASVM, AutoLASVM])
def test_each_of_several_classes_has_a_file(tmp_path, call, made):
    """LIBSVM's decision value of each class's file is the model's, so the largest one is the same class."""
    X, y = examples()
    labels = np.array([7, "bird", "cat"], object)[y.astype(int) + (X[:, 3] > 0.5)]
    model = OneVsRest(made())
    model.learn_many(X, labels)
    model.save(tmp_path / "model.ssvm")
    values = model.decision_function_many(X)
    for k, label in enumerate(model.labels):
        out = tmp_path / f"model-{label}"
        code, printed, _ = call("export", tmp_path / "model.ssvm", "--out", out, "--label", label)
        assert code == 0, printed
        assert json.loads((tmp_path / f"model-{label}.json").read_text())["labels"] == {"1": label, "-1": None}
        assert_close(by_scikit_learn(out, scaled(out, X, range(5))), values[:, k])


def test_which_of_several_classes_is_asked_for(tmp_path, call):
    X, y = examples()
    model = OneVsRest(LASVM())
    model.learn_many(X, np.array([7, "bird", "cat"], object)[y.astype(int) + (X[:, 3] > 0.5)])
    for saved, given, said in (
        (model, [], "use --label"),
        (model, ["--label", "fish"], "'fish' is none of them"),
        (learned(), ["--label", "bird"], "this model has two"),
    ):
        saved.save(tmp_path / "model.ssvm")
        code, _, error = call("export", tmp_path / "model.ssvm", "--out", tmp_path / "out", *given)
        assert code != 0
        assert said in error
        assert not (tmp_path / "out").exists()


def test_a_saved_model(tmp_path, call):
    model = learned()
    model.save(tmp_path / "m.ssvm")
    code, out, _ = call("export", tmp_path / "m.ssvm", "--out", tmp_path / "m.model")
    assert code == 0
    assert out == (
        f"wrote {model.n_support} support vectors to {tmp_path / 'm.model'}, and what the numbers mean to "
        f"{tmp_path / 'm.model.json'}\n"
    )
    expected, _ = export_model(model, tmp_path / "expected")
    assert (tmp_path / "m.model").read_bytes() == expected.read_bytes()


def test_a_state_folder_with_the_scale_of_its_features(tmp_path, call, make_state):
    (state,) = make_state().values()
    assert call("export", tmp_path / "state", "--out", tmp_path / "m.model")[0] == 0
    X, _ = examples(50, 3, seed=3)
    X[0] = 9.0
    rows = [dict(zip("abc", x, strict=True)) for x in X.tolist()]
    Z = scaled(tmp_path / "m.model", X, "abc")
    assert Z.max() == 3.0
    assert_close(by_scikit_learn(tmp_path / "m.model", Z), state.model.decision_function_many(rows))


def test_several_partitions_ask_for_one(tmp_path, call, make_state):
    states = make_state(2)
    code, _, err = call("export", tmp_path / "state", "--out", tmp_path / "m.model")
    assert (code, "has the partitions 0, 1, with a model each; choose one by --partition" in err) == (2, True)
    assert not (tmp_path / "m.model").exists()
    assert call("export", tmp_path / "state", "--out", tmp_path / "m.model", "--partition", 1)[0] == 0
    assert len(read(tmp_path / "m.model")[1]) == states[1].model.n_support
    code, _, err = call("export", tmp_path / "state", "--out", tmp_path / "m.model", "--partition", 2)
    assert (code, "--partition 2: " in err) == (2, True)


def test_models_by_key_ask_for_one(tmp_path, call, make_state):
    make_state(per="key")
    code, _, err = call("export", tmp_path / "state", "--out", tmp_path / "m.model")
    assert (code, "has 2 models, one for each record key; choose one by --key" in err) == (2, True)
    assert call("export", tmp_path / "state", "--out", tmp_path / "m.model", "--key", "b")[0] == 0
    (stored,) = read_state(tmp_path / "state")
    assert len(read(tmp_path / "m.model")[1]) == stored.models.trained(b"b").model.n_support
    code, _, err = call("export", tmp_path / "state", "--out", tmp_path / "m.model", "--key", "c")
    assert (code, "has no model for this key" in err) == (2, True)


def test_exporting_leaves_the_state_as_it_is(tmp_path, call, make_state):
    make_state(per="key")
    before = {path: path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file()}
    call("export", tmp_path / "state", "--out", tmp_path / "m.model", "--key", "a")
    assert before == {path: path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file()}


def test_a_file_that_cannot_be_written_is_refused_first(tmp_path, call):
    code, _, err = call("export", tmp_path / "m.ssvm", "--out", tmp_path / "none" / "m.model")
    assert (code, err) == (1, f"streamsvm: {tmp_path}/none/m.model: there is no folder '{tmp_path}/none'\n")


@pytest.mark.parametrize(
    ("make", "arguments", "code", "message"),
    [
        (None, [], 1, "there is no such file or folder"),
        ("folder", [], 2, "it has no checkpoint"),
        ("scaler", [], 4, "this is a 'WarmupScaler' snapshot, expected a model (LASVM, "),
        ("text", [], 4, "not a streamsvm snapshot"),
        ("model", [], 1, "the model has no support vectors"),
        ("model", ["--partition", 0], 2, "--partition and --key go with a state folder only"),
    ],
)
def test_what_is_no_model_is_one_line(tmp_path, call, make, arguments, code, message):
    path = tmp_path / "given"
    if make == "folder":
        path.mkdir()
    elif make == "text":
        path.write_text("svm_type c_svc\n")
    elif make:
        (WarmupScaler() if make == "scaler" else LASVM()).save(path)
    found, out, err = call("export", path, "--out", tmp_path / "m.model", *arguments)
    assert (found, out, err.count("\n")) == (code, "", 1)
    assert f"{path}: " in err
    assert message in err
    assert not (tmp_path / "m.model").exists()


@pytest.mark.parametrize("first", [WarmupScaler(), Records()], ids=["scaler", "records"])
def test_a_pipeline_in_one_file_is_a_model_with_what_stands_before_it(tmp_path, call, first):
    pipeline, path = first | LASVM(), tmp_path / "pipeline.ssvm"
    for x, y in zip(*examples(40), strict=True):
        pipeline.learn_one({f"f{d}": v for d, v in enumerate(x.tolist())}, bool(y))
    save(pipeline, path)
    served = read_model(path)
    assert served.model.digest() == pipeline["LASVM"].digest()
    assert served.made_by.to_bytes() == first.to_bytes()
    assert call("export", path, "--out", tmp_path / "m.json", "--to", "json")[0] == 0
    save(WarmupScaler() | Records() | LASVM(), path)
    with pytest.raises(SnapshotError, match="this is a 'Pipeline' snapshot, expected a model"):
        read_model(path)


def test_a_configuration_leads_to_its_state_folder(tmp_path, call, make_state):
    (state,) = make_state().values()
    assert call("export", tmp_path / "app.toml", "--out", tmp_path / "m.model")[0] == 0
    assert len(read(tmp_path / "m.model")[1]) == state.model.n_support
