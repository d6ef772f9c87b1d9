"""The command `streamsvm produce`: what annotators see of a file's rows, and labels that find their events."""

import csv
import errno
import json
from datetime import date, time
from decimal import Decimal

import pytest
from logged import append, read, read_json, write_config

from streamsvm.connectors.logs.embedded import LocalLog
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


# --- labels of events -------------------------------------------------------------------------------------------------


def test_the_configuration_names_the_labels(config, tmp_path, call):
    """They were unknown, and the advice to name the first label as the positive one turned the classes round."""
    config.write_text(config.read_text() + '[label]\npositive = "spam"\nnegative = "ham"\n')
    path = tmp_path / "d.csv"
    path.write_text("a,y\n1,ham\n2,spam\n3,1\n4,\n")
    code, out, err = call("produce", path, "--config", config, "--label", "y")
    assert (code, err) == (0, [])
    assert out[0] == "1 record without a label (in its place: '')"
    assert [event["y"] for event in read_json(tmp_path / "log", "events")] == [False, True, True, None]
    path.write_text("a,y\n1,ham\n2,eggs\n")
    code, _, (err,) = call("produce", path, "--config", config, "--label", "y")
    assert (code, "line 3, column 'y': label 'eggs' is not one of [label]'s 'spam'/'ham'" in err) == (1, True)


def test_events_are_not_written_to_a_topic_of_another_format(config, tmp_path, call):
    config.write_text(f'[log]\nformat = "float32"\n{config.read_text()}')
    path = tmp_path / "d.csv"
    path.write_text("a\n1\n")
    code, _, (err,) = call("produce", path, "--config", config)
    assert (code, "log.format = 'float32': produce writes JSON" in err) == (2, True)
    assert call("produce", path, "--config", config, "--topic", "others")[0] == 0


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device", "log"), KeyboardInterrupt()])
@pytest.mark.parametrize("kind", ["events", "labels"])
def test_after_an_interruption_the_rest_can_be_written(config, tmp_path, call, monkeypatch, error, kind):
    """A second try wrote the records twice."""
    path = tmp_path / "d.jsonl"
    path.write_text("".join(f'{{"id": {i}, "x": [1], "y": 1}}\n' for i in range(7)))
    command = ["produce", path, "--dir", tmp_path / "log", *(["--labels"] if kind == "labels" else [])]
    append(tmp_path / "log", [b"{}"], kind)

    numbers, produce = iter(range(10)), LocalLog.produce

    def interrupted(log, topic, value, **options):
        if next(numbers) in (3, 5):
            raise error
        produce(log, topic, value, **options)

    monkeypatch.setattr(LocalLog, "produce", interrupted)
    for given, n_written in ([], 3), (["--skip", 3], 4):
        code, _, err = call(*command, *given)
        assert code != 0
        assert any(f"--skip {n_written} writes the others" in line for line in err), err
    assert call(*command, "--skip", 4)[0] == 0
    assert [value.get("id") for value in read_json(tmp_path / "log", kind)] == [None, *range(7)]


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
        ("id,y,partition\n77,1,2\n", "topic 'events' has no partition 2"),
        ("id,y,partition\n7,1,-1\n", "partition must be a whole number, got -1"),
    ],
)
def test_a_wrong_label_is_refused_before_anything_is_written(labelled, tmp_path, call, text, said):
    code, out, (err,) = produce_labels(call, labelled, text)
    assert (code, out, said in err) == (1, [], True), err
    assert read(tmp_path / "log", "labels") == []


def test_a_file_of_labels_tells_all_its_mistakes(labelled, tmp_path, call):
    code, _, err = produce_labels(call, labelled, "id,y,rev\n7,x,\n8,1,y\n9\n10,1,\n11,,\n")
    places = [line.removeprefix(f"streamsvm: {tmp_path / 'labels.csv'}, ").split(":")[0] for line in err]
    assert (code, places) == (1, ["line 2", "line 3, column 'rev'", "line 4", "line 6"])
    code, _, err = produce_labels(call, labelled, "id,y\n77,1\n7,1\n78,0\n")
    assert (code, ["has no event '77'" in err[0], "line 4" in err[1]], len(err)) == (1, [True, True], 2)
    code, _, (err,) = produce_labels(call, labelled, '{"id": 7, "y": 1, "y": 0}', "labels.jsonl")
    assert (code, "'y' appears more than once" in err) == (1, True)


