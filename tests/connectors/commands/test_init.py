"""The command `streamsvm init`: what it finds in tables and topics, and what its configuration does."""

import json
import shlex
import tomllib
from datetime import datetime, timedelta

import pytest
from logged import append, read_json

from streamsvm.connectors.settings.loading import load

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


def write_csv(path, rows):
    path.write_text("\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]) + "\n")
    return path


def customers(n=60, **more):
    jobs, notes = ("clerk", "smith", ""), ("likes it", "wants to think", "no")
    return [
        {"id": f"c{i}", "age": 20 + i % 40, "job": jobs[i % 3], "shop": "web", "note": f"{notes[i % 3]} a lot {i}"}
        | {name: make(i) for name, make in more.items()}
        for i in range(n)
    ]


@pytest.fixture
def begun(tmp_path, call):
    """Write a table, call init, and return its lines and the configuration."""

    def begun(rows, *options):
        path, out = write_csv(tmp_path / "my table.csv", rows), tmp_path / "app.toml"
        code, lines, err = call("init", path, "--out", out, "--dir", tmp_path / "log", *options)
        assert (code, err) == (0, [])
        return lines, tomllib.loads(out.read_text())

    return begun


def test_the_label_is_known_by_its_name(begun):
    lines, config = begun(customers(label=lambda i: "spam" if i % 4 == 0 else "ham"))
    kinds = {"age": "number", "job": "category", "shop": "ignore", "note": "text"}
    assert config["features"] == {"raw": True, "id": "id", "label": "label", "kinds": kinds}
    assert config["label"] == {"positive": "spam", "negative": "ham"}
    assert (config["log"]["dir"], config["log"]["topic"]) == ("log", "my-table")
    rows = {line.split()[0]: line.split() for line in lines}
    assert rows["job"] == ["job", "category", "features", "40", "20", "2"]
    assert rows["shop"][2:4] == ["left", "out"]
    assert "classes: ham 45x, spam 15x; positive is spam (by its name)" in lines
    assert [line.split()[1] for line in lines[-3:]] == ["produce", "run", "predictions"]


def test_a_field_of_no_kind_is_said_once_in_the_table(tmp_path, call):
    """Without a warning of Python's, which would name a line of our code."""
    path = tmp_path / "visits.jsonl"
    path.write_text("".join(json.dumps({"a": i, "b": [1, {"c": None}], "label": i % 2}) + "\n" for i in range(60)))
    code, lines, err = call("init", path, "--out", tmp_path / "app.toml", "--dir", tmp_path / "log")
    assert (code, err) == (0, [])
    assert [line.split()[:4] for line in lines if line.startswith("b ")] == [["b", "-", "left", "out"]]


def test_a_label_that_is_not_known_is_asked_for_and_nothing_is_written(begun, tmp_path, call):
    path, out = write_csv(tmp_path / "my table.csv", customers(bought=lambda i: "yes" if i % 4 else "no")), "app.toml"
    code, lines, err = call("init", path, "--out", tmp_path / out, "--dir", tmp_path / "log")
    assert (code, lines[0].split()[:3], (tmp_path / out).exists()) == (2, ["field", "kind", "becomes"], False)
    assert "which field is the label? Add one of these options:" in err[0]
    assert err[1].strip() == """--label bought  # "yes" 45x, "no" 15x"""
    assert [line.split()[1] for line in err[1:]] == ["bought", "job", "''"]
    _, config = begun(customers(bought=lambda i: "yes" if i % 4 else "no"), "--label", "bought")
    assert config["label"] == {"positive": "yes", "negative": "no"}
    assert "bought" not in config["features"]["kinds"]
    text = (tmp_path / out).read_text()
    code, _, err = call("init", path, "--out", tmp_path / out, "--label", "job")
    assert (code, "the file exists; name another one, or add --force" in err[0]) == (2, True)
    assert (tmp_path / out).read_text() == text
    more = ("--force", "--label", "bought", "--positive", "no")
    lines, config = begun(customers(bought=lambda i: "yes" if i % 4 else "no"), *more)
    assert config["label"] == {"positive": "no", "negative": "yes"}


def test_a_table_may_have_no_label(begun, tmp_path):
    lines, config = begun(customers(), "--label", "")
    assert ("label" in config["features"], "label" in config) == (False, False)
    assert "label: none (as given)" in lines
    load(tmp_path / "app.toml", {})


def test_other_notations_are_named(begun):
    """The price is no number, so the model would learn little from it."""
    lines, config = begun(customers(price=lambda i: f"{i % 30}.{i % 7}€", y=lambda i: i % 2))
    assert config["features"]["kinds"]["price"] == "category"
    assert any(line.startswith("price: mostly digits. If they are numbers or times in") for line in lines)


def test_commas_between_thousands_are_found_out(begun, tmp_path):
    rows = [{"paid": f'"{1 + i % 9},{100 + i}.5"', "n": f'"{i % 3},500"', "y": i % 2} for i in range(60)]
    _, config = begun(rows)
    assert config["features"]["thousands"] == ","
    assert config["features"]["kinds"] == {"paid": "number", "n": "category"}  # 1,500 alone may be one and a half
    records = load(tmp_path / "app.toml", {}).features.records()
    records.learn_one({"paid": "1,100.5"})
    assert records.transform_one({"paid": "2,000.5"}) == {"paid": 2000.5}


def test_two_spellings_of_one_class_are_refused(tmp_path, call):
    path = write_csv(tmp_path / "t.csv", customers(y=lambda i: ("Yes", "yes", "no")[i % 3]))
    code, _, err = call("init", path, "--label", "y", "--out", tmp_path / "app.toml")
    assert (code, err) == (2, ["streamsvm: the label y has 'Yes' and 'yes': write each class in one way only"])


def test_numbers_with_a_decimal_comma_are_no_ids(begun):
    rows = [{"price": f'"{i // 7},{i:03d} €"', "y": i % 2} for i in range(300)]
    lines, config = begun(rows)
    assert "id" not in config["features"]
    assert any(line.startswith("price: mostly digits") for line in lines)


def test_a_field_that_counts_the_records_is_the_id(begun):
    rows = [{"nr": 7 + i, "row": i, "paid": 3 * i, "y": i % 2} for i in range(50)]
    lines, config = begun(rows)
    assert (config["features"]["id"], config["features"]["kinds"]) == ("nr", {"row": "ignore", "paid": "number"})
    assert "id: nr (it numbers the records)" in lines


def test_plain_labels_need_no_names_and_a_rare_class_is_weighted(begun, tmp_path):
    lines, config = begun(customers(100, y=lambda i: int(i % 25 == 7)))
    assert "label" not in config or not config["label"]
    assert (config["model"]["pos_weight"], config["model"]["metric"]) == ("balanced", "gmean")
    load(tmp_path / "app.toml", {})  # A model can be made of it.
    assert "the rarest class has 4.0% of the labels" in (tmp_path / "app.toml").read_text()
    assert "classes: 0 96x, 1 4x; positive is 1 (by its name)" in lines


def test_several_classes_are_listed(begun):
    _, config = begun(customers(species=lambda i: ("cat", "dog", "bird")[i % 3]), "--label", "species")
    assert sorted(config["label"]["classes"]) == ["bird", "cat", "dog"]
    assert "metric" not in config["model"]


def test_of_many_classes_the_first_are_shown(begun, tmp_path):
    lines, config = begun(customers(100, species=lambda i: f"s{i % 25}"), "--label", "species")
    assert len(config["label"]["classes"]) == 25
    assert "classes: s0 4x, s1 4x, " in " ".join(lines)
    for text in ("\n".join(lines), (tmp_path / "app.toml").read_text()):
        assert "s19 4x, 5 others\n" in text


def test_a_time_must_rise(begun, tmp_path):
    def day(i):
        return (datetime(2020, 1, 1) + timedelta(hours=9 * i)).isoformat()

    _, config = begun(customers(born=lambda i: day(i * 7919 % 60), sent=day, y=lambda i: i % 2))
    assert (config["features"]["time"], config["features"]["kinds"]["born"]) == ("sent", "time")
    assert config["features"]["kinds"]["sent"] == "time"
    assert config["join"]["max_skew_seconds"] == 1e9


def test_a_time_may_fall_seldom_and_init_says_so(begun):
    def at(i):
        return (datetime(2020, 1, 1) + timedelta(hours=i - 3 * (i in (20, 40)))).isoformat()

    lines, config = begun(customers(at=at, y=lambda i: i % 2))
    assert config["features"]["time"] == "at"
    assert "time: at (it rises from record to record, but for 2)" in lines


def test_without_an_id_events_have_their_places(begun):
    lines, config = begun([{"a": i % 7, "y": i % 2} for i in range(50)])
    assert "id" not in config["features"]
    assert any(line.startswith("id: none (no field names each record") for line in lines)


def test_numbers_of_rows_are_left_out(begun):
    """pandas writes them into a column without a name."""
    rows = [{"": i, "paid": 3 * i, "userId": 5 * i, "user_id": 7 * i, "a": i % 7, "y": i % 2} for i in range(50)]
    _, config = begun(rows)
    kinds = {"": "ignore", "paid": "number", "user_id": "ignore", "a": "number"}
    assert (config["features"]["id"], config["features"]["kinds"]) == ("userId", kinds)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--label", "nothing"), "--label nothing: no record has this field; there are id, age, job, shop, note, y"),
        (("--label", "shop"), "--label shop: the field has one value only"),
        (("--label", "note"), "--label note: the field has 60 different values in 60 records"),
        (("--label", "y", "--positive", "2"), "--positive 2: the label has no such value; it has 0, 1"),
        (("--id", "age"), "--id age: some records have no value there, or have the same one"),
    ],
)
def test_what_is_refused(tmp_path, call, options, message):
    path = write_csv(tmp_path / "d.csv", customers(y=lambda i: i % 2))
    code, out, err = call("init", path, "--out", tmp_path / "app.toml", *options)
    assert (code, out, message in err[0]) == (2, [], True), err
    assert not (tmp_path / "app.toml").exists()


