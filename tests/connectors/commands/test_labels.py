"""The command `streamsvm labels`: which label of an event is written, and in what form."""

import json
import sys
import time
from types import SimpleNamespace

import pytest

from streamsvm.connectors.commands import labels
from streamsvm.connectors.commands.cli import main
from streamsvm.connectors.labelling.oracles import truth_from_file
from streamsvm.connectors.logs import embedded as local_log
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.records import parquet as parquet_files
from streamsvm.connectors.settings.loading import load

NAMES = '[label]\npositive = "fraud"\nnegative = "genuine"\n'


pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "app.toml"
    path.write_text('[log]\nlabels = "labels"\n')
    (tmp_path / "log").mkdir()
    return path


@pytest.fixture
def export(config, tmp_path, capsys):
    """Write labels to the topic, run the command; return the exit code, the file's text and both outputs."""

    def export(*labels, name="labels.jsonl", partition=0, options=()):
        with LocalLog(tmp_path / "log") as log:
            for label in labels:
                value = label if isinstance(label, bytes) else json.dumps(label).encode()
                log.produce("labels", value, partition=partition)
        path = tmp_path / name
        code = main(["labels", str(config), "--out", str(path), *options])
        out, err = capsys.readouterr()
        return code, path.read_text(errors="replace") if path.exists() else None, out, err

    return export


def test_the_newest_label_of_each_event_is_written(export):
    _, text, out, err = export(
        {"id": "a", "y": 1, "rev": 5, "source": "page:ann"},
        {"id": "b", "y": 1, "rev": 6},
        {"id": "a", "y": 0, "rev": 7, "source": "page:bob", "weight": 2.0},
        {"id": "b", "y": 0, "rev": 5},  # older, although it is later on the topic
        {"id": 3, "y": 0},
        {"id": 3, "y": 1},  # of the same revision, so the later one holds
    )
    found = [json.loads(line) for line in text.splitlines()]
    assert [{name: row[name] for name in row if name != "ts"} for row in found] == [
        {"id": "a", "y": False, "weight": 2.0, "rev": 7, "source": "page:bob", "annotator": "bob", "partition": 0},
        {"id": "b", "y": True, "rev": 6, "partition": 0},
        {"id": 3, "y": True, "rev": 0, "partition": 0},
    ]
    assert all(row["ts"].endswith("Z") for row in found)
    assert out.startswith("wrote 3 labels to ")
    assert err == ""


def test_a_retracted_label_is_left_out_and_a_skip_changes_nothing(export):
    _, text, *_ = export(
        {"id": "a", "y": 1, "rev": 1},
        {"id": "a", "op": "retract", "rev": 2},
        {"id": "b", "y": 1, "rev": 1},
        {"id": "b", "op": "skip", "rev": 2},
        {"id": "c", "op": "ignore", "rev": 1},
        {"id": "d", "op": "retract", "rev": 1},
        {"id": "d", "y": 0, "rev": 2},
    )
    assert [json.loads(line)["id"] for line in text.splitlines()] == ["b", "d"]


def test_partitions_are_separate(export):
    export({"id": "a", "y": 1, "rev": 1}, partition=1)
    _, text, *_ = export({"id": "a", "y": 0, "rev": 2})
    assert sorted(json.loads(line)["y"] for line in text.splitlines()) == [False, True]


@pytest.mark.parametrize("name", ["labels.csv", "labels.jsonl"])
@pytest.mark.parametrize("names", ["", NAMES], ids=["unnamed", "named"])
def test_the_file_serves_as_truth(export, config, tmp_path, name, names):
    config.write_text(config.read_text() + names)
    export({"id": "a", "y": 1}, {"id": "b,\n", "y": 0}, name=name)
    settings = load(config, {})
    truth = truth_from_file(tmp_path / name, settings.label)

    class Shown:
        def __init__(self, id_):
            self.id = id_

    assert [truth(Shown(id_)) for id_ in ("a", "b,\n", "c")] == [True, False, None]
    assert ("fraud" in (tmp_path / name).read_text()) == bool(names)


def test_damaged_records_are_counted(export):
    code, text, _, err = export(b"{", {"id": "a", "y": 1}, {"id": "b", "y": "perhaps"})
    assert (code, len(text.splitlines())) == (0, 1)
    assert err == "streamsvm: passed over 2 damaged records\n"


def test_no_labels_are_an_empty_file(export):
    header = "id,y,weight,rev,source,annotator,ts,partition,predicted,margin,score,reason,asked_at\n"
    assert export(name="labels.csv")[:2] == (0, header)


def test_what_is_wrong_is_said_before_the_work(export, config, capsys):
    code, text, _, err = export(name="labels.txt")
    assert (code, text, "must end with .csv, .jsonl or .parquet" in err) == (2, None, True)
    config.write_text("")
    code, text, _, err = export()
    assert (code, text, "log.labels = ''" in err) == (2, None, True)


# --- what is known beside the label ----------------------------------------------------------------------------------


def rows(text):
    return [json.loads(line) for line in text.splitlines()]


