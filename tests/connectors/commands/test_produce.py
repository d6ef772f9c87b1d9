"""The command `streamsvm produce`: what annotators see of a file's rows, and labels that find their events."""

import csv
import json

import pytest
from logged import append, read, read_json, write_config

from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.trainer import trainer

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")

MAILS = 'id,length,body,shot,curve,sender\na,12,"Hi, [you]",https://e.org/a.png,1 2.5 -3,ann\nb,7,,,"[1, 2]",\n'


@pytest.fixture
def mails(tmp_path):
    path = tmp_path / "mails.csv"
    path.write_text(MAILS)
    return path


SHOWN = ("--id", "id", "--text", "body", "--image", "shot", "--series", "curve", "--show", "sender")

# --- columns for people -----------------------------------------------------------------------------------------------


def test_columns_for_people_are_fields_and_no_features(mails, config, tmp_path, call):
    code, out, err = call("produce", mails, "--dir", tmp_path / "log", *SHOWN)
    assert (code, err) == (0, [])
    assert out[0].startswith("appended 2 records from ")
    assert read_json(tmp_path / "log", "events") == [
        {
            "id": "a", "x": {"length": 12}, "text": "Hi, [you]", "image": "https://e.org/a.png", "series": [1, 2.5, -3],
            "sender": "ann",
        },
        {"id": "b", "x": {"length": 7}, "text": "", "image": "", "series": [1, 2], "sender": ""},
    ]  # fmt: skip


def test_the_configuration_names_the_fields(mails, config, tmp_path, call):
    config.write_text(config.read_text() + '[labelling]\ntext = "mail"\nimage = "picture"\nseries = "line"\n')
    assert call("produce", mails, "--config", config, *SHOWN)[0] == 0
    assert set(read_json(tmp_path / "log", "events")[0]) == {"id", "x", "mail", "picture", "line", "sender"}


@pytest.mark.parametrize("event", [{"id": "a", "x": {"n": 1}, "body": "Hi"}, {"id": "a", "n": 1, "body": "Hi"}])
def test_json_lines_are_shown_alike(tmp_path, call, event):
    path = tmp_path / "mails.jsonl"
    path.write_text(json.dumps(event | {"curve": [1, 2]}) + "\n")
    arguments = ("--id", "id", "--text", "body", "--series", "curve")
    assert call("produce", path, "--dir", tmp_path / "log", *arguments)[0] == 0
    (found,) = read_json(tmp_path / "log", "events")
    assert (found["x"], found["text"], found["series"]) == ({"n": 1}, "Hi", [1, 2])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--text", "bodi"), "no column 'bodi'; there are 'id', 'length'"),
        (("--show", "id"), "--show id: the field 'id' of an event has a meaning of its own"),
        (("--text", "body", "--show", "text"), "two columns would be the field 'text'"),
        (("--series", "sender", *SHOWN[:6]), "'ann' is not a finite number"),
        (SHOWN[:6], "with --show curve, annotators see the column, and the model does not learn it"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_written(mails, tmp_path, call, options, said):
    code, out, err = call("produce", mails, "--dir", tmp_path / "log", *options)
    assert (code in (1, 2), out, said in err[0]) == (True, [], True), err
    assert read(tmp_path / "log") == []


# --- labels -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def labelled(tmp_path):
    """A configuration with labels, and events of both kinds of ids in two partitions."""
    path = write_config(tmp_path, batch=1)
    path.write_text('[log]\nlabels = "labels"\n[label]\npositive = "fraud"\nnegative = "genuine"\n' + path.read_text())
    for number in (0, 1):
        events = [{"id": i, "x": {"a": i % 5, "b": i % 3}} for i in range(number, 40, 2)]
        append(tmp_path / "log", events, partition=number, key=b"key-%d" % number)
    append(tmp_path / "log", [{"id": "x-1", "x": {"a": 1.0}}], partition=1)
    return path


def produce_labels(call, config, text, name="labels.csv"):
    path = config.parent / name
    path.write_text(text)
    return call("produce", path, "--config", config, "--labels")


def test_a_label_gets_the_id_the_key_and_the_partition_of_its_event(labelled, tmp_path, call):
    text = "id,y,weight,rev,ts,note\n7,fraud,2.5,,2026-01-01,?\n8,0,,5,,\nx-1,true,,,,\n"
    code, (out,), err = produce_labels(call, labelled, text)
    assert (code, err) == (0, [])
    assert out.startswith("appended 3 labels from ")
    found = {(record.partition, record.key): [] for record in read(tmp_path / "log", "labels")}
    for record in read(tmp_path / "log", "labels"):
        found[record.partition, record.key].append(json.loads(record.value))
    assert found == {
        (0, b"key-0"): [{"id": 8, "op": "set", "y": False, "rev": 5}],
        (1, b"key-1"): [{"id": 7, "op": "set", "y": "fraud", "weight": 2.5, "ts": "2026-01-01"}],
        (1, None): [{"id": "x-1", "op": "set", "y": True}],
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,y\n7,perhaps\n", "line 2: y must be true/false, 0/1, -1/+1, 'fraud'/'genuine', got 'perhaps'"),
        ("id,y\n7,\n", "line 2: no 'y'; to take a label back, set the column 'op' to retract"),
        ("id,y\n7,NaN\n", "line 2: no 'y'; to take a label back"),
        ("y\n1\n", "line 1: no column 'id'; there are 'y'"),
        ("id;y\n7;1\n", "line 1: no column 'id'; there are 'id;y'; separate the columns by commas"),
        ("id,y,y\n7,1,0\n", "line 1: column 'y' appears more than once"),
        ("id,y,rev\n7,1,1_0\n", "line 2, column 'rev': '1_0' is not a whole number"),
        ("id,y,weight\n7,1,\uff11\n", "line 2, column 'weight': '\uff11' is not a number"),
        ("id,y,rev\n7,1,soon\n", "line 2, column 'rev': 'soon' is not a whole number"),
        ("id,y\n7,1\n7\n", "line 3: 1 columns, but the header has 2"),
        ("id,y\n77,1\n", "topic 'events' has no event '77', so its partition must be named"),
        ("id,y,partition\n7,1,-1\n", "partition must be a whole number, got -1"),
    ],
)
def test_a_wrong_label_is_refused_before_anything_is_written(labelled, tmp_path, call, text, said):
    code, out, (err,) = produce_labels(call, labelled, text)
    assert (code, out, said in err) == (1, [], True), err
    assert read(tmp_path / "log", "labels") == []


