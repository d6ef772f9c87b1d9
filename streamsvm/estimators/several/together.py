"""The models of several classes learn a block of examples together: compiled code runs until one of them lacks room."""

from typing import Any

import numpy as np

from streamsvm.core.expansion import SLOTS
from streamsvm.estimators.several.shared import LabelledBlock
from streamsvm.online import arrival
from streamsvm.online.arrival import Block
from streamsvm.online.together import ALL, TABLE, Course, enter, learn_together
from streamsvm.online.union import Union


class Together:
    """A block that models learn together.  It can be gone on with after an interruption.

    Parameters
    ----------
    models
        All models; none has a budget or a window, or has one of the examples.
    signs
        The sign of each class for each model, (n_models, n_classes); 0: the model does not learn the class.
    part, numbers, classes
        The examples, their numbers, and the places of their classes.
    U, W, first
        The union, with the examples from its slot `first` on, and the examples' kernel values with it.
    """

    def __init__(
        self,
        models: list[Any],
        signs: np.ndarray,
        part: LabelledBlock,
        numbers: np.ndarray,
        classes: np.ndarray,
        U: Union,
        W: np.ndarray,
        first: int,
    ) -> None:
        n_examples = (signs != 0) @ np.bincount(classes, minlength=signs.shape[1])
        concerned = np.flatnonzero(n_examples)
        self._models = [models[k] for k in concerned.tolist()]
        self._n_examples = n_examples[concerned]
        self._seen = [model.n_seen for model in self._models]
        self._numbers, self._first, self._U, self._q = numbers, first, U, part.q
        none = np.zeros(len(numbers))
        self._block = Block(*part.q, none, none, numbers, part.born, *part.raw[:3])
        boxes = self._models[0].C * part.weights
        self._course = self._course_of(signs[concerned], classes, boxes, W)

    def _course_of(self, signs: np.ndarray, classes: np.ndarray, boxes: np.ndarray, W: np.ndarray) -> Course:
        """How the block is learned, from its beginning."""
        n = len(self._models)
        room = self._n_examples + [model._expansion.counts[SLOTS] for model in self._models]
        firsts = np.append(0, np.cumsum(room))
        return Course(
            W,
            boxes,
            classes,
            signs=signs,
            tables=np.zeros((n, TABLE), np.int64),
            slots=np.zeros(firsts[-1], np.int64),
            firsts=firsts,
            calibrations=np.array([model._calibration for model in self._models]),
            counts=np.array([model.class_counts for model in self._models]),
            done=np.zeros(n, np.int64),
            newest=np.zeros(n, np.int64),
            place=np.zeros(2, np.int64),
        )

    def learn(self, n_features: int) -> None:
        """Learn what is left of the block; `n_features` is the number of features known so far."""
        model, course, numbers = self._models[0], self._course, self._U.numbers
        pos_weight = 0.0 if isinstance(model.pos_weight, str) else float(model.pos_weight)
        given = (model._kernel, model._rule, self._block, course, self._first, pos_weight, n_features)
        for k, model in enumerate(self._models):
            enter(course, k, model._expansion, numbers)
        try:
            while (k := learn_together(model._expansion, *given)) != ALL:
                self._make_room(k, n_features)
                enter(course, k, self._models[k]._expansion, numbers)
            self._note()
        except BaseException:
            self._note()
            for model in self._models:
                model._recover(model._members, 1)
            raise

    def _make_room(self, k: int, n_features: int) -> None:
        """Make room in a model for its examples, or for the next one if room for all would be a waste."""
        model, t = self._models[k], int(self._course.place[1])
        left = int(self._n_examples[k] - self._course.done[k])
        with model._interruptible():
            model._expansion = arrival.make_room(model._expansion, self._q.part(t, t + 1), n_features, left)

    def _note(self) -> None:
        """Let the models know what they have learned."""
        course = self._course
        newest, counts = self._numbers[course.newest].tolist(), course.counts.tolist()
        for k, (model, done) in enumerate(zip(self._models, course.done.tolist(), strict=True)):
            if done:
                model._calibration[:] = course.calibrations[k]
                model._note(self._seen[k] + done, counts[k], newest[k], model._features.n_kept, 0, 0)
