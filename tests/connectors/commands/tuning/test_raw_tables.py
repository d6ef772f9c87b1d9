"""`streamsvm crossval` and `search` on raw tables: what `Records` makes of them, and what it must not know."""

import shlex

import numpy as np
import pytest

from streamsvm.connectors.commands.tuning.training_set import read_training_set
from streamsvm.connectors.records.columns import Columns
from streamsvm.connectors.settings.loading import load
from streamsvm.features import Records

COLUMNS = Columns(label="bought", id="id", positive="yes", raw="event")


def rows(n=120):
    rng = np.random.default_rng(0)
    for i in range(n):
        income, job = rng.normal(50_000, 10_000), rng.choice(["clerk", "smith", ""])
        bought = "yes" if (income > 50_000) == (job == "clerk") else "no"
        yield f"c{i},{'' if i % 7 == 3 else round(income)},{job},{bought}"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("\n".join(["id,income,job,bought", *rows()]) + "\n")
    return path


def examples(path, scale="standard"):
    return read_training_set(path, "auto", COLUMNS, scale, (), Records())


def test_numbers_are_scaled_and_categories_are_not(table):
    found = examples(table)
    assert sorted(found.features) == ["income", "~job=clerk", "~job=smith", "~job?"]
    X = found.X.toarray()
    of = {name: X[:, column] for column, name in enumerate(found.features)}
    assert (found.n_fields, abs(of["income"].mean()) < 1e-9, round(of["income"].std(), 6)) == (2, True, 1.0)
    assert set(of["~job?"]) == {0.0, 1.0}


def test_a_missing_value_is_guessed_by_the_rows_before_it(table):
    """Otherwise the rows that test a fold would be in it."""
    column = [cell.split(",")[1] for cell in table.read_text().splitlines()[1:]]
    found = examples(table, "none")
    income = found.X.toarray()[:, found.features.index("income")]
    before = [float(value) for value in column[:3]]
    assert column[3] == ""
    assert np.mean(before) == pytest.approx(income[3]) or income[3] == before[-1]
    table.write_text(table.read_text().replace(column[-1], "9000000"))
    changed = examples(table, "none").X.toarray()[:, found.features.index("income")]
    assert (changed[:-1] == income[:-1]).all()


def test_labels_have_no_influence_on_features(table):
    before = examples(table)
    table.write_text(table.read_text().replace("yes", "maybe").replace("no\n", "yes\n").replace("maybe", "no"))
    after = examples(table)
    assert (after.y == ~before.y).all()
    assert (before.X != after.X).nnz == 0


@pytest.fixture
def pets(tmp_path, call):
    """A table of three classes, and the configuration that `init` writes for it."""
    rng, path = np.random.default_rng(0), tmp_path / "pets.csv"
    of = [("cat", "short", 4.0), ("dog", "curly", 9.0), ("bird", "", 1.0)]
    lines = [f"{fur},{mean + rng.normal():.2f},{name}" for name, fur, mean in of * 30]
    path.write_text("\n".join(["fur,weight,species", *lines]) + "\n")
    assert call("init", path, "--label", "species", "--out", tmp_path / "app.toml")[0] == 0
    return path, tmp_path / "app.toml"


def test_several_classes_are_cross_validated(pets, tmp_path, call):
    table, config = pets
    how = ("--config", config, "-k", 3, "--metric", "accuracy,g_mean,balanced_accuracy")
    code, lines, err = call("crossval", table, *how, "--compare", "C=1", "--out", tmp_path / "tests.csv")
    assert (code, err) == (0, [])
    assert lines[0].startswith("90 examples, 3 classes (cat 30x, dog 30x, bird 30x), 4 features of 2 raw fields")
    total = next(line for line in lines if line.startswith("total")).split()
    tested = [line.split(",") for line in (tmp_path / "tests.csv").read_text().splitlines()[1:]]
    right = [y == predicted for _, _, y, predicted in tested]
    recalls = [np.mean([r for r, (*_, y, _) in zip(right, tested, strict=True) if y == name]) for name in
               ("bird", "cat", "dog")]  # fmt: skip
    expected = np.mean(right), np.prod(recalls) ** (1 / 3), np.mean(recalls)
    assert (len(tested), total[1]) == (90, "90")
    assert [float(value) for value in total[2:]] == pytest.approx(expected, abs=1e-4)
    cat = next(line for line in lines if line.startswith("cat")).split()
    assert sum(map(int, cat[1:4])) == 30
    assert float(cat[4]) == pytest.approx(recalls[1], abs=1e-4)