def test_a_label_may_come_before_its_event_if_its_partition_is_known(labelled, tmp_path, call):
    code, out, _ = produce_labels(call, labelled, "id,y,partition\n77,1,1\n")
    assert (code, out[0]) == (0, "topic events has no event yet for 1 label")
    assert [record.partition for record in read(tmp_path / "log", "labels")] == [1]


def test_other_columns_can_be_named(labelled, tmp_path, call):
    path = tmp_path / "checked.csv"
    path.write_text("record,verdict\n7,bad\n8,fine\n")
    named = ("--id", "record", "--label", "verdict", "--positive", "bad")
    assert call("produce", path, "--config", labelled, "--labels", *named)[0] == 0
    assert {value["id"]: value["y"] for value in read_json(tmp_path / "log", "labels")} == {7: True, 8: False}


def test_options_of_events_and_a_missing_topic_are_refused(labelled, mails, call):
    code, _, err = call("produce", mails, "--config", labelled, "--labels", "--text", "body")
    assert (code, err) == (2, ["streamsvm: --text: labels have no such column; it goes with events"])
    labelled.write_text("")
    code, _, (err,) = produce_labels(call, labelled, "id,y\n7,1\n")
    assert (code, "log.labels = ''" in err) == (2, True)
    code, _, (err,) = produce_labels(call, labelled, "", name="labels.npz")
    assert (code, "log.labels = ''" in err) == (2, True)


def digest(config, *overrides):
    return {number: state.models.digest() for number, state in trainer.run(load(config, {}, overrides)).items()}


@pytest.mark.parametrize("name", ["labels.csv", "labels.jsonl", "labels.parquet"])
def test_what_was_exported_and_produced_again_gives_the_same_model(labelled, tmp_path, call, name):
    answers = "".join(f"{i},{'fraud' if i % 5 > 2 else 'genuine'},set,{100 + i}\n" for i in range(40))
    changed = "3,genuine,set,\n4,,retract,\n4,genuine,set,500\n5,,skip,\n"
    produce_labels(call, labelled, "id,y,op,rev\n" + answers + changed, "first.csv")
    before = digest(labelled)
    out = tmp_path / name
    assert call("labels", labelled, "--out", out, "--history")[0] == 0
    assert call("labels", labelled, "--out", tmp_path / f"held-{name}")[0] == 0
    assert call("produce", tmp_path / f"held-{name}", "--config", labelled, "--labels")[0] == 0
    assert digest(labelled) == before, "nothing is new"

    (tmp_path / "again").mkdir()
    again = write_config(tmp_path / "again", batch=1)
    again.write_text(labelled.read_text())
    for record in read(tmp_path / "log"):
        append(tmp_path / "again" / "log", [record.value], partition=record.partition, key=record.key)
    assert call("produce", out, "--config", again, "--labels")[0] == 0
    assert digest(again) == before


def test_a_spreadsheet_corrects_an_answer_without_its_revision(labelled, tmp_path, call):
    answers = "".join(f"{i},{i % 5 > 2},{1_767_225_600_000 + i}\n" for i in range(40))
    produce_labels(call, labelled, "id,y,rev\n" + answers)
    before = digest(labelled)
    produce_labels(call, labelled, "id,y\n3,0\n")
    state = trainer.run(load(labelled, {}))[1]
    assert (state.join.counters.corrected, state.join.counters.stale, state.join.label_of(3)) == (1, 0, False)
    assert digest(labelled) != before
    call("labels", labelled, "--out", tmp_path / "out.csv")
    with open(tmp_path / "out.csv", newline="") as file:
        held = {row["id"]: row["y"] for row in csv.DictReader(file)}
    assert (len(held), held["3"], held["4"]) == (40, "genuine", "fraud")
