"""The command line: what it prints, where it prints it, and the exit codes."""

import argparse
import errno
import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numba
import pytest
from logged import read, write_config

import streamsvm
from streamsvm.connectors.commands import cli
from streamsvm.connectors.commands.cli import main
from streamsvm.connectors.commands.demos import digits
from streamsvm.connectors.commands.shared import compilation
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.report import charts
from streamsvm.connectors.report import page as page_of_reports
from streamsvm.connectors.runtime.folders import lock_folder
from streamsvm.connectors.trainer.state import models
from streamsvm.connectors.trainer.state.state import State


def write_csv(path, n=100, last="1,2,1"):
    rows = [f"{i % 7},{i % 5},{int(i % 7 > 3)}" for i in range(n - 1)]
    path.write_text("\n".join(["a,b,y", *rows, last]) + "\n")
    return path


# --- produce ----------------------------------------------------------------------------------------------------------


def test_produce_into_a_folder(tmp_path, call):
    path = write_csv(tmp_path / "d.csv")
    code, out, err = call("produce", path, "--dir", tmp_path / "log", "--topic", "points", "--label", "y")
    assert (code, err) == (0, [])
    assert out == [f"appended 100 records from {path} to topic points of {tmp_path / 'log'}, which now has 100"]
    values = read(tmp_path / "log", "points")
    assert len(values) == 100
    assert json.loads(values[1].value) == {"id": "d:3", "y": False, "x": {"a": 1.0, "b": 1.0}}


def test_produce_where_the_configuration_says(tmp_path, config, call):
    config.write_text('[log]\ndir = "elsewhere"\ntopic = "points"\n')
    assert call("produce", write_csv(tmp_path / "d.csv"), "--config", config)[0] == 0
    assert len(read(tmp_path / "elsewhere", "points")) == 100


def test_a_bad_line_leaves_the_topic_as_it_was(tmp_path, call):
    path = write_csv(tmp_path / "d.csv", last="1,x,1")
    code, out, err = call("produce", path, "--dir", tmp_path / "log", "--label", "y")
    assert (code, out) == (1, [])
    problem = f"{path}, line 101, column 'b': 'x' is not a finite number"
    hint = (
        "with --show b, annotators see the column, and the model does not learn it; --raw takes texts, blanks and times"
    )
    assert err == [f"streamsvm: {problem}; {hint} as they are"]
    assert not (tmp_path / "log").exists()


def test_more_than_two_labels_ask_for_the_positive_one(tmp_path, call):
    path = write_csv(tmp_path / "d.csv", last="1,2,3")
    code, _, err = call("produce", path, "--dir", tmp_path / "log", "--label", "y")
    assert code == 1
    hint = "for more than two classes, list them in [label] classes and use --config"
    assert f"--positive LABEL names the positive one; {hint}" in err[0]
    code, _, err = call("produce", path, "--dir", tmp_path / "log", "--label", "y", "--positive", 3)
    assert (code, len(err), hint in err[0]) == (1, 11, True)
    assert call("produce", path, "--dir", tmp_path / "log", "--label", "y", "--positive", 3, "--rest")[0] == 0
    assert [json.loads(record.value)["y"] for record in read(tmp_path / "log")] == [False] * 99 + [True]


@pytest.mark.parametrize("options", [(), ("--raw",), ("--labels",)])
def test_a_folder_is_no_file(tmp_path, call, options):
    code, _, err = call("produce", tmp_path, "--dir", tmp_path / "log", *options)
    assert (code, err) == (1, [f"streamsvm: {tmp_path}: this is a folder; name one of its files"])


@pytest.mark.parametrize("name", ["none.csv", "d.unknown"])
def test_a_file_that_cannot_be_read_is_one_line(tmp_path, call, name):
    (tmp_path / "d.unknown").touch()
    code, _, err = call("produce", tmp_path / name, "--dir", tmp_path / "log")
    assert (code, len(err)) == (1, 1)
    assert name in err[0]
    assert "Errno" not in err[0]


# --- run --------------------------------------------------------------------------------------------------------------


def test_run_ends_with_a_table_and_the_digest(tmp_path, config, call):
    call("produce", write_csv(tmp_path / "d.csv"), "--config", config, "--label", "y")
    code, out, _ = call("run", config)
    assert code == 0
    assert out[0].split()[:3] == ["stream", "records", "error"]
    assert out[1].split()[:2] == ["events-0", "100"]
    digest = re.fullmatch(r"model digest of events-0: ([0-9a-f]{64})", out[-1]).group(1)
    assert out[1].split()[-1] == digest[:12]
    assert call("run", config)[1] == out
    assert len(read(tmp_path / "log", "predictions")) == 100