@pytest.mark.parametrize("text", ['{"id": 7, "y": 1}\n', "id,y\n7,1\n"])
def test_files_of_labels_may_begin_with_a_byte_order_mark(labelled, call, text):
    name = "labels.jsonl" if text.startswith("{") else "labels.csv"
    assert produce_labels(call, labelled, f"\ufeff{text}", name)[0] == 0


def test_missing_values_of_a_table_are_missing_fields(labelled, tmp_path, call):
    assert produce_labels(call, labelled, "id,y,weight,rev,ts\n7,1,NaN,NA, \n")[0] == 0
    assert read_json(tmp_path / "log", "labels") == [{"id": 7, "op": "set", "y": True}]


def test_a_third_label_in_a_file_of_labels_is_a_mistake(labelled, call):
    path = labelled.parent / "checked.csv"
    path.write_text("id,y\n7,bad\n8,fine\n9,Fine\n")
    command = ("produce", path, "--config", labelled, "--labels", "--positive", "bad")
    code, _, (err,) = call(*command)
    assert (code, "line 4: label 'Fine' is a third one, beside 'bad' and 'fine'" in err) == (1, True)
    assert call(*command, "--rest")[0] == 0


def test_names_come_before_numbers_in_files_of_labels(labelled, tmp_path, call):
    labelled.write_text(labelled.read_text().replace('"fraud"', '"2"').replace('"genuine"', '"1"'))
    assert produce_labels(call, labelled, "id,y\n7,1\n8,2\n")[0] == 0
    codec = load(labelled, {}).codec()
    found = {label.id: label.y for label in map(codec.decode_label, read(tmp_path / "log", "labels"))}
    assert found == {7: False, 8: True}


def write_parquet(path, **columns):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    names = [name.removesuffix("_") for name in columns]
    parquet.write_table(pyarrow.table(list(columns.values()), names=names), path)
    return path


def test_parquet_has_other_types(labelled, tmp_path, call):
    path = tmp_path / "labels.parquet"
    write_parquet(path, id=[7, 8], y=[1.0, 0.0], weight=[Decimal("2.5"), None], ts=[date(2026, 1, 2), None])
    assert call("produce", path, "--config", labelled, "--labels")[0] == 0
    found = {value["id"]: value for value in read_json(tmp_path / "log", "labels")}
    assert found == {
        7: {"id": 7, "op": "set", "y": 1.0, "weight": 2.5, "ts": "2026-01-02"}, 8: {"id": 8, "op": "set", "y": 0.0}
    }  # fmt: skip


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"id": [7], "y": [float("nan")]}, "row 1: no 'y'"),
        ({"id": [7], "y": [{"a": 1}]}, "row 1: y must be a text or a number, got {'a': 1}"),
        ({"id": [7], "y": [b"1"]}, "row 1: y must be a text or a number"),
        ({"id": [7], "y": [date(2026, 1, 2)]}, "row 1: y must be true/false"),
        ({"id": [[7]], "y": [1]}, "row 1: id must be a text or a number"),
        ({"id": [7], "y": [1], "ts": [time(1)]}, "row 1: ts must be a text or a number"),
        ({"id": [7], "y": [1], "y_": [0]}, "column 'y' appears more than once"),
    ],
    ids=str,
)
def test_wrong_parquet_is_refused(labelled, tmp_path, call, columns, said):
    code, _, (err,) = call(
        "produce", write_parquet(tmp_path / "l.parquet", **columns), "--config", labelled, "--labels"
    )
    assert (code, said in err) == (1, True), err


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
    assert (code, err) == (2, ["streamsvm: --text goes with events only"])
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


# --- raw records ------------------------------------------------------------------------------------------------------