def test_a_topic_of_flat_records(tmp_path, call):
    rows = [{"user": {"id": f"u{i}", "age": i % 30}, "job": None, "good": i % 2 == 0} for i in range(1200)]
    append(tmp_path / "log", [b"rubbish", *rows], "visits")
    out = tmp_path / "app.toml"
    options = ("--topic", "visits", "--dir", tmp_path / "log", "--out", out)
    code, lines, err = call("init", *options, "--label", "good")
    assert (code, err, lines[0]) == (0, [], "passed over 1 record without a JSON object")
    settings = load(out, {})
    assert (settings.features.id, settings.features.label, settings.log.topic) == ("user.id", "good", "visits")
    assert settings.features.kinds == {"user.age": "number", "job": "ignore"}
    assert "999 records of topic visits" in out.read_text()
    assert settings.daemon.follow


def test_a_topic_that_a_folder_does_not_have_is_refused(tmp_path, call):
    code, _, err = call("init", "--topic", "visits", "--dir", tmp_path / "log", "--out", tmp_path / "app.toml")
    assert (code, err) == (2, ["streamsvm: --topic visits: the log has no such topic"])


def test_a_topic_of_events(tmp_path, call):
    events = [{"id": i, "x": {"job": "clerk" if i % 3 else "smith"}, "y": "no" if i % 4 else "yes"} for i in range(40)]
    append(tmp_path / "log", events)
    out = tmp_path / "app.toml"
    assert call("init", "--topic", "events", "--dir", tmp_path / "log", "--out", out)[0] == 0
    config = tomllib.loads(out.read_text())
    assert config["features"] == {"raw": True, "kinds": {"job": "category"}}
    assert config["label"] == {"positive": "yes", "negative": "no"}


