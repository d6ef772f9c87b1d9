"""The command `streamsvm labels`: which label of an event is written, and in what form."""

import json

import pytest

from streamsvm.connectors.commands.cli import main
from streamsvm.connectors.labelling.oracles import truth_from_file
from streamsvm.connectors.logs.embedded import LocalLog
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

    def export(*labels, name="labels.jsonl", partition=0):
        with LocalLog(tmp_path / "log") as log:
            for label in labels:
                value = label if isinstance(label, bytes) else json.dumps(label).encode()
                log.produce("labels", value, partition=partition)
        path = tmp_path / name
        code = main(["labels", str(config), "--out", str(path)])
        out, err = capsys.readouterr()
        return code, path.read_text() if path.exists() else None, out, err

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
    assert [json.loads(line) for line in text.splitlines()] == [
        {"id": "a", "y": False, "weight": 2.0, "rev": 7, "source": "page:bob"},
        {"id": "b", "y": True, "rev": 6},
        {"id": 3, "y": True, "rev": 0},
    ]
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
    assert export(name="labels.csv")[:2] == (0, "id,y,weight,rev,source\n")


def test_what_is_wrong_is_said_before_the_work(export, config, capsys):
    code, text, _, err = export(name="labels.txt")
    assert (code, text, "must end with .csv or .jsonl" in err) == (2, None, True)
    config.write_text("")
    code, text, _, err = export()
    assert (code, text, "log.labels = ''" in err) == (2, None, True)
