"""Questions in a terminal: what is shown, and what the keys do."""

import io
import json
import os
import pty
import termios
import threading
import time
from contextlib import contextmanager

import pytest
from logged import read_json
from patience import Patience

from streamsvm.connectors.labelling.service import LabellingService
from streamsvm.connectors.labelling.terminal.picture import picture
from streamsvm.connectors.labelling.terminal.session import run
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.records.people.questions import Question

STATS = {
    "labels": 5,
    "positive": 2,
    "negative": 3,
    "remaining": 45,
    "verdict": {"stop": False, "audit": False, "why": "10 of 59 answers lie outside the margin"},
    "trainer": None,
    "trouble": None,
}


KEYS = {"spam": "1", "ham": "2"}


def question(name="q", **fields):
    return {
        "query_id": name,
        "id": f"event-{name}",
        "x": {"a": 1.25, "b": 2.0},
        "event": {},
        "margin": -0.1,
        "score": 0.475,
        "reason": "boundary",
        "asked_at": 1000,
        "expires_at": 10**9,
        "unusual": {},
        "model": {"ver": 7, "n_support": 3},
        **fields,
    }


def shown(**fields):
    return Question(partition=0, **question(**fields))


def fill(settings, *questions):
    with LocalLog(settings.log.dir) as log:
        for item in questions:
            log.produce("questions", json.dumps(item).encode(), key=item["query_id"].encode(), partition=0)


def answers(settings):
    return read_json(settings, "labels")


@contextmanager
def piped(text):
    """A pipe that has this to read, and then nothing any more."""
    reader, writer = os.pipe()
    os.write(writer, text.encode())
    os.close(writer)
    with open(reader, encoding="utf-8") as source:
        yield source


def talk(settings, text, stop=lambda: False):
    """Answer with these lines; return the number of labels and what was written."""
    target = io.StringIO()
    with LabellingService(settings) as service, piped(text) as source:
        while not service.stats()["loaded"]:
            service.wait(1)
        n_labels = run(service, settings, stop, "terminal:ann", source, target)
    return n_labels, target.getvalue()


# --- pictures ---------------------------------------------------------------------------------------------------------


def test_a_question_is_a_table_with_what_is_unusual_first(settings):
    lines = picture(shown(unusual={"b": -4.2}), settings, STATS, (60, 24), KEYS).splitlines()
    assert lines == [
        "-" * 60,
        "event event-q",
        "  b             2  <- unusual: -4.2 standard deviations",
        "  a          1.25",
        "",
        "asked because the model is least sure of this event",
        "the model: 48% spam, margin -0.1",
        "5 labels: 2 spam, 3 ham; 45 left to give",
        "10 of 59 answers lie outside the margin",
        "[1] spam  [2] ham  [s] cannot tell  [i] ignore  [u] undo  [h] history  [/] find  [=] like this  [q] quit",
    ]


def test_a_question_without_a_score(settings):
    assert "the model: margin -0.1" in picture(shown(score=None), settings, STATS, (60, 24), KEYS).splitlines()


def test_what_else_an_event_has_is_shown(settings):
    event = {
        "text": "one two three four five six seven eight nine ten eleven twelve\nnext",
        "series": [0, 1, 2, 3],
        "who": "x" * 100,
        "n": 3,
    }
    lines = picture(shown(event=event), settings, STATS, (40, 24), KEYS).splitlines()
    assert lines[2:8] == [
        "  one two three four five six seven",
        "  eight nine ten eleven twelve",
        "  next",
        "  series: ▁▃▆█ 0 to 3",
        f"  who: {'x' * 17}...",
        "  n: 3",
    ]


def test_a_long_record_is_cut(settings):
    x = {f"f{i}": i for i in range(300)}
    event = {"text": "line\n" * 100, **{f"field{i}": i for i in range(30)}}
    text = picture(shown(x=x, event=event, unusual={"f299": 5.0}), settings, STATS, (80, 24), KEYS)
    assert "  ... and 80 more lines\n" in text
    assert "  and 18 more fields\n" in text
    assert "  f299           299  <- unusual: +5.0 standard deviations\n" in text
    assert "  and 292 more features\n" in text


@pytest.mark.parametrize("series", [[], ["a"], [1.0, float("nan")], [10**400, 1], [1e308, -1e308], "abc", {"a": 1}])
def test_a_series_that_is_none_is_shown_as_it_is(settings, series):
    text = picture(shown(event={"series": series}), settings, STATS, (80, 24), KEYS)
    assert "series: " in text
    assert not any(bar in text for bar in "▁▂▃▄▅▆▇█")


@pytest.mark.parametrize(("series", "bars"), [([5, 5], "▁▁ 5 to 5"), ([0, 5e-324], "▁█ 0 to 4.94066e-324")])
def test_a_series_that_hardly_moves(settings, series, bars):
    assert f"series: {bars}\n" in picture(shown(event={"series": series}), settings, STATS, (80, 24), KEYS)