def test_two_fields_with_one_name_are_refused(tmp_path, call):
    (tmp_path / "d.jsonl").write_text('{"a.b": 1, "a": {"b": 2}}\n')
    code, _, (err,) = call("init", tmp_path / "d.jsonl", "--out", tmp_path / "app.toml")
    assert (code, "d.jsonl, record 1: two fields of the record are named 'a.b'" in err) == (1, True)


@pytest.mark.parametrize(
    "arguments", [(), ("d.csv", "--topic", "t"), ("--topic", "t"), ("--topic", "t", "--dir", "a", "--kafka", "b:1")]
)
def test_one_place_of_records_is_needed(call, arguments):
    assert call("init", *arguments)[0] == 2


def test_from_a_table_to_predictions(begun, tmp_path, call, monkeypatch):
    rows = customers(300, good=lambda i: "yes" if 20 + i % 40 > 40 else "" if i == 7 else "no")
    lines, _ = begun(rows, "--label", "good")
    monkeypatch.chdir(tmp_path)
    for line in lines[-3:]:
        code, out, err = call(*shlex.split(line)[1:])
        assert code == 0, err
    assert out == ["wrote 300 predictions to predictions.csv"]
    write_csv(tmp_path / "new.csv", [{"id": "new", "age": 59, "job": "", "shop": "web", "note": "never seen"}])
    assert call("produce", "new.csv", "--config", "app.toml")[0] == call("run", "app.toml")[0] == 0
    assert call("predictions", "app.toml", "--out", "p.jsonl")[0] == 0
    found = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    new = found.pop()
    assert (new["id"], new["label"]) == ("new", "yes")
    truth = {row["id"]: row["good"] for row in rows}
    assert sum(row["label"] == truth[row["id"]] for row in found[100:]) > 170
    assert read_json(tmp_path / "log", "my-table-dlq") == []
