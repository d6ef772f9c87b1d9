"""The progress of labelling: how often the model already knew the answer, as a curve that stays short."""

from collections import deque
from collections.abc import Mapping
from typing import Any

from streamsvm.active.answers.events import CurvePoint
from streamsvm.active.choosing.selection import POOL

CURVE = 256  # points of the curve at most
RANDOM, CHOSEN = range(2)  # kinds of questions: about random examples, and about those that the model was unsure of


class Progress:
    """Agreement of the model with the answers, and its support vectors, over the answered questions."""

    def __init__(self) -> None:
        self._recent: tuple[deque[bool], deque[bool]] = (deque(maxlen=POOL), deque(maxlen=POOL))  # by kind
        self._curve: list[CurvePoint] = []
        self._stride = 1  # answers from one point of the curve to the next
        self._n_support = 0  # at the last answer

    def answered(self, n_answered: int, is_right: bool, kind: int | None, n_support: int) -> None:
        """Note the first answer to a question.

        Parameters
        ----------
        n_answered
            Number of answered questions, with this one.
        is_right
            Whether the model would have given this answer.
        kind
            `RANDOM` or `CHOSEN`; None for a question of neither kind, whose answer says nothing about agreement.
        n_support
            Support vectors that the model had.
        """
        self._n_support = n_support
        if kind is not None:
            self._recent[kind].append(is_right)
        if n_answered % self._stride == 0:
            self._curve.append(self._point(n_answered))
        if len(self._curve) == CURVE:
            self._curve = self._curve[1::2]
            self._stride *= 2

    def _point(self, n_answered: int) -> CurvePoint:
        random, chosen = (sum(answers) / len(answers) if answers else None for answers in self._recent)
        return CurvePoint(n_answered, self._n_support, random, chosen)

    def curve(self, n_answered: int) -> list[CurvePoint]:
        """The curve, at most 256 points; the last one is of now."""
        if not n_answered or (self._curve and self._curve[-1].n_labels == n_answered):
            return list(self._curve)
        return [*self._curve, self._point(n_answered)]

    def state(self) -> dict[str, Any]:
        """Everything, as JSON can hold it."""
        return {
            "recent": [list(answers) for answers in self._recent],
            "curve": [list(point) for point in self._curve],
            "stride": self._stride,
            "n_support": self._n_support,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue where `state` was taken."""
        for answers, stored in zip(self._recent, state["recent"], strict=True):
            answers.extend(stored)
        self._curve = [CurvePoint(*point) for point in state["curve"]]
        self._stride, self._n_support = state["stride"], state["n_support"]