def test_the_history_has_every_answer_in_order(export):
    _, text, out, _ = export(
        {"id": "a", "y": 1, "rev": 5, "source": "page:ann#3f2a", "query_id": "q1"},
        {"id": "b", "op": "skip", "rev": 6, "source": "terminal:bob", "query_id": "q2"},
        {"id": "a", "op": "retract", "rev": 7, "source": "page:ann#3f2a", "query_id": "q1"},
        {"id": "a", "y": 0, "source": "truth"},
        {"id": "c", "op": "ignore"},
        options=["--history"],
    )
    columns = ("id", "op", "y", "rev", "annotator", "query_id")
    assert [tuple(row.get(name) for name in columns) for row in rows(text)] == [
        ("a", "set", True, 5, "ann", "q1"),
        ("b", "skip", None, 6, "bob", "q2"),
        ("a", "retract", None, 7, "ann", "q1"),
        ("a", "set", False, 7, "truth", None),  # without a revision it replaces what holds
        ("c", "ignore", None, 0, None, None),
    ]
    assert out.startswith("wrote 5 answers to ")


def test_a_label_without_any_time_has_none_and_a_tombstone_is_no_label(export, tmp_path, monkeypatch):
    with LocalLog(tmp_path / "log") as log:
        log.produce("labels", None, key=b"a")
    monkeypatch.setattr(local_log, "time", SimpleNamespace(time_ns=lambda: -1, monotonic=time.monotonic))
    code, text, _, err = export({"id": "a", "y": 1}, {"id": "b", "y": 1, "ts": 0})
    assert code == 0
    assert "damaged" not in err
    assert [row.get("ts") for row in rows(text)] == [None, "1970-01-01T00:00:00.000Z"]


def test_a_time_is_the_label_s_own_or_the_record_s(export):
    _, text, *_ = export(
        {"id": "a", "y": 1, "ts": 1767225600.5}, {"id": "b", "y": 1, "ts": "2026-01-01T01:00:00+01:00"}
    )
    assert [row["ts"] for row in rows(text)] == ["2026-01-01T00:00:00.500Z", "2026-01-01T00:00:00.000Z"]


def test_the_prediction_is_the_one_of_the_question_else_the_one_of_the_event(export, config, tmp_path):
    config.write_text(config.read_text() + 'questions = "questions"\n' + NAMES)
    question = {
        "query_id": "q", "id": "a", "x": {}, "event": {}, "margin": -0.5, "score": 0.25, "reason": "boundary",
        "asked_at": 1767225600000, "expires_at": 1, "unusual": {}, "model": {},
    }  # fmt: skip
    with LocalLog(tmp_path / "log") as log:
        for id_ in ("a", "b", "other"):
            said = {"id": id_, "label": "fraud", "score": 0.75, "margin": 1.5}
            log.produce("predictions", json.dumps(said).encode(), partition=0)
        log.produce("predictions", b"{", partition=0)
        log.produce("questions", json.dumps(question).encode(), key=b"q", partition=0)
        log.produce("questions", None, key=b"q", partition=0)
        log.produce("questions", b'{"status": {}}', key=b"status", partition=0)
        log.produce("questions", b"damaged", key=b"r", partition=0)
    _, text, *_ = export(*({"id": id_, "y": "fraud"} for id_ in "abc"))
    columns = ("id", "y", "predicted", "margin", "score", "reason", "asked_at")
    assert [tuple(row.get(name) for name in columns) for row in rows(text)] == [
        ("a", "fraud", "genuine", -0.5, 0.25, "boundary", "2026-01-01T00:00:00.000Z"),
        ("b", "fraud", "fraud", 1.5, 0.75, None, None),
        ("c", "fraud", None, None, None, None, None),
    ]


def test_a_file_that_cannot_be_finished_leaves_the_old_one(export, tmp_path, monkeypatch):
    export({"id": "a", "y": 1})
    before = (tmp_path / "labels.jsonl").read_bytes()

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(labels, "_time", fail)
    assert export({"id": "b", "y": 1})[0] == 1
    assert (tmp_path / "labels.jsonl").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


# --- Parquet ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", ["", NAMES], ids=["unnamed", "named"])
def test_parquet_has_types(export, config, tmp_path, names, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(parquet_files, "GROUP", 2)
    config.write_text(config.read_text() + names)
    code, _, _, err = export(*({"id": i, "y": i % 2, "ts": 1767225600 + i} for i in range(5)), name="labels.parquet")
    assert (code, err) == (0, "")
    table = parquet.read_table(tmp_path / "labels.parquet")
    assert table["id"].to_pylist() == [0, 1, 2, 3, 4]
    assert table["y"].to_pylist()[:2] == (["genuine", "fraud"] if names else [False, True])
    assert table["ts"].to_pylist()[0].isoformat() == "2026-01-01T00:00:00+00:00"
    assert table["margin"].to_pylist() == [None] * 5
    export({"id": "text", "y": 1}, name="labels.parquet")
    assert parquet.read_table(tmp_path / "labels.parquet")["id"].to_pylist() == ["0", "1", "2", "3", "4", "text"]


def test_without_pyarrow_the_message_says_what_to_install(export, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, text, _, err = export({"id": 1, "y": 1}, name="labels.parquet")
    assert (code, text, "pip install 'streamsvm[parquet]'" in err) == (2, None, True)
