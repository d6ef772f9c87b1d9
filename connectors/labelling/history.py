"""The answers so far, with their questions, so that annotators can undo, review and correct them at any time.

What counts is the topic log.labels. This file of the labelling service remembers what the topics do not say: the
contents of questions that the trainer has closed, and which answers can be undone. The file is a private one in
daemon.state_dir, because events may be confidential. If it is removed, the service begins a new one.

These are the rules of undoing:

- A *step* is an answer that counts: a label, a skip or an ignore, also one that corrects an earlier answer.
- Each annotator undoes their own steps, the newest first.
- Undoing the first answer to a question opens the question again. Undoing a correction brings back what it replaced.
- An undo is not a step itself.
- A step cannot be undone once another annotator has replaced it.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ..logs.transport import Record
from ..records.classes import ClassLabel
from ..records.labels import Place
from ..records.people.annotators import person
from ..records.people.questions import Question, read_question, write_question
from ..runtime.folders import FileError, make_private, touch_private
from .answer import Given

FILE = "answers.sqlite"

_VERSION = 1  # of the tables
_STORED_ANSWERS = 200_000  # the newest ones; the page shows 20 at a time
_STORED_BYTES = 256 << 20  # of questions
_PRUNE_EVERY = 1_000  # new answers
_TABLES = """
CREATE TABLE questions (
    query_id TEXT PRIMARY KEY, partition INTEGER NOT NULL, event_id TEXT NOT NULL, value BLOB
);
CREATE TABLE answers (
    number INTEGER PRIMARY KEY, query_id TEXT NOT NULL, rev INTEGER NOT NULL, op TEXT NOT NULL, y INTEGER,
    who TEXT NOT NULL, person TEXT NOT NULL, counts INTEGER NOT NULL, undoable INTEGER NOT NULL, UNIQUE (query_id, rev)
);
CREATE INDEX undoable_of ON answers (who, number) WHERE undoable;
CREATE INDEX counting_of ON answers (person, number) WHERE counts;
"""
_FIELDS = "number, answers.query_id, op, y, who, rev, partition, event_id, undoable"
_TABLE = "answers JOIN questions USING (query_id)"
_IS_LAST = (
    "NOT EXISTS (SELECT 1 FROM answers AS later WHERE later.query_id = answers.query_id AND later.counts"
    " AND later.rev > answers.rev{of_person})"
)


class Step(NamedTuple):
    """An answer that counts.

    Attributes
    ----------
    number
        The steps of all annotators are numbered in the order in which they became known.
    query_id
        The question.
    given
        What was answered; the revision is in milliseconds since the epoch.
    undoable
        Whether its annotator can still undo it.
    """

    number: int
    query_id: str
    given: Given
    undoable: bool

    @property
    def id(self) -> str | int:
        """Id of the event."""
        return self.given.place.id


class Undone(NamedTuple):
    """What became of an undo.

    Attributes
    ----------
    step
        The answer that it was about.
    outcome
        "open": the question is open again, and reserved for the annotator; "restored": the answer before it holds
        again; "repeated": the step was undone before; "replaced": another annotator has replaced the answer since, and
        nothing was undone.
    """

    step: Step
    outcome: Literal["open", "restored", "repeated", "replaced"]


class History:
    """Remembers answers in a file; one thread at a time may use it.

    Parameters
    ----------
    path
        The file; it is made if there is none.
    several
        Whether a question has answers of several annotators, so that one does not replace another's.

    Raises
    ------
    FileError
        If it is no such file.
    OSError
        If the file cannot be made.
    """

    def __init__(self, path: Path, *, several: bool = False) -> None:
        make_private(path.parent)
        if not path.exists():
            touch_private(path)
        self._path = path
        self._same_person = " AND later.person = answers.person" if several else ""
        self._n_new = 0
        with self._named():
            self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")  # log.labels is the durable record
            (version,) = self._database.execute("PRAGMA user_version").fetchone()
            if version == 0:
                self._database.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {_VERSION}; COMMIT")
            elif version != _VERSION:
                raise FileError(f"{path} is of another version of streamsvm: remove it to begin a new history")
            self._database.execute("CREATE INDEX IF NOT EXISTS of_event ON questions (partition, event_id)")
        self._prune()
        self._disputes: dict[str, int] = {}  # questions that people answered differently, and their newest steps
        query = "SELECT query_id FROM answers WHERE counts GROUP BY query_id HAVING count(DISTINCT person) > 1"
        for (query_id,) in self._run(query):
            self._look_at(query_id)

    def close(self) -> None:
        self._database.close()

    # --- writing ------------------------------------------------------------------------------------------------------

    def add(self, query_id: str, given: Given, shown: Question | None) -> None:
        """Remember a durable answer to a question, unless it is remembered already; `shown` is what was asked."""
        op, y, who, rev, (partition, event_id), *_ = given
        value = None if shown is None else write_question(shown)
        self._run(
            "INSERT INTO questions VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET value = ifnull(value, excluded.value)",
            *(query_id, partition, json.dumps(event_id), value),
        )
        self._run(
            "INSERT OR IGNORE INTO answers (query_id, rev, op, y, who, person, counts, undoable)"
            " VALUES (?, ?, ?, ?, ?, ?, 1, ?)",
            *(query_id, rev, op, _column_of(y), who, person(who), op != "retract"),
        )
        self._join_repeated(query_id)
        self._look_at(query_id)
        self._n_new += 1
        if self._n_new >= _PRUNE_EVERY:
            self._prune()

    def _join_repeated(self, query_id: str) -> None:
        """Let equal answers in a row be one step: the log may have one whose writing seemed to fail."""
        last: dict[str, Step] = {}
        for step in self.answers(query_id):
            voter = person(step.given.who) if self._same_person else ""
            earlier, last[voter] = last.get(voter), step
            if earlier is not None and earlier.given.by == step.given.by:
                self._run("UPDATE answers SET counts = 0, undoable = 0 WHERE number = ?", earlier.number)

    def pass_over(self, query_id: str, since: int, who: str) -> None:
        """Let the answers to a question from a revision on count no longer; if it has several, only those of `who`."""
        mine, values = (" AND person = ?", [person(who)]) if self._same_person else ("", [])
        rule = f"query_id = ? AND rev >= ?{mine}"
        self._run(f"UPDATE answers SET counts = 0, undoable = 0 WHERE {rule}", query_id, since, *values)  # noqa: S608
        self._look_at(query_id)

    def give_up(self, step: Step) -> None:
        """Let a step be undone no longer."""
        self._run("UPDATE answers SET undoable = 0 WHERE number = ?", step.number)

    def _prune(self) -> None:
        """Forget the oldest answers, and the contents of the oldest questions, if there are too many."""
        self._n_new = 0
        self._run("DELETE FROM answers WHERE number <= (SELECT max(number) FROM answers) - ?", _STORED_ANSWERS)
        self._run("DELETE FROM questions WHERE query_id NOT IN (SELECT query_id FROM answers)")
        self._run(
            "UPDATE questions SET value = NULL WHERE rowid <= (SELECT max(older) FROM (SELECT rowid AS older,"
            " sum(length(value)) OVER (ORDER BY rowid DESC) AS bytes FROM questions) WHERE bytes > ?)",
            _STORED_BYTES,
        )

    # --- reading ------------------------------------------------------------------------------------------------------

    def undoable(self, who: str) -> Step | None:
        """The newest step that an annotator can undo."""
        return self._step("who = ? AND undoable ORDER BY number DESC", who)

    def step(self, number: int, who: str) -> Step | None:
        """A step of an annotator that can be undone or was undone."""
        return self._step("number = ? AND who = ?", number, who)

    def is_replaced(self, step: Step) -> bool:
        """Whether a later answer took the place of a step."""
        return self._step(f"number = ? AND {_IS_LAST.format(of_person=self._same_person)}", step.number) is None

    def before(self, step: Step) -> Step | None:
        """What a step replaced; None if the question was open."""
        people = (person(step.given.who),) if self._same_person else ()
        earlier = self._step(
            f"answers.query_id = ? AND counts AND rev < ?{' AND person = ?' * len(people)} ORDER BY rev DESC",
            step.query_id, step.given.rev, *people,
        )  # fmt: skip
        return None if earlier is None or earlier.given.op == "retract" else earlier

    def newest(self, query_id: str) -> list[Step]:
        """The newest answer to a question, a step or not; none without an answer."""
        return self._steps("answers.query_id = ? ORDER BY rev DESC LIMIT 1", query_id)

    def answers(self, query_id: str) -> list[Step]:
        """The steps about a question, oldest first."""
        return self._steps("answers.query_id = ? AND counts ORDER BY rev", query_id)

    def page(self, name: str | None, before: int | None, n: int) -> list[Step]:
        """The last step of each question, newest first.

        Parameters
        ----------
        name
            Only the steps of this annotator, see `annotators.person`; None: of all.
        before
            Only steps with a smaller number; None: the newest ones.
        n
            No more than this.
        """
        rule = "later.person = answers.person" if name is not None or self._same_person else "1"
        last = _IS_LAST.format(of_person=f" AND {rule}")
        where = ["counts", "op != 'retract'", last]
        values: list[Any] = []
        if name is not None:
            where.append("person = ?")
            values.append(name)
        if before is not None:
            where.append("number < ?")
            values.append(before)
        return self._steps(f"{' AND '.join(where)} ORDER BY number DESC LIMIT ?", *values, n)

    def disputes(self) -> list[str]:
        """The questions that people answered differently, and of which none is decided; the newest answers first."""
        return sorted(self._disputes, key=self._disputes.__getitem__, reverse=True)

    def about(self, place: Place) -> list[Step]:
        """The steps about an event, by any question, oldest first."""
        where = "partition = ? AND event_id = ? AND counts ORDER BY rev"
        return self._steps(where, place.partition, json.dumps(place.id))

    def _look_at(self, query_id: str) -> None:
        """Note whether the answers to a question differ."""
        last = last_words(self.answers(query_id))
        is_decided = any(step.given.op == "decide" for step in last)
        if len({step.given.by[:2] for step in last}) > 1 and not is_decided:
            self._disputes[query_id] = last[-1].number
        else:
            self._disputes.pop(query_id, None)

    def question(self, query_id: str) -> Question | None:
        """What was asked; None if it is not known any more."""
        return next(self._questions("query_id = ?", query_id), None)

    def opened_again(self) -> Iterator[Question]:
        """The questions whose answer was taken back."""
        return self._questions(
            "(SELECT op FROM answers WHERE answers.query_id = questions.query_id ORDER BY rev DESC LIMIT 1) = 'retract'"
        )

    def _step(self, where: str, *values: Any) -> Step | None:
        return next(iter(self._steps(f"{where} LIMIT 1", *values)), None)

    def _steps(self, where: str, *values: Any) -> list[Step]:
        rows = self._run(f"SELECT {_FIELDS} FROM {_TABLE} WHERE {where}", *values)  # noqa: S608 - from constants
        return [
            Step(number, query_id, Given(op, _label_of(y), who, rev, Place(at, json.loads(event_id))), bool(undoable))
            for number, query_id, op, y, who, rev, at, event_id, undoable in rows
        ]

    def _questions(self, where: str, *values: Any) -> Iterator[Question]:
        query = f"SELECT query_id, partition, value FROM questions WHERE value IS NOT NULL AND {where}"  # noqa: S608
        for query_id, partition, value in self._run(query, *values):
            yield read_question(Record("", partition, 0, 0, query_id.encode(), value, ()))

    def _run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._named():
            return self._database.execute(statement, values).fetchall()

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Name the file in errors."""
        try:
            yield
        except sqlite3.OperationalError as error:  # such as a full disk
            raise OSError(f"{self._path}: {error}") from None
        except sqlite3.DatabaseError as error:
            raise FileError(f"{self._path}: {error}; remove the file to begin a new history") from None


def last_words(steps: Iterable[Step]) -> list[Step]:
    """The last step of each person that was not taken back, oldest first."""
    last: dict[str, Step] = {}
    for step in steps:
        last.pop(person(step.given.who), None)
        last[person(step.given.who)] = step
    return [step for step in last.values() if step.given.op != "retract"]


def _column_of(y: ClassLabel | None) -> bool | str | None:
    """A label as the file has it: with more than two classes as JSON, in a list, which no column takes for a number."""
    return y if y is None or isinstance(y, bool) else json.dumps([y])


def _label_of(y: int | str | None) -> ClassLabel | None:
    return None if y is None else bool(y) if isinstance(y, int) else json.loads(y)[0]
