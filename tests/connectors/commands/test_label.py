"""The command `streamsvm label`: its front ends, alone and beside a trainer."""

import json
import os
import signal
import socket
import sys
import threading
import time
import urllib.request
from contextlib import ExitStack

import pytest
from asked import Trainer, configure, until
from patience import Patience
from studio import CONFIG, TOKEN, Studio

from streamsvm.connectors.commands import label
from streamsvm.connectors.commands.cli import main
from streamsvm.connectors.commands.shared import long_running
from streamsvm.connectors.labelling.service import LabellingService
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.settings.loading import load


@pytest.fixture(autouse=True)
def _haste(haste, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def config(tmp_path):
    configure(tmp_path)
    (tmp_path / "log").mkdir()
    return tmp_path / "app.toml"


@pytest.fixture
def trainer(tmp_path, config):
    speaker = Trainer(configure(tmp_path))
    yield speaker
    speaker.close()


@pytest.fixture
def interrupt(monkeypatch):
    """Send ourselves a signal as soon as something is so."""
    monkeypatch.setattr(
        long_running.Watchdog, "deadline", lambda *_: None
    )  # which would outlive the command, and end pytest
    threads = []

    def interrupt(condition, number=signal.SIGTERM):
        def work():
            patience = Patience(600)  # the engine may have to be compiled first
            while not condition() and patience.lasts:
                time.sleep(0.01)
            os.kill(os.getpid(), number)

        threads.append(threading.Thread(target=work, daemon=True))
        threads[0].start()

    yield interrupt
    for thread in threads:
        thread.join()


@pytest.fixture
def piped(monkeypatch):
    """Make some text the standard input."""
    with ExitStack() as stack:

        def piped(text):
            reader, writer = os.pipe()
            os.write(writer, text.encode())
            os.close(writer)
            monkeypatch.setattr("sys.stdin", stack.enter_context(open(reader, encoding="utf-8")))

        yield piped


# --- front ends -------------------------------------------------------------------------------------------------------


def test_answers_from_a_pipe(config, trainer, call, piped):
    trainer.ask(1)
    trainer.ask(2)
    piped("1\n2\n")
    code, out, _ = call("label", config, "--terminal", "--annotator", "ann")
    assert (code, out[-1]) == (0, "2 labels given")
    assert any(line.startswith("[1] fraud  [2] genuine  [s] cannot tell") and "[q] quit" in line for line in out)
    assert [(answer["y"], answer["source"]) for answer in trainer.answers()] == [
        (True, "terminal:ann"),
        (False, "terminal:ann"),
    ]


def test_answers_from_a_file_end_with_the_quota(tmp_path, config, trainer, call):
    (tmp_path / "truth.csv").write_text("id,y\ne1,fraud\ne2,genuine\n")
    for i in (1, 2):
        trainer.ask(i)

    def hear():
        until(lambda: len(trainer.answers()) == 2, 60)
        for i in (1, 2):
            trainer.withdraw(i)
        spent = {"stop": True, "audit": False, "why": "2 of the budget of 2 labels are used"}
        trainer.status(answered=2, labels=2, remaining=0, verdict=spent)

    thread = threading.Thread(target=hear)
    thread.start()
    code, out, _ = call("label", config, "--truth", tmp_path / "truth.csv", "--set", "labelling.max_labels=2")
    thread.join()
    assert (code, out) == (0, ["gave 2 labels", "the label quota is spent: 2 of the budget of 2 labels are used"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_answers_from_a_file_until_a_signal(tmp_path, config, trainer, call, interrupt, number):
    (tmp_path / "truth.csv").write_text("id,y\ne1,fraud\ne2,genuine\n")
    for i in (1, 2, 3):
        trainer.ask(i)
    interrupt(lambda: len(trainer.answers()) == 3, number)
    patience = Patience(60)
    code, out, _ = call("label", config, "--truth", tmp_path / "truth.csv", "--delay", "0.01", "--noise", "0")
    assert (code, out) == (0, ["gave 2 labels"])
    assert patience.lasts
    assert [(answer["id"], answer["op"], answer.get("y")) for answer in trainer.answers()] == [
        ("e1", "set", True),
        ("e2", "set", False),
        ("e3", "skip", None),
    ]


def test_answers_from_a_field(config, trainer, call, interrupt):
    trainer.ask(1, event={"class": "fraud"})
    interrupt(lambda: trainer.answers())
    assert call("label", config, "--field", "class")[:2] == (0, ["gave 1 label"])


def test_the_page_is_served_until_a_signal(config, trainer, call, interrupt, monkeypatch):
    opened = []
    monkeypatch.setattr(label, "print", lambda text, **_: opened.append(text), raising=False)
    seen = []

    def is_there():
        if opened:
            with urllib.request.urlopen(opened[0].split()[-1], timeout=5) as response:  # noqa: S310 - http, see below
                seen.append(response.status)
        return bool(opened)

    interrupt(is_there)
    assert call("label", config, "--no-browser")[0] == 0
    assert opened[0].startswith("answer the questions at http://127.0.0.1:")
    assert seen == [200]


def test_the_browser_is_given_a_file_and_not_the_token(config, trainer, monkeypatch):
    """Other users of a machine can read the arguments of a process."""
    opened = []
    monkeypatch.setattr(label.webbrowser, "open", opened.append)
    monkeypatch.setattr(label, "_has_screen", lambda: True)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    settings = load(config, {})
    label.answer_questions(settings, label.page(settings, browse=True), lambda: bool(opened))
    token = (settings.daemon.state_dir / "page-key").read_text().strip()
    (address,) = opened
    assert address.startswith("file:///")
    assert token not in address


def test_label_studio_that_refuses_us(tmp_path, config, call):
    (tmp_path / "token").write_text("secret\n")
    (tmp_path / "empty").write_text("\n")
    where = ("--project", 7, "--token-file", tmp_path / "token")
    code, _, err = call("label", config, "--label-studio", "localhost", *where)
    assert (code, err) == (
        2,
        ["streamsvm: --label-studio 'localhost' must be an address such as http://localhost:8080"],
    )
    public = ("--label-studio", "http://127.0.0.1:9", "--set", "labelling.host=0.0.0.0")
    code, _, err = call("label", config, *public, *where)
    assert (code, "give --auth-file" in err[-1]) == (2, True)
    code, _, err = call(
        "label", config, "--label-studio", "http://localhost", "--project", 1, "--token-file", tmp_path / "empty"
    )
    assert (code, err) == (2, [f"streamsvm: {tmp_path / 'empty'} is empty"])
    code, _, err = call(
        "label", config, "--label-studio", "http://localhost", "--project", 1, "--token-file", tmp_path / "no"
    )
    assert (code, "No such file" in err[0]) == (1, True)


def test_a_check_asks_label_studio(tmp_path, config, call):
    """By default, Label Studio calls no address of its own machine."""
    (tmp_path / "token").write_text(TOKEN)
    with Studio(CONFIG.replace("spam", "yes").replace("ham", "no")) as studio:
        threading.Thread(target=studio.serve_forever, args=(0.02,), daemon=True).start()
        asked = ("label", config, "--check", "--label-studio", studio.url, "--token-file", tmp_path / "token")
        code, _, err = call(*asked, "--project", 7)
        assert (code, ["ML_BLOCK_LOCAL_IP=false" in err[0], "SSRF_PROTECTION_ENABLED=false" in err[1]]) == (
            2,
            [True] * 2,
        )
        studio.protects = False
        assert call(*asked, "--project", 7)[:2] == (0, [f"{config}: no problems"])
        code, _, err = call(*asked, "--project", 8)
        assert (code, "--project 8: Label Studio has no such project" in err[0]) == (2, True)
        studio.shutdown()


# --- what is wrong ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (("--delay", "1"), "--delay goes with --truth or --field only"),
        (("--terminal", "--noise", "0.1"), "--noise goes with --truth or --field only"),
        (("--annotator", "ann"), "--annotator goes with --terminal only"),
        (("--terminal", "--no-browser"), "--no-browser goes with the page only"),
        (("--field", "y", "--project", "3"), "--project goes with --label-studio only"),
        (("--label-studio", "http://localhost"), "--label-studio needs --project and --token-file"),
        (("--train", "--set", "daemon.follow=false"), "daemon.follow = false: the trainer would stop at the end"),
        (("--set", "log.questions="), "log.questions = '': labelling needs a topic for the questions"),
    ],
)
def test_flags_that_do_not_go_together(config, call, flags, problem):
    code, out, err = call("label", config, *flags)
    assert (code, out) == (2, [])
    assert [line.startswith(f"streamsvm: {problem}") for line in err] == [True]


@pytest.mark.parametrize(
    "flags",
    [
        ("--terminal", "--field", "y"),
        ("--delay", "-1"),
        ("--noise", "2"),
        ("--noise", "x"),
        ("--annotator", "a" * 101),
    ],
)
def test_flags_that_argparse_refuses(config, flags):
    with pytest.raises(SystemExit) as raised:
        main(["label", str(config), *flags])
    assert raised.value.code == 2


def test_a_file_that_is_wrong(tmp_path, config, call):
    (tmp_path / "truth.csv").write_text("id,y\n1,what\n")
    code, _, err = call("label", config, "--truth", tmp_path / "truth.csv")
    assert (code, "line 2: needs an 'id' and a label 'y' of 'fraud'/'genuine'" in err[0]) == (1, True)


def test_one_labelling_service_at_a_time(tmp_path, config, trainer, call, piped):
    piped("")
    with LabellingService(configure(tmp_path)):
        code, _, err = call("label", config, "--terminal")
    assert (code, "the labelling of this log is in use by process" in err[-1]) == (1, True)


def test_a_port_that_is_taken(config, call):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, _, err = call("label", config, "--no-browser", "--set", f"labelling.port={port}")
    assert (code, f"cannot listen on 127.0.0.1, port {port}" in err[-1]) == (1, True)


def test_a_damaged_log_ends_every_front_end(tmp_path, config, trainer, call, piped):
    segment = next((tmp_path / "log" / "questions" / "0").glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[30] ^= 255
    segment.write_bytes(data)
    piped("1\n")
    for flags in (("--terminal",), ("--field", "class"), ("--no-browser",)):
        code, _, err = call("label", config, *flags)
        assert (code, "checksum" in err[-1]) == (4, True)


# --- beside a trainer -------------------------------------------------------------------------------------------------


def fill(folder, n=150):
    with LocalLog(folder) as log:
        for i in range(n):
            x = {"a": float(i % 7), "b": float(i % 5)}
            log.produce("events", json.dumps({"id": f"e{i}", "x": x, "class": i % 7 > 3}).encode())


TRAINER = ("--train", "--set", "labelling.max_labels=5")


@pytest.mark.long
def test_a_trainer_and_its_oracle_in_one_process(tmp_path, config, call, interrupt):
    fill(tmp_path / "log")

    def is_done():
        """Whether the trainer has heard five answers: it withdraws their questions then."""
        with LocalLog(tmp_path / "log") as log:
            if not log.end_offsets("questions"):
                return False
            log.seek("questions", 0, 0)
            return sum(record.value is None for record in log.poll(0.0, 1000)) >= 5

    interrupt(is_done)
    code, out, _ = call("label", config, "--field", "class", *TRAINER)
    assert (code, out[0]) == (0, "gave 5 labels")
    assert out[2].split()[:2] == ["events-0", "150"]
    assert out[2].split()[2:6] == ["-"] * 4
    assert out[3].startswith("events-0: there are no scores, because an event is predicted when it comes, long before")


@pytest.mark.long
def test_quitting_ends_the_trainer_too(tmp_path, config, call, piped):
    fill(tmp_path / "log")
    piped("1\n1\nq\n")
    code, out, _ = call("label", config, "--terminal", *TRAINER)
    assert (code, "2 labels given" in out) == (0, True)
    assert out[-1].startswith("model digest of events-0")


def test_a_front_end_that_fails_ends_the_trainer_too(tmp_path, config, call):
    fill(tmp_path / "log")

    def front_end(_, stop):
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        label.answer_questions(configure(tmp_path), front_end, lambda: False, train=True)


def test_messages_of_the_trainer_do_not_come_between_the_questions(tmp_path, monkeypatch, capsys):
    settings = configure(tmp_path)
    with label.logs_aside(settings):
        print("as ever", file=sys.stderr)
    assert capsys.readouterr().err == "as ever\n"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with label.logs_aside(settings):
        print("learning", file=sys.stderr)
    assert capsys.readouterr() == (
        f"the trainer writes its messages to {settings.daemon.state_dir / 'trainer.log'}\n",
        "",
    )
    assert (settings.daemon.state_dir / "trainer.log").read_text() == "learning\n"