def test_several_classes_are_searched(pets, call):
    table, config = pets
    code, lines, err = call("search", table, "--config", config, "--C", "1,10", "--gamma", "0.5", "--metric", "g_mean")
    assert (code, err) == (0, [])
    assert any(line.startswith("best: C = ") and "with g_mean" in line for line in lines)
    assert lines[-1].startswith("or in Python:  Records() | OneVsOne(LASVM(C=")


def test_what_several_classes_do_not_have_is_refused(pets, call):
    table, config = pets
    code, _, err = call("crossval", table, "--config", config, "--metric", "roc_auc", "--model", "ssvm")
    assert code == 2
    assert err == [
        "streamsvm: --metric roc_auc is for two classes; [label] lists more, for which there are accuracy, g_mean, "
        "balanced_accuracy",
        "streamsvm: --model ssvm is for two classes; [label] lists more",
    ]


@pytest.mark.parametrize("command", ["crossval", "search"])
def test_a_configuration_names_the_columns(table, tmp_path, call, command):
    grid = ("--C", "10", "--gamma", "0.5") if command == "search" else ("--C", "10")
    code, by_options, err = call(
        command, table, "--raw", "--label", "bought", "--positive", "yes", "--id", "id", "-k", 2, *grid
    )
    assert (code, err) == (0, [])
    made = "4 features of 2 raw fields, whose kinds are judged by all of them; scaled (standard)"
    assert by_options[0].startswith("120 examples, ")
    assert made in by_options[0]
    assert call("init", table, "--label", "bought", "--out", tmp_path / "app.toml")[0] == 0
    code, by_config, _ = call(command, table, "--config", tmp_path / "app.toml", "-k", 2, *grid)
    assert (code, by_config[0]) == (0, by_options[0])
    if command == "search":
        assert by_config[-1].startswith("or in Python:  Records() | LASVM(C=10, gamma=0.5")
        assert "--set model.algorithm=lasvm --set model.C=10" in by_config[-2]


def test_what_is_refused(table, tmp_path, call):
    path = tmp_path / "app.toml"
    path.write_text("[model]\nC = 1.0\n")
    code, _, (err,) = call("crossval", table, "--config", path, "--label", "bought")
    assert (code, "[features] raw is not true" in err) == (2, True)
    code, _, (err,) = call("crossval", table, "--raw")
    assert (code, "--label is missing: it names the field of the label" in err) == (1, True)
    path.write_text('[features]\nraw = true\n[label]\nclasses = ["a", "b", "c"]\n')
    code, _, (err, *_) = call("crossval", table, "--config", path, "--label", "bought")
    assert (code, "y must be one of label.classes, got" in err) == (1, True)


def test_the_function_of_the_configuration_makes_the_features(table, tmp_path, call):
    (tmp_path / "table_convert.py").write_text("def convert(x):\n    return {'half': float(x['income'] or 0) / 2}\n")
    lines = ["[features]", "raw = true", 'id = "id"', 'label = "bought"', 'transform = "table_convert:convert"']
    (tmp_path / "app.toml").write_text("\n".join([*lines, "[label]", 'positive = "yes"', 'negative = "no"']))
    code, out, _ = call("crossval", table, "--config", tmp_path / "app.toml")
    assert (code, "1 feature of 1 raw field, whose" in out[0]) == (0, True)


def test_the_command_that_search_prints_suits_the_configuration_of_a_rare_class(table, tmp_path, call):
    lines = [
        "[features]",
        "raw = true",
        'id = "id"',
        'label = "bought"',
        "[label]",
        'positive = "yes"',
        'negative = "no"',
    ]
    lines += ["[model]", 'algorithm = "auto"', 'metric = "gmean"', 'pos_weight = "balanced"']
    (tmp_path / "app.toml").write_text("\n".join(lines))
    code, out, _ = call("search", table, "--config", tmp_path / "app.toml", "--C", "1", "--gamma", "0.1")
    (train,) = (line for line in out if line.startswith("train with it: "))
    overrides = [word for word in shlex.split(train) if word.startswith("model.")]
    assert (code, load(tmp_path / "app.toml", {}, overrides).model.algorithm) == (0, "lasvm")
