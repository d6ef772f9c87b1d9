"""A learner inside a bytewax dataflow: each sensor has a model of its own, which predicts a reading and then learns it.

bytewax keeps the models and hands each its readings.  `to_bytes` is what it stores of a model, so that a flow that was
killed goes on as if nothing had happened.  Needs `pip install bytewax`; in production, run the flow by itself:

    python -m bytewax.run examples/bytewax_flow -w 2 -r FOLDER     # two workers, recovery from FOLDER
"""

import random
from collections.abc import Iterator
from typing import NamedTuple

import bytewax.operators as op
from bytewax.connectors.stdio import StdOutSink
from bytewax.dataflow import Dataflow
from bytewax.operators import StatefulBatchLogic
from bytewax.testing import TestingSource, run_main

from streamsvm import LASVM

SIDES = {"north": 1.0, "south": -1.0}  # the sensors, and the side on which each raises its alarm


class Reading(NamedTuple):
    x: dict[str, float]
    y: bool  # the label that turned out to be right


def readings(n: int = 2000) -> Iterator[tuple[str, Reading]]:
    rng = random.Random(0)  # noqa: S311 - no secret
    for _ in range(n):
        sensor, a, b = rng.choice(list(SIDES)), rng.gauss(0, 1), rng.gauss(20, 5)
        yield sensor, Reading({"vibration": a, "temperature": b}, SIDES[sensor] * a + 0.1 * (b - 20) > 0)


class Learner(StatefulBatchLogic):
    """The model of one sensor."""

    def __init__(self, stored: tuple[bytes, int] | None) -> None:
        self.model = LASVM.from_bytes(stored[0]) if stored else LASVM()
        self.n_wrong = stored[1] if stored else 0

    def on_batch(self, batch: list[Reading]) -> tuple[list[str], bool]:
        for x, y in batch:
            self.n_wrong += self.model.predict_one(x) != y
            self.model.learn_one(x, y)
        said = f"{self.model.n_seen} readings, {self.n_wrong / self.model.n_seen:.1%} predicted wrongly"
        return [said], StatefulBatchLogic.RETAIN

    def snapshot(self) -> tuple[bytes, int]:
        return self.model.to_bytes(), self.n_wrong


flow = Dataflow("sensors")
stream = op.input("readings", flow, TestingSource(list(readings()), batch_size=500))
answers = op.stateful_batch("learn", stream, Learner)
op.output("print", op.map("show", answers, lambda answer: f"{answer[0]}: {answer[1]}"), StdOutSink())

if __name__ == "__main__":
    run_main(flow)