def test_run_with_a_model_for_each_key_ends_without_loading_them(tmp_path, config, call, monkeypatch):
    with LocalLog(tmp_path / "log") as log:
        for i in range(60):
            value = json.dumps({"id": i, "x": {"a": i % 7, "b": i % 5}, "y": i % 2})
            log.produce("events", value.encode(), key=b"key-%d" % (i % 6))
    models_read = []
    read_model = models.ModelKind.read

    def counted(*given, **named):
        models_read.append(given)
        return read_model(*given, **named)

    monkeypatch.setattr(models.ModelKind, "read", counted)
    flags = ("--set", "daemon.per=key", "--set", "daemon.max_models=1")
    code, out, _ = call("run", config, *flags)
    assert code == 0
    assert out[1].endswith("  6 models")
    assert models_read
    models_read.clear()
    assert call("run", config, *flags)[1][1].endswith("  6 models")  # there is nothing to learn any more
    assert not models_read


def test_set_overrides_the_file(tmp_path, config, call):
    call("produce", write_csv(tmp_path / "d.csv"), "--config", config, "--label", "y")
    call("run", config)
    code, _, err = call("run", config, "--set", "model.C=1")
    assert code == 2
    assert "model.C = 10.0, the configuration says 1.0" in err[0]
    assert call("run", config, "--set", "model.C=1", "--set", "daemon.state_dir=other")[0] == 0


def test_check_reports_every_problem(config, call, monkeypatch):
    config.write_text("[model]\nC = 0\nkernal = 'rbf'\n")
    monkeypatch.setenv("STREAMSVM_DAEMON_KEEP", "none")
    code, out, err = call("run", config, "--check", "--set", "model.gamma=-1")
    assert (code, out, len(err)) == (2, [], 4)
    assert all(line.startswith("streamsvm: ") for line in err)


def test_a_long_value_is_shortened(config, call):
    long = "9" * 400
    config.write_text(f"{config.read_text()}\n[http]\nport = {long}\n")
    _, _, err = call("run", config, "--check", "--set", f"model.budget={long}", "--set", f"model.C={long}")
    assert len(err) == 3
    assert all("999..." in line and len(line) < 250 for line in err)


@pytest.mark.parametrize(
    ("command", "missing"),
    [("score", ["log.model = ''"]), ("label", ["log.questions = ''"]), ("label --train", ["log.questions", "follow"])],
)
def test_what_only_one_command_needs_is_refused_before_anything_compiles(config, call, monkeypatch, command, missing):
    monkeypatch.setattr(streamsvm, "warmup", lambda *_, **__: pytest.fail("compiles"))
    for more in ([], ["--check"]):
        code, out, err = call(*command.split(), config, "--set", "model.C=-1", *more)
        assert (code, out, len(err)) == (2, [], 1 + len(missing))
        assert all(text in line for text, line in zip(missing, err[1:], strict=True))


@pytest.mark.parametrize("command", ["run", "score", "label"])
def test_check_of_each_process(tmp_path, config, call, command):
    needs = ("--set", "log.model=m", "--set", "log.questions=q", "--set", "log.labels=l")
    assert call(command, config, "--check", *needs) == (0, [f"{config}: no problems"], [])
    assert not list((tmp_path / "log").iterdir())
    assert not (tmp_path / "state").exists()


def test_a_check_of_a_trainer_refuses_settings_that_its_state_does_not_have(tmp_path, config, call):
    call("produce", write_csv(tmp_path / "d.csv"), "--config", config, "--label", "y")
    assert call("run", config)[0] == 0
    assert call("run", config, "--check")[:2] == (0, [f"{config}: no problems"])
    code, out, err = call("run", config, "--check", "--set", "model.C=1")
    assert (code, out) == (2, [])
    assert (err, 2) == (call("run", config, "--set", "model.C=1")[2], code)
    assert any("the checkpoint was written with model.C = 10.0, the configuration says 1.0" in line for line in err)