RAW_MAILS = "id,body,shot,curve,sender,sent,spam\na,Hi you,u.png,1 2,ann,2026-01-05,1\nb,,,3 4,,,\n"
FLAT = '[features]\nraw = true\nid = "id"\nlabel = "spam"\n[label]\npositive = "1"\nnegative = "0"\n'


@pytest.fixture
def raw_mails(tmp_path):
    path = tmp_path / "mails.csv"
    path.write_text(RAW_MAILS)
    return path


def test_raw_records_need_no_configuration(raw_mails, tmp_path, call):
    options = (*("--id", "id", "--label", "spam", "--time", "sent"), *SHOWN[2:])
    code, out, err = call("produce", raw_mails, "--raw", "--dir", tmp_path / "log", *options)
    assert (code, err, out[0]) == (0, [], "1 record without a label (in its place: '')")
    first, second = read_json(tmp_path / "log", "events")
    shown = {"text": "Hi you", "image": "u.png", "series": [1, 2], "sender": "ann"}
    x = {"body": "Hi you", "curve": [1, 2], "sent": "2026-01-05"}  # a text is learned; an image's address is not
    assert first == {"id": "a", "y": True, "ts": "2026-01-05", "x": x, **shown}
    assert (second["y"], second["x"], "ts" in second) == (None, {"body": "", "curve": [3, 4], "sent": ""}, False)


def test_the_configuration_names_the_fields_of_flat_records(raw_mails, config, tmp_path, call):
    config.write_text(config.read_text() + FLAT)
    assert call("produce", raw_mails, "--config", config)[0] == 0
    row = {"id": "a", "body": "Hi you", "shot": "u.png", "curve": "1 2", "sender": "ann", "sent": "2026-01-05"}
    assert read_json(tmp_path / "log", "events")[0] == row | {"spam": "1"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--label", "sender"), "--label sender: the configuration decides that, and has 'spam'; leave the option out"),
        (("--positive", "0"), "--positive 0: the configuration decides that, and has '1'"),
        (("--text", "body"), "--text, --image, --series and --show: records stay as they are"),
    ],
)
def test_options_cannot_contradict_the_configuration(raw_mails, config, tmp_path, call, options, said):
    config.write_text(config.read_text() + FLAT)
    code, out, (err,) = call("produce", raw_mails, "--config", config, *options)
    assert (code, out, said in err) == (2, [], True), err


def test_events_without_features_are_warned_of(tmp_path, call):
    path = tmp_path / "texts.csv"
    path.write_text("body\nHi\nHo\n")
    code, _, err = call("produce", path, "--dir", tmp_path / "log", "--text", "body")
    said = "2 records of 2 without features, which a model cannot tell apart; with --raw, texts are features"
    assert (code, err) == (0, [f"streamsvm: {said}"])
    assert call("produce", path, "--dir", tmp_path / "log", "--text", "body", "--raw")[2] == []


def test_ids_that_come_again_are_counted(config, tmp_path, call):
    path = tmp_path / "users.csv"
    path.write_text("user,n\n-1,1\n-2,2\nb,3\n-1,4\nb,5\nb,6\n")
    said = "streamsvm: 3 records of 6 with the id of an earlier one, whose place in the model the later one takes; use"
    config.write_text(config.read_text() + '[features]\nid = "user"\nraw = true\n')
    for options in (("--id", "user"), ("--id", "user", "--raw"), ("--config", config)):
        where = () if "--config" in options else ("--dir", tmp_path / "log")
        code, out, err = call("produce", path, *where, *options)
        assert (code, out[0].startswith("appended 6 records"), err) == (0, True, [f"{said} each id once"])
    assert call("produce", path, "--dir", tmp_path / "log", "--raw")[2] == []


def test_a_time_belongs_to_raw_records(mails, tmp_path, call):
    code, _, (err,) = call("produce", mails, "--dir", tmp_path / "log", "--time", "length")
    assert (code, "--time goes with raw records: --raw, or [features] raw = true" in err) == (2, True)
