"""What the commands share that work until they are stopped: run, score, label, replay and the demonstrations."""

import gc
import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

import streamsvm
from streamsvm.conformal import ConformalClassifier
from streamsvm.core.threads import VARIABLE

from ...report.charts import decisions_of, estimates_of, predicts_early, table
from ...runtime.health import Heartbeat
from ...runtime.log_output import set_up_logging
from ...runtime.process import Stop, killable, stop_on_signals
from ...runtime.watchdog import Watchdog
from ...settings.sections import Settings
from ...trainer.rerun import Rerun, Stage
from ...trainer.state.state import State

logger = logging.getLogger(__name__)

_TOLD_BEFORE = ("trainer.partition", "trainer.processing", "trainer.serving", "trainer.state", "records")


@contextmanager
def working(settings: Settings) -> Iterator[Stop]:
    """Set up log output, prepare the engine, and handle signals as `stopping` does."""
    set_up_logging(settings.daemon.log_format)
    logger.info("preparing the engine")
    begin = time.perf_counter()
    with killable():
        has_classes = settings.label.vocabulary is not None
        for own in (settings, *map(settings.serving, settings.models())):
            streamsvm.warmup(own.model.implementation, removal=own.removes(), classes=has_classes)
        if settings.decide.error:  # its code is compiled by the first label
            ConformalClassifier(streamsvm.LASVM()).learn_one({"x": 1.0}, True)
    logger.info("engine ready after %.1f seconds", time.perf_counter() - begin)
    settle_memory()
    with on_one_core(), stopping(settings) as stop, logging_redirect_tqdm():
        yield stop


@contextmanager
def replaying(settings: Settings) -> Iterator[Stop]:
    """As `working`, without what trainers say of the log, because they have said it before; errors are shown."""
    rooms = [logging.getLogger(f"streamsvm.connectors.{name}") for name in _TOLD_BEFORE]
    with working(settings) as stop:
        for room in rooms:
            room.setLevel(logging.ERROR)
        try:
            yield stop
        finally:
            for room in rooms:
                room.setLevel(logging.NOTSET)


def shown(rerun: Rerun, stage: Stage, what: str, stop: Stop) -> State | None:
    """Read on to the end of a stage, beside a bar that says how many events were read."""
    with tqdm(desc=what, total=stage.events, unit=" records", disable=None) as bar:
        return rerun.run(stage, stop, lambda state: bar.update(state.offset - bar.n))


@contextmanager
def on_one_core() -> Iterator[None]:
    """Predict batches on one core, unless the environment says how many: other partitions' processes use the others."""
    if VARIABLE in os.environ:
        yield
        return
    streamsvm.set_num_threads(1)
    try:
        yield
    finally:
        streamsvm.set_num_threads(None)


@contextmanager
def stopping(settings: Settings) -> Iterator[Stop]:
    """End in order after SIGTERM or SIGINT; kill the process if that takes longer than daemon.shutdown_seconds."""
    with (
        Watchdog(Heartbeat(), 0) as watchdog,
        stop_on_signals(lambda: watchdog.deadline(settings.daemon.shutdown_seconds)) as stop,
    ):
        yield stop


def settle_memory() -> None:
    """Make the garbage collector skip what is loaded now, and look for cycles less often.

    The trainer makes few cycles. With Python's defaults the collector takes an eighth of the trainer's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def show_states(settings: Settings, states: Mapping[int, State]) -> None:
    """Print what each partition's model has learned."""
    topic = settings.log.topic
    if not states:
        print(f"no event of topic {topic!r} was consumed yet")
        return
    named = {f"{topic}-{number}": state for number, state in sorted(states.items())}
    print(table(named))
    for line in [*estimates_of(named), *decisions_of(named, settings)]:
        print(line)
    for name, state in named.items():
        if predicts_early(state):
            print(
                f"{name}: there are no scores, because an event is predicted when it comes, long before an annotator's "
                "answer; `streamsvm report` shows how good the model is on random questions"
            )
        elif state.labelling is not None and state.metrics.n:
            print(
                f"{name}: these scores are about the {state.metrics.n:,} labelled events, many of them hard questions; "
                "`streamsvm report` shows how good the model is on random ones"
            )
    for name, state in named.items():
        if state.models.single:  # with a model for each key, every model would have to be loaded
            print(f"model digest of {name}: {state.models.digest()}")