@pytest.mark.parametrize("content", ["[model\n", None])
def test_a_configuration_that_cannot_be_read_is_one_line(tmp_path, call, content):
    path = tmp_path / "bad.toml"
    if content:
        path.write_text(content)
    code, _, err = call("run", path)
    assert (code, len([line for line in err if str(path) in line])) == (2, 1)


def test_a_damaged_log_is_exit_code_4(tmp_path, config, call):
    call("produce", write_csv(tmp_path / "d.csv"), "--config", config, "--label", "y")
    segment = next((tmp_path / "log" / "events" / "0").glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[200] ^= 1
    segment.write_bytes(data)
    code, _, err = call("run", config)
    assert code == 4
    assert segment.name in err[-1]


def test_an_empty_log_is_no_error(config, call):
    code, out, _ = call("run", config)
    assert code == 0
    assert out[0].startswith("no event of topic 'events'")


def test_a_full_disk_is_exit_code_75_and_names_the_file(tmp_path, config, call, monkeypatch):
    call("produce", write_csv(tmp_path / "d.csv"), "--config", config, "--label", "y")

    def fsync(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)
    code, _, err = call("run", config)
    assert code == 75
    assert ": No space left on device" in err[-1]
    assert str(tmp_path) in err[-1]


@pytest.mark.long
def test_with_logs_of_json_the_last_line_is_json(tmp_path, config):
    write_config(tmp_path, log_format="json")
    with LocalLog(tmp_path / "log") as log:
        log.produce("events", b"poison")
        log.produce("events", b'{"id": 1, "x": {"a": 1}}')
    script = "import sys; from streamsvm.connectors.commands.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", script, "run", str(config), "--set", "model.scaling=none"]
    (tmp_path / "state").write_text("a file where the folder should be")
    answer = subprocess.run(command, capture_output=True, text=True)
    lines = [json.loads(line) for line in answer.stderr.splitlines()]
    assert answer.returncode == 1
    assert (lines[-1]["level"], lines[-1]["exit_code"]) == ("CRITICAL", 1)
    assert str(tmp_path / "state") in lines[-1]["message"]


def test_a_configuration_that_cannot_be_read_is_told_in_json_if_the_environment_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("STREAMSVM_DAEMON_LOG_FORMAT", "json")
    for owner, name in ((logging.root, "handlers"), (sys, "excepthook"), (threading, "excepthook")):
        monkeypatch.setattr(owner, name, [] if name == "handlers" else getattr(owner, name))
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    level = logging.root.level
    try:
        assert main(["run", str(tmp_path / "none.toml")]) == 2
    finally:
        logging.root.setLevel(level)
        logging.captureWarnings(False)
    line = json.loads(capsys.readouterr().err)
    assert (line["level"], line["exit_code"], "none.toml" in line["message"]) == ("CRITICAL", 2, True)


def test_a_busy_state_is_exit_code_1(tmp_path, config, call):
    with lock_folder(tmp_path / "state", "a test"):
        code, _, err = call("run", config)
    assert code == 1
    assert "in use by process" in err[-1]


def test_a_fault_of_ours_keeps_its_traceback(config, monkeypatch):
    monkeypatch.setattr(State, "new", lambda *_: 1 / 0)
    with LocalLog(config.parent / "log") as log:
        log.produce("events", b'{"id": 1, "x": {"a": 1}}')
    with pytest.raises(ZeroDivisionError):
        main(["run", str(config)])


# --- dlq --------------------------------------------------------------------------------------------------------------


def test_dlq_lists_what_was_refused(tmp_path, config, call):
    with LocalLog(tmp_path / "log") as log:
        for value in (b'{"id": 1, "x": {"a": 1}, "y": 1}', b"{" * 200, b'{"id": 2, "x": {"a": 1}, "y": 7}'):
            log.produce("events", value)
    assert call("run", config)[0] == 0
    code, out, _ = call("dlq", config)
    assert (code, len(out)) == (0, 2)
    assert out[0].startswith("0\tevents-0-1\tnot-json: ")
    assert (
        out[1]
        == '1\tevents-0-2\tbad-label: y must be true/false, 0/1, -1/+1, got 7\tb\'{"id": 2, "x": {"a": 1}, "y": 7}\''
    )
    assert max(map(len, out)) < 200
    code, out, err = call("dlq", config, "--reason", "bad-id")
    assert (code, out) == (0, [])
    assert err == ["topic 'dlq' has no dead letter that was refused for 'bad-id'; there are 1 not-json, 1 bad-label"]


