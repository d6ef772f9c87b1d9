"""A line of JSON for each event, whatever is in it."""

import io
import json
import logging
import math
import subprocess
import sys
import threading
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from streamsvm.connectors.runtime.log_output import set_up_logging
from streamsvm.estimators.learner.advice import StreamWarning

logger = logging.getLogger("streamsvm.test")


@pytest.fixture
def log_as(monkeypatch):
    """Set logging up as a daemon does, without pytest's own handlers; gives what is written."""
    level = logging.root.level

    def log_as(format):
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        monkeypatch.setattr(logging.root, "handlers", [])
        monkeypatch.setattr(sys, "excepthook", sys.excepthook)
        monkeypatch.setattr(threading, "excepthook", threading.excepthook)
        monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
        set_up_logging(format)
        return sys.stderr

    yield log_as
    logging.root.setLevel(level)
    logging.captureWarnings(False)


def no_constant(name):
    raise AssertionError(f"{name} is no JSON")


def events(written):
    return [json.loads(line, parse_constant=no_constant) for line in written.getvalue().splitlines()]


def test_text(log_as):
    written = log_as("text")
    logger.info("%d records", 3)
    logger.debug("unseen")
    assert written.getvalue().endswith(" INFO streamsvm.test: 3 records\n")


def test_an_event_is_one_line_of_json(log_as):
    written = log_as("json")
    logger.warning("two\nlines, \u2028 and %s", "ü\udc80")
    logger.debug("unseen")
    (event,) = events(written)
    assert list(event) == ["time", "level", "logger", "message"]
    assert event["level"] == "WARNING"
    assert event["logger"] == "streamsvm.test"
    assert event["message"] == "two\nlines, \u2028 and ü\udc80"
    time = datetime.fromisoformat(event["time"])
    assert time.tzinfo == UTC
    assert abs(datetime.now(UTC) - time) < timedelta(minutes=1)


def test_an_error_that_ends_a_thread_is_one_line_of_json(log_as):
    written = log_as("json")
    thread = threading.Thread(target=math.sqrt, args=(-1,), name="helper")
    thread.start()
    thread.join()
    (event,) = events(written)
    assert (event["level"], event["message"]) == ("CRITICAL", "an error has ended thread 'helper'")
    assert event["exception"].endswith("ValueError: math domain error")


def test_an_exception_is_a_field(log_as):
    written = log_as("json")
    try:
        math.sqrt(-1)
    except ValueError:
        logger.exception("no root")
    (event,) = events(written)
    assert event["message"] == "no root"
    assert event["exception"].startswith("Traceback")
    assert event["exception"].endswith("ValueError: math domain error")


@pytest.mark.parametrize("format", ["text", "json"])
@pytest.mark.filterwarnings("always")
def test_what_a_model_warns_of_is_one_line(log_as, format):
    written = log_as(format)
    warnings.warn("the features have very different scales", StreamWarning, stacklevel=1)
    (line,) = written.getvalue().splitlines()
    if format == "text":
        assert line.endswith(" WARNING streamsvm: the features have very different scales")
    else:
        (event,) = events(written)
        assert (event["level"], event["message"]) == ("WARNING", "the features have very different scales")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (3, 3),
        (True, True),
        (None, None),
        ("x", "x"),
        (0.5, 0.5),
        (math.nan, None),
        (-math.inf, None),
        (np.int64(3), 3),
        (np.float32(math.nan), None),
        (np.bool_(True), True),
        (np.array([1.0, math.inf]), [1.0, None]),
        ((1, {2: math.nan}), [1, {"2": None}]),
        (Path("a/b"), "a/b"),
        (b"x", "b'x'"),
        (1j, "1j"),
    ],
)
def test_extra_fields(log_as, value, said):
    written = log_as("json")
    logger.info("saved", extra={"field": value})
    assert events(written)[0]["field"] == said


def test_extra_fields_do_not_replace_those_of_every_event(log_as):
    written = log_as("json")
    logger.info("saved", extra={"time": 3, "level": "high", "partition": 7})
    (event,) = events(written)
    assert list(event) == ["time", "level", "logger", "message", "partition"]
    assert (event["level"], event["partition"]) == ("INFO", 7)


@pytest.mark.long
def test_an_error_of_ours_is_an_object_too():
    script = (
        "import warnings; from streamsvm.connectors.runtime.log_output import set_up_logging; set_up_logging('json'); "
    )
    script += "warnings.warn('careful'); 1 / 0"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    warning, fatal = map(json.loads, answer.stderr.splitlines())
    assert answer.returncode == 1
    assert "careful" in warning["message"]
    assert (fatal["level"], fatal["message"]) == ("CRITICAL", "an error has ended the process")
    assert "ZeroDivisionError" in fatal["exception"]
