"""The models of several classes as compiled code sees them: all of them learn a block in one call.

The Python objects of the models are brought up to date later, by `JointModels.note`.
"""

from typing import Any, NamedTuple

import numpy as np

from streamsvm.core.blocks import Queries
from streamsvm.core.scaling.state import RawRows
from streamsvm.estimators.learner.state import State, clock_of, interruptible, members_of, note, recover
from streamsvm.online import arrival
from streamsvm.online.arrival import NOTHING_SAID, Block
from streamsvm.online.joint_learning import (
    COUNTS,
    LEARNED,
    NEWEST,
    WORDS,
    Course,
    Seat,
    enter,
    learn_together,
    mark_members,
    mark_used,
    move_slots,
)
from streamsvm.online.union import Union

NO_COLUMNS = np.empty((0, 0))


class Lecture(NamedTuple):
    """Examples with these numbers and ages for several models; for the other arrays see `online.joint_learning`."""

    q: Queries
    raw: RawRows
    numbers: np.ndarray
    born: np.ndarray
    W: np.ndarray
    boxes: np.ndarray
    classes: np.ndarray
    at: np.ndarray
    said: np.ndarray = NO_COLUMNS

    def compiled(self) -> Block:
        """The examples for compiled code, which has their boxes from `boxes`."""
        none = np.zeros(len(self.numbers))
        return Block(*self.q, none, none, self.numbers, self.born, NOTHING_SAID, *self.raw[:3])


class JointModels:
    """All models, which learn together.  Code that replaces a model's expansion otherwise must make this anew.

    Parameters
    ----------
    models
        The models.  None has a budget, and a window counts examples.
    signs
        The sign of each class for each model, (n_models, n_classes); 0: the model does not learn the class.
    U
        The union of their vectors.
    before
        Some of the models, which have learned together; default: none have.
    """

    def __init__(self, models: list[State], signs: np.ndarray, U: Union, before: "JointModels | None" = None) -> None:
        known = {} if before is None else {id(state): k for k, state in enumerate(before.models)}
        places = [known.get(id(state), -1) for state in models]
        self.models: list[State] = models
        self.signs = signs
        self._tables = np.zeros((len(models), WORDS), np.int64)
        self._seats: list[Seat] = []
        self._seen: list[int] = []
        self._noted: list[int] = []  # how many of the learned examples each model knows of
        for k, (place, state) in enumerate(zip(places, models, strict=True)):
            if before is not None and place >= 0:
                self._seats.append(before._seats[place])
                self._seen.append(before._seen[place])
                self._noted.append(before._noted[place])
                self._tables[k] = before._tables[place]
            else:
                self._seats.append(_seat_of(state))
                self._seen.append(state.n_seen)
                self._noted.append(0)
                enter(self._tables, k, state.expansion, self._seats[k], U.numbers)

    @property
    def _like(self) -> tuple[Any, Seat]:
        return self.models[0].expansion, self._seats[0]

    def learn(self, given: Lecture, place: np.ndarray, begin: int, end: int, U: Union, n_features: int) -> None:
        """Learn the examples from `begin` on, before `end`; `n_features` is the number of features known so far.

        `place` says how far the models are; a second call goes on there.
        """
        self._learn(given, self.signs, place, (begin, end), U, n_features, arriving=True)

    def teach(self, given: Lecture, place: np.ndarray, pupils: np.ndarray, U: Union, n_features: int) -> None:
        """Let some of the models learn examples that are members of others; they do not count as learned."""
        signs = np.where(pupils[:, np.newaxis], self.signs, np.int8(0))
        self._learn(given, signs, place, (0, len(given.at)), U, n_features, arriving=False)

    def _learn(
        self,
        given: Lecture,
        signs: np.ndarray,
        place: np.ndarray,
        span: tuple[int, int],
        U: Union,
        n_features: int,
        arriving: bool,
    ) -> None:
        state, (begin, end) = self.models[0], span
        course = Course(given.W, given.boxes, given.classes, given.at, signs, given.said, self._tables, place)
        pos_weight = 0.0 if isinstance(state.pos_weight, str) else float(state.pos_weight)
        rest = (state.kernel, state.rule, given.compiled(), course, begin, end, pos_weight, n_features, arriving)
        try:
            while (k := learn_together(*self._like, *rest)) < len(signs):
                t = begin + int(place[1])
                left = _n_left(signs[k], given.classes[t:])
                self._make_room(k, given.q.part(t, t + 1), n_features, left, U)
        except BaseException:
            for state in self.models:
                recover(state, members_of(state), 1)
            raise

    def _make_room(self, k: int, q: Queries, n_features: int, n_left: int, U: Union) -> None:
        """Make room in a model for its examples, or for the next one if room for all would be a waste."""
        state = self.models[k]
        with interruptible(state):
            state.expansion = arrival.make_room(state.expansion, q, n_features, n_left)
        self._enter(k, U)

    def _enter(self, k: int, U: Union) -> None:
        """Take over the expansion of a state, which has changed."""
        state, seat = self.models[k], self._seats[k]
        n_slots = len(state.expansion.alpha)
        if n_slots != len(seat.slots):
            self._seats[k] = seat = seat._replace(slots=np.zeros(n_slots, np.int64))
        enter(self._tables, k, state.expansion, seat, U.numbers)

    def note(self) -> None:
        """Let the models know what they have learned.  To note the same again changes nothing."""
        for k, (state, seat, n_seen) in enumerate(zip(self.models, self._seats, self._seen, strict=True)):
            negative, positive, learned, newest, *_ = seat.counts.tolist()
            if learned > self._noted[k]:
                ages = n_seen + self._noted[k], n_seen + learned - 1  # if a window counts them
                note(state, n_seen + learned, (negative, positive), newest, state.features.n_kept, *ages)
                self._noted[k] = learned

    def members(self, U: Union, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
        """The place of the class of each of the union's vectors, -1 for one that is no member; and their ages.

        Only the first so many classes count.
        """
        classes, born = np.full(U.n_slots, -1), np.zeros(U.n_slots, np.int64)
        mark_members(*self._like, self._tables, np.ascontiguousarray(self.signs[:, :n_classes]), classes, born)
        return classes, born

    def used(self, U: Union) -> np.ndarray:
        """Which of the union's vectors have a slot in one of the models, (n_slots,) bool."""
        used = np.zeros(U.n_slots, bool)
        mark_used(*self._like, self._tables, used)
        return used

    def moved(self, first: int, used: np.ndarray) -> None:
        """The union has kept only the used ones of its vectors from slot `first` on."""
        move_slots(*self._like, self._tables, first, first + np.cumsum(used[first:]) - 1)


def _seat_of(state: State) -> Seat:
    counts = np.zeros(COUNTS, np.int64)
    counts[:LEARNED] = state.class_counts
    counts[NEWEST] = -1
    return Seat(np.zeros(len(state.expansion.alpha), np.int64), state.calibration, clock_of(state), counts)


def _n_left(signs: np.ndarray, classes: np.ndarray) -> int:
    """How many examples of these classes concern a model; classes that have not begun yet do not count."""
    return int(np.count_nonzero(signs[classes[classes < len(signs)]]))