def test_an_event_cannot_command_the_terminal(settings):
    evil = "\x1b[2J\x1b]0;title\x07\u202e\r"
    item = shown(id=evil, x={evil: 1.0}, event={"text": evil, evil: evil}, unusual={evil: 3.0}, reason=evil)
    text = picture(item, settings, STATS, (80, 24), KEYS)
    assert all(character.isprintable() or character == "\n" for character in text)


def test_notes_of_the_desk_are_shown(settings):
    stats = {**STATS, "remaining": None, "trainer": "no trainer", "trouble": "no broker"}
    lines = picture(shown(), settings, stats, (80, 24), KEYS).splitlines()
    assert lines[-5:-1] == ["5 labels: 2 spam, 3 ham", STATS["verdict"]["why"], "no trainer", "no broker"]


# --- keys -------------------------------------------------------------------------------------------------------------


def test_lines_of_a_pipe_answer(settings):
    fill(settings, *(question(f"q{i}", asked_at=i) for i in range(5)))
    n_labels, text = talk(settings, "1\n2\nyes\n\ns\nI\n1\n")
    assert n_labels == 3
    assert [(label["op"], label.get("y")) for label in answers(settings)] == [
        ("set", True),
        ("set", False),
        ("skip", None),
        ("ignore", None),
        ("set", True),
    ]
    assert {label["source"] for label in answers(settings)} == {"terminal:ann"}
    assert "'yes' is not a key; use [1] spam" in text
    assert "-> spam\n" in text
    assert text.endswith("waiting for a question; q quits\n3 labels given\n")


def test_undo_shows_the_question_again(settings):
    fill(settings, question("q1", asked_at=1), question("q2", asked_at=2))
    n_labels, text = talk(settings, "1\nu\n2\nu\nu\n2\n2\n")
    assert n_labels == 2
    assert [(label["op"], label.get("y"), label["query_id"]) for label in answers(settings)] == [
        ("set", True, "q1"),
        ("retract", None, "q1"),
        ("set", False, "q1"),
        ("retract", None, "q1"),
        ("set", False, "q1"),
        ("set", False, "q2"),
    ]
    assert text.count("your last answer is taken back") == 2
    assert text.count("nothing to take back") == 1


def test_undo_goes_back_over_skips(settings):
    fill(settings, *(question(f"q{i}", asked_at=i) for i in range(3)))
    n_labels, text = talk(settings, "1\ns\n2\nu\nu\nu\nu\n2\n2\n2\n")
    assert n_labels == 3
    assert text.count("your last answer is taken back") == 3
    assert text.count("nothing to take back") == 1
    assert [label.get("y") for label in answers(settings)[-3:]] == [False] * 3


def test_an_earlier_answer_is_corrected(settings):
    names = [f"q{i:02}" for i in range(12)]
    fill(settings, *(question(name, asked_at=i, event={"text": f"Letter {i}"}) for i, name in enumerate(names)))
    n_labels, text = talk(settings, "1\ns\n" + 10 * "2\n" + "h\nh\n2\n1\nh\n1\n3\nh\nx\nu\n")
    lines = text.splitlines()
    assert "  [9] ham  event event-q03  Letter 3" in lines
    assert "  [2] skipped  event event-q01  Letter 1" in lines
    assert "your answer is: skipped. Another one corrects it, any other key leaves it" in lines
    assert "-> corrected: spam" in lines
    assert "  [1] spam  event event-q01  Letter 1" in lines  # the newest now, which is left as it is
    assert "your correction is taken back: event event-q01 has its earlier answer again" in lines
    assert [label["op"] for label in answers(settings)[-3:]] == ["set", "retract", "skip"]
    assert n_labels == 11


def test_there_is_no_history_yet(settings):
    fill(settings, question("q1"))
    n_labels, text = talk(settings, "h\n1\n")
    assert "there are no earlier answers\n" in text
    assert n_labels == 1


def test_q_and_the_end_of_the_input_end_it(settings):
    fill(settings, question("q1"), question("q2"))
    assert talk(settings, "1\nq\n2\n")[0] == 1
    assert talk(settings, "")[0] == 0
    assert len(answers(settings)) == 1


def test_a_stop_ends_it(settings):
    fill(settings, question("q1"))
    assert talk(settings, "1\n", stop=lambda: True)[0] == 0


def test_a_target_that_knows_ascii_only(settings):
    fill(settings, question("q1", event={"text": "Grüße", "series": [1, 2]}))
    raw = io.BytesIO()
    target = io.TextIOWrapper(raw, encoding="ascii")
    with LabellingService(settings) as service, piped("1\n") as source:
        assert run(service, settings, lambda: False, "ann", source, target) <= 1
    assert b"Gr??e" in raw.getvalue() or b"waiting" in raw.getvalue()


