"""The doctor."""

import re
import time

import pytest
from logged import append, some_events

from streamsvm.connectors.commands.doctor import machine
from streamsvm.connectors.commands.doctor.log import check_log
from streamsvm.connectors.commands.doctor.state import check_state
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.trainer import trainer as daemon


@pytest.fixture(autouse=True)
def _no_process_of_the_doctors(request, monkeypatch):
    """Which takes seconds each time, and is wanted once."""
    if "healthy" not in request.node.name and "believes" not in request.node.name:
        monkeypatch.setattr(machine, "_seconds_to_start", lambda _: 1.0)


@pytest.mark.long
def test_doctor_of_a_healthy_app(tmp_path, config, call):
    append(tmp_path / "log", some_events(100))
    daemon.run(load(config, {}))
    code, out, err = call("doctor", config)
    assert (code, err) == (0, [])
    text = "\n".join(out)
    assert "checkpoint 3 of p0 is readable" in text
    assert "group 'streamsvm' is 0 records behind" in text
    assert "the times of 100 records agree with this clock" in text
    assert re.search(r"has all compiled code; a process is ready after \d+\.\d seconds", text)
    assert "problem" not in text


def test_doctor_without_a_configuration(call):
    code, out, _ = call("doctor")
    assert code == 0
    assert out[0].startswith("ok       python: Python 3.")
    assert "compile cache" in out[1]


def test_doctor_tells_what_is_wrong_with_the_configuration(config, call):
    config.write_text("[model]\nC = 0\nkernal = 'rbf'\n")
    code, out, err = call("doctor", config)
    assert code == 2
    assert (len(out), len(err)) == (2, 2)


def findings(settings, check):
    return [(finding.level, finding.text) for finding in check(settings)]


def test_doctor_finds_what_is_wrong_with_the_state(tmp_path, config):
    append(tmp_path / "log", some_events(100))
    daemon.run(load(config, {}))
    assert findings(load(config, {}, ["model.C=1"]), check_state)[-1] == (
        "problem",
        f"{tmp_path / 'state' / 'p0'}: the checkpoint was written with model.C = 10.0, the configuration says 1.0",
    )
    newest, *older = sorted((tmp_path / "state" / "p0").glob("checkpoint-*"), reverse=True)
    newest.write_bytes(newest.read_bytes()[:-1])
    level, text = findings(load(config, {}), check_state)[-1]
    assert (level, text.endswith("old, but it is not the newest")) == ("warning", True)
    for path in older:
        path.write_bytes(b"")
    level, text = findings(load(config, {}), check_state)[-1]
    assert (level, "none of 3 checkpoints can be read" in text) == ("problem", True)


def test_doctor_finds_what_is_wrong_with_the_records(tmp_path, config, monkeypatch):
    settings = load(config, {}, ["log.labels=labels"])
    with LocalLog(tmp_path / "log") as log:
        for name in ("events", "labels"):
            log.create(name, 2)
        log.produce("events", b'{"id": 1, "x": {"a": 1}, "ts": 1}', key=b"k", partition=0)
        log.produce("labels", b'{"id": 1, "y": 1}', key=b"k", partition=1)
        log.produce("labels", b'{"id": 1, "y": 1}', partition=1)
        log.produce("labels", b"{", key=b"other", partition=1)
        log.produce("dlq", b"{")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 1000)
    found = findings(settings, check_log)
    said = [(level, text.split(":")[0]) for level, text in found if level != "ok"]
    assert said == [
        ("warning", "1 dead letter not put back yet"),
        ("warning", "1 record of 4 that a trainer refuses, the first with not-json"),
        ("warning", "4 records of 4 from the future, up to 1,000 seconds"),
        (
            "warning",
            "1 record of 4 with a ts that is ignored, because it is more than join.max_skew_seconds from the record's "
            "own time",
        ),
        ("problem", "1 of 3 labels without a key"),
        ("problem", "1 of 3 labels in another partition than events with the same key"),
        ("warning", "1 of 1 record of topic 'events' are not where the log's own partitioner puts their keys"),
        ("warning", "1 of 2 records of topic 'labels' are not where the log's own partitioner puts their keys"),
    ]


def test_doctor_finds_ids_that_never_meet(tmp_path, config, caplog):
    settings = load(config, {}, ["log.labels=labels"])
    append(tmp_path / "log", [b'{"id": 7, "x": {"a": 1}}', b"{"])
    append(tmp_path / "log", [b'{"id": 7, "y": 1}', b"{"], "labels")
    assert not [text for _, text in findings(settings, check_log) if "different ids" in text]
    append(tmp_path / "log", [b'{"id": "7", "y": 1}'], "labels")
    (found,) = [(level, text) for level, text in findings(settings, check_log) if "different ids" in text]
    assert found[0] == "problem"
    assert found[1].startswith("1 of 3 labels with an id such as '7'")
    assert not caplog.records


@pytest.mark.long
def test_doctor_believes_no_files_about_compiled_code(config, tmp_path, monkeypatch):
    """They may be of another processor, or not all that a process needs."""
    settings = load(config, {})
    monkeypatch.setattr(machine, "cache_state", lambda: ("somewhere", True))
    monkeypatch.setattr(machine, "_WARM_SECONDS", 3)  # enough to import the engine, too little to compile it
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "empty"))
    ((level, text),) = findings(settings, machine.compile_cache)
    assert (level, "the first process compiles" in text) == ("warning", True)


def test_doctor_of_a_format_that_cannot_be_read(tmp_path, config, call):
    append(tmp_path / "log", some_events(1))
    code, out, err = call("doctor", config, "--set", "log.format=avro")
    assert code == 2
    expected = f"log.format = 'avro': {tmp_path / 'schemas'}: there is no schema file, ID.avsc, in this folder"
    assert any(expected in line for line in (*out, *err))


def test_doctor_without_a_log(tmp_path, config, call):
    (tmp_path / "log").rmdir()
    code, out, _ = call("doctor", config)
    assert code == 1
    assert out[-2:] == [
        f"problem  log: log.dir = {str(tmp_path / 'log')!r}: there is no such folder. Without a [kafka] section, the "
        "log is a folder, which `streamsvm produce` creates",
        "         correct log.dir, or add a [kafka] section",
    ]


def test_doctor_of_a_damaged_log(tmp_path, config, call):
    append(tmp_path / "log", some_events(10))
    segment = next((tmp_path / "log" / "events" / "0").glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[100] ^= 1
    segment.write_bytes(data)
    code, out, _ = call("doctor", config)
    assert code == 1
    assert segment.name in out[-1]