# --- demo, warmup and the rest ----------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_demo_shows_its_streams_and_goes_on(tmp_path, call, monkeypatch):
    monkeypatch.setattr(digits, "ANSWERS", 40)
    code, out, err = call("demo", "--dir", tmp_path, "--records", 400)
    assert (code, err) == (0, [])
    rows = {line.split()[0]: line.split() for line in out}
    assert rows["bananas"][1:2] == rows["phishing"][1:2] == ["400"]
    assert float(rows["bananas"][2].rstrip("%")) < 30
    assert (rows["orders"][1], float(rows["orders"][2].rstrip("%")) < 30) == ("400", True)
    kinds = {"ordered": "time", "price": "number", "customer.country": "category", "remark": "text"}
    assert {name: rows[name][1] for name in kinds} == kinds
    assert any("kill -9" in line for line in out)
    for name in ("bananas", "phishing", "orders"):
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
        assert str(tmp_path / f"{name}.png") in "\n".join(out)
        assert len(read(tmp_path / "log", name)) == len(read(tmp_path / "log", f"{name}-predictions")) == 400

    page = tmp_path / "labelling" / "report.html"
    assert out[-1] == f"report of the labelling, for your browser: {page.as_uri()}"
    assert re.search(r"\d+ of the last \d+ random questions", page.read_text())
    assert (tmp_path / "bananas.html").stat().st_size > 10_000

    def results(lines):
        return [line for line in lines if line.startswith(("bananas", "phishing", "orders", "report", "It gave"))]

    assert len(results(out)) == 11
    monkeypatch.setattr(charts, "draw", lambda *_: None)  # what was drawn once need not be drawn again and again
    monkeypatch.setattr(page_of_reports, "write_report", lambda *_: None)
    assert results(call("demo", "--dir", tmp_path, "--records", 400)[1]) == results(out)
    assert len(read(tmp_path / "log", "bananas-predictions")) == 400
    assert call("run", tmp_path / "bananas.toml")[0] == 0

    code, out, _ = call("demo", "--dir", tmp_path, "--records", 500)
    assert next(line for line in out if line.startswith("bananas")).split()[1] == "500"


def test_warmup_says_how_long_it_took(call):
    code, out, _ = call("warmup")
    assert code == 0
    assert re.fullmatch(r"ready after \d+\.\d seconds", out[0])


def test_a_command_says_at_once_that_it_compiles_and_then_how_far_it_is(call, monkeypatch):
    def warmup():
        for _ in range(3):
            numba.njit(lambda: 0)()
        return 1.0

    monkeypatch.setattr(streamsvm, "warmup", warmup)
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(compilation, "_SECONDS", 0.0)
    _, _, err = call("warmup")
    assert "compiles code for its first use: up to two minutes of CPU time" in err[0]
    assert err[1:] == ["streamsvm: compiled 1 function so far", "streamsvm: compiled 2 functions so far"]


def test_a_level_that_the_processor_lacks_is_one_line(config):
    script = "import sys; from streamsvm.connectors.commands.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", script, "run", str(config)]
    answer = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"STREAMSVM_CPU": "pdp-11"})
    assert answer.returncode == 2
    assert re.fullmatch(
        r"streamsvm: STREAMSVM_CPU=pdp-11 is none of this processor's levels: .* or native\n", answer.stderr
    )


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["run"],
        ["produce", "x.csv"],
        ["produce", "x.csv", "--dir", "x", "--topic", "a/b"],
        ["demo", "--records", "0"],
        ["demo", "--records", "few"],
        ["dlq", "eat", "x.toml"],
        ["dlq", "x.toml", "--from", "-1"],
        ["replay", "x.toml"],
        ["replay", "x.toml", "--app", "a/b"],
        ["replay", "x.toml", "--app", "a", "--from", "yesterday"],
        ["topics", "x.toml", "--create", "--partitions", "0"],
    ],
)
def test_wrong_arguments_are_exit_code_2(capsys, arguments):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "usage: streamsvm" in capsys.readouterr().err


ENGINE = {"numba", "scipy", "river", "streamsvm.core.kernels"}  # what takes a second of CPU time to load