def test_keys_of_a_terminal_need_no_return(settings):
    fill(settings, question("q1", asked_at=1), question("q2", asked_at=2))
    master, slave = pty.openpty()
    try:
        before = termios.tcgetattr(slave)
        with open(slave, encoding="utf-8", closefd=False) as source, LabellingService(settings) as service:
            target = io.StringIO()
            thread = threading.Thread(
                target=run, args=(service, settings, lambda: False, "terminal:ann", source, target)
            )
            thread.start()
            for said, count, key in (  # a key too early, and Home
                ("asked because", 1, b"x11"), ("asked because", 2, b"\x1b[1~2"), ("waiting for a question", 1, b"q")
            ):  # fmt: skip
                while target.getvalue().count(said) < count:
                    service.wait(0.02)
                os.write(master, key)
            thread.join(60)
            assert not thread.is_alive()
        assert termios.tcgetattr(slave) == before
    finally:
        os.close(master)
        os.close(slave)
    assert [label["y"] for label in answers(settings)] == [True, False]


def test_names_of_the_classes_are_optional(settings):
    assert "[1] positive  [2] negative" in picture(
        shown(), settings, STATS, (80, 24), {"positive": "1", "negative": "2"}
    )


# --- finding events ---------------------------------------------------------------------------------------------------


def events(settings, *texts):
    with LocalLog(settings.log.dir) as log:
        for number, text in enumerate(texts):
            value = {"id": f"event-{number}", "x": {"a": float(number)}, "text": text}
            log.produce("events", json.dumps(value).encode())


def test_events_are_found_by_words_and_labelled_while_a_question_waits(settings):
    fill(settings, question())
    events(settings, "You won a Prize", "see you at noon", "a prize for you")
    n_labels, said = talk(settings, "/\nPRIZE -won\n1\n1\nq\nq\n")
    assert "1 of 3 events\n  [1]   event event-2  a prize for you\n" in said
    assert "asked because you have found it\n5" not in said
    assert n_labels == 1
    (label,) = answers(settings)
    assert (label["id"], label["y"], label["source"]) == ("event-2", True, "terminal:ann")


def test_found_answers_are_corrected_and_others_like_them_are_found(settings):
    fill(settings, question())
    events(settings, "You won a prize", "see you at noon", "a prize that you won")
    n_labels, said = talk(settings, "/\nnoon\n1\n2\n1\n1\n/\nprize noon*\n/\nwon\n1\n=\nx\nq\n")
    assert [label["y"] for label in answers(settings)] == [False, True]
    assert "the answer is: ham. [=] finds" in said
    assert "none of 3 events" in said
    assert said.rindex("event event-0  You won a prize") > said.rindex("[=] finds events like this one")
    assert n_labels == 2


def test_what_is_no_query_is_explained(settings):
    fill(settings, question())
    events(settings, "hello")
    assert "'amount'" in talk(settings, "/\namount > 3\nq\n")[1]


def test_a_line_is_typed_in_a_terminal(settings):
    fill(settings, question())
    events(settings, "You won a Prize", "see you at noon")
    leader, follower_end = pty.openpty()
    target = io.StringIO()
    with LabellingService(settings) as service, open(follower_end, encoding="utf-8") as source:
        before = termios.tcgetattr(source.fileno())
        thread = threading.Thread(
            target=run, args=(service, settings, lambda: False, "terminal:ann", source, target), daemon=True
        )
        thread.start()
        for wanted, typed in (
            ("[q] quit", b"/"),
            ("goes back", b"Prixx\x7f\x7fze\n"),
            ("1 of 2 events", b"x"),
            ("", b"q"),
        ):
            patience = Patience(30)
            while wanted not in target.getvalue():
                assert patience.lasts, target.getvalue()
                time.sleep(0.02)
            target.seek(0)
            target.truncate()
            os.write(leader, typed)
            time.sleep(0.2)
        thread.join(30)
        assert not thread.is_alive()
        assert termios.tcgetattr(source.fileno())[3] == before[3]
    os.close(leader)


def test_an_answer_is_for_those_almost_like_it_only_where_plus_was_pressed(settings):
    fill(
        settings,
        question(alike=[{"query_id": "r", "id": "event-r"}], almost=True),
        question("s", alike=[{"query_id": "t", "id": "event-t"}], almost=True),
        question("u", alike=[{"query_id": "v", "id": "event-v"}]),
    )
    _, said = talk(settings, "1\n+\n2\n1\n")
    assert "your answer is also for 1 more almost like it" in said
    assert {label["id"]: label["y"] for label in answers(settings)} == {
        "event-q": True,
        "event-s": False,
        "event-t": False,
        "event-u": True,
        "event-v": True,
    }


def test_an_answer_is_for_copies_unless_plus_was_pressed(settings):
    alike = [{"query_id": "r", "id": "event-r"}]
    fill(settings, question(alike=alike), question("s", alike=[{"query_id": "t", "id": "event-t"}]))
    _, said = talk(settings, "1\n+\n2\n")
    assert "also for 1 more like it" in said
    assert "your answer is for this event alone" in said
    assert {label["id"]: label["y"] for label in answers(settings)} == {
        "event-q": True,
        "event-r": True,
        "event-s": False,
    }