def loaded_by(*arguments):
    """The exit code of a command, and the modules that a fresh process has loaded for it."""
    script = "import sys\nfrom streamsvm.connectors.commands.cli import main\n"
    script += "try: sys.exit(main())\nfinally: print(*sys.modules)"
    command = [sys.executable, "-c", script, *map(str, arguments)]
    answer = subprocess.run(command, capture_output=True, text=True)
    loaded = set(answer.stdout.splitlines()[-1].split())
    assert "streamsvm.connectors.commands.cli" in loaded, answer.stderr
    return answer.returncode, loaded


@pytest.mark.parametrize(
    "arguments", ["--version", "--help", "", "fly", "run --chekc app.toml", "crossval --seeding x y"]
)
def test_what_needs_no_engine_does_not_load_it(arguments):
    code, loaded = loaded_by(*arguments.split())
    assert code == (0 if arguments in ("--version", "--help") else 2)
    assert not {"numpy", "kafka", "tqdm", "inspect", *ENGINE} & loaded


def test_help_loads_only_the_arguments_of_the_commands():
    script = (
        "import sys\nfrom streamsvm.connectors.commands.cli import COMMANDS, main\n"
        "for command in COMMANDS:\n  try: main([command, '--help'])\n  except SystemExit: pass\n"
        "print(*sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(answer.stdout.splitlines()[-1].split())
    ours = {name for name in loaded if name.startswith("streamsvm.connectors.") and name.count(".") > 2}
    rooms = (
        "commands.arguments",
        "commands.cli",
        "logs.transport",
        "runtime.exit_codes",
        "runtime.moments",
        "runtime.numbers",
        "runtime.text",
    )
    assert ours
    assert all(name.removeprefix("streamsvm.connectors.").startswith(rooms) for name in ours)
    assert not {"numpy", "kafka", "tqdm", *ENGINE} & loaded


@pytest.mark.parametrize("command", ["lag", "topics", "dlq"])
def test_what_only_reads_a_configuration_does_not_load_the_engine(config, tmp_path, command):
    (tmp_path / "log").mkdir(exist_ok=True)
    code, loaded = loaded_by(command, config, "--set", "model.algorithm=full", "--set", "model.C=3")
    assert code == 0
    assert not {"kafka", *ENGINE} & loaded
    code, loaded = loaded_by(command, config, "--set", "daemon.keep=none")
    assert code == 2
    assert not {"kafka", *ENGINE} & loaded


def test_commands_start_without_what_they_do_not_need():
    script = (
        "import sys\nfrom importlib import import_module\nfrom streamsvm.connectors.commands.cli import COMMANDS\n"
        "for command in COMMANDS.values(): import_module('streamsvm.connectors.commands.' + command.module)\n"
        "print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "streamsvm.connectors.trainer.trainer" in loaded
    assert not {"matplotlib", "kafka", "sklearn", "cupy"} & set(loaded)


def test_a_docstring_has_a_line_for_each_argument_and_for_no_other():
    (commands,) = (action for action in cli.make_parser()._actions if isinstance(action, argparse._SubParsersAction))
    for word, command in commands.choices.items():
        named = {name for action in command._actions for name in (action.option_strings or [action.dest])}
        assert [(word, action.dest) for action in command._actions if not action.help] == []
        assert command._texts.keys() - named == set(), word


def test_every_file_with_a_command_is_in_the_list():
    """A new command's file has to be in COMMANDS, or it cannot be called."""
    folder = Path(cli.__file__).parent
    candidates = (path for path in folder.rglob("*.py") if path.parent.name != "arguments")
    files = {path for path in candidates if "\ndef run(" in path.read_text(encoding="utf-8")}
    called = {folder.joinpath(*command.module.split(".")).with_suffix(".py") for command in cli.COMMANDS.values()}
    assert files - called == set(), "add a line for it to COMMANDS in commands/cli.py"
    assert called - files == set(), "a command of COMMANDS has no file with a function `run`"


@pytest.mark.long
def test_a_process_that_hangs_is_gone_in_time_after_sigterm(config):
    script = (
        "import sys, time; from streamsvm.connectors.commands import cli, run\n"
        "run.trainer.run = lambda *_: (print('hangs', flush=True), time.sleep(60))\n"
        f"sys.exit(cli.main(['run', {str(config)!r}, '--set', 'daemon.shutdown_seconds=0.5']))"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"hangs\n"
    os.kill(process.pid, signal.SIGTERM)
    _, said = process.communicate(timeout=600)
    assert process.returncode == 70
    assert b"has not ended in the time given after the request to stop" in said
