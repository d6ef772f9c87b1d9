"""Estimates of the running model along streams.

One LASVM learns in batches of 100.  At every point (each 500 examples) these are compared with the error on fresh
examples, which the model as it is then predicts:

    prequential      predictions made before learning, over the last 500
    LOO, k-fold      StreamingLOO and StreamingKFold (5 folds) over the last 500, asked at each point, run to the end
    LOO, k-fold at P % the same, made every 500 examples with share = P %: the latest that there is

"bias" is the mean difference over the points, "sd" its spread; "by chance": the spread that samples of these sizes have
for the error.
"""

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from shared.tables import table

from forgetting.streams import BATCH, ELEC2, FOLDS, MEMORY, POINT, Stream, drifting, elec2
from streamsvm import LASVM
from streamsvm.metrics import prbep_score
from streamsvm.validation import Estimate, StreamingKFold, StreamingLOO
from streamsvm.validation.scores import g_mean

SCORES = ("error", "g_mean", "prbep")
WARM_UP = 1000  # examples before the first point that counts
STREAMS = "drifting", "elec2", "elec2-shuffled"
HOLD_OUT, PREQUENTIAL = "hold-out", "prequential"


class Scores(NamedTuple):
    """Of some predictions."""

    error: float
    g_mean: float
    prbep: float


def scores_of(y: np.ndarray, f: np.ndarray) -> Scores:
    """From labels and decision values."""
    return Scores(float(np.mean(y != (f > 0))), g_mean(y, f > 0), prbep_score(y, f))


class Watched:
    """A model with estimates that are asked at each point, and such that are made along the stream."""

    def __init__(self, model: LASVM, shares: list[float]) -> None:
        self.model, self.n, self.learning = model, 0, 0.0
        self.asked = {"LOO": self._loo(0.0), f"{FOLDS}-fold": self._k_fold(0.0)}
        self.along = {f"LOO at {100 * share:g} %": self._loo(share) for share in shares}
        self.along |= {f"{FOLDS}-fold at {100 * share:g} %": self._k_fold(share) for share in shares}
        self.estimates = self.asked | self.along
        self.spent = dict.fromkeys(self.estimates, 0.0)  # seconds
        self.made = dict.fromkeys(self.estimates, 0)

    def _loo(self, share: float) -> StreamingLOO:
        return StreamingLOO(self.model, every=POINT, memory=MEMORY, share=share)

    def _k_fold(self, share: float) -> StreamingKFold:
        return StreamingKFold(self.model, k=FOLDS, every=POINT, memory=MEMORY, share=share)

    def learn(self, X: np.ndarray, y: np.ndarray) -> None:
        """Learn a batch, and tell the estimates."""
        begin = time.perf_counter()
        self.model.learn_many(X, y)
        self.learning += time.perf_counter() - begin
        rows, ids = [dict(enumerate(row)) for row in X.tolist()], range(self.n, self.n + len(y))
        for name, estimate in self.estimates.items():
            self._note(name, estimate.learned(rows, y.tolist(), [1.0] * len(y), ids))
        self.n += len(y)

    def _note(self, name: str, estimate: Estimate | None) -> None:
        if estimate is not None:
            self.spent[name] += estimate.seconds
            self.made[name] += 1

    def now(self) -> dict[str, Scores]:
        """What each of them says."""
        for name, estimate in self.asked.items():
            self._note(name, estimate.estimate())
        latest = {name: estimate.latest for name, estimate in self.estimates.items() if estimate.latest}
        return {name: Scores(*(getattr(found, score).value for score in SCORES)) for name, found in latest.items()}


class Course(NamedTuple):
    """What was found along a stream."""

    points: list[int]
    scores: list[dict[str, Scores]]  # by name, at each point
    watched: Watched

    def of(self, name: str, score: str) -> np.ndarray:
        """One score at all points; NaN where there was none."""
        return np.array([getattr(at.get(name), score, np.nan) for at in self.scores])

    @property
    def names(self) -> list[str]:
        """Of the estimates."""
        return [PREQUENTIAL, *self.watched.estimates]


def followed_along(stream: Stream, shares: list[float]) -> Course:
    """Learn the stream."""
    watched = Watched(LASVM(C=stream.C, gamma=stream.gamma), shares)
    points, scores, before = [], [], np.empty(len(stream.y))
    for begin in range(0, len(stream.y), BATCH):
        part = slice(begin, begin + BATCH)
        before[part] = watched.model.decision_function_many(stream.X[part]) if begin else 0.0
        watched.learn(stream.X[part], stream.y[part])
        n = begin + BATCH
        if n % POINT or n < WARM_UP:
            continue
        X, y = stream.fresh(n)
        last = slice(n - POINT, n)
        found = {
            HOLD_OUT: scores_of(y, watched.model.decision_function_many(X)),
            PREQUENTIAL: scores_of(stream.y[last], before[last]),
        }
        points.append(n)
        scores.append(found | watched.now())
    return Course(points, scores, watched)


def show_course(stream: Stream, course: Course) -> None:
    """Print bias, spread and the share of time."""
    n_support = course.watched.model.n_support
    print(f"\n### {stream.name}\n\nn = {len(stream.y)}, {len(course.points)} points, {n_support} support vectors.\n")
    truth = {score: course.of(HOLD_OUT, score) for score in SCORES}
    rows = [[HOLD_OUT, *(text for score in SCORES for text in (f"{100 * truth[score].mean():.2f}", ""))]]
    for name in course.names:
        cells = []
        for score in SCORES:
            apart = 100 * (course.of(name, score) - truth[score])
            cells += [f"{np.nanmean(apart):+.2f}", f"{np.nanstd(apart):.2f}"]
        rows.append([name, *cells])
    print(table("estimate|error % bias|sd|g-mean % bias|sd|PRBEP % bias|sd", rows))
    error = truth["error"].mean()
    chance = 100 * np.sqrt(error * (1 - error) * (1 / MEMORY + 1 / stream.n_fresh))
    print(f"\nBy chance, the error of an unbiased estimate has a spread of {chance:.2f}.\n")
    watched = course.watched
    for name, spent in watched.spent.items():
        share = f"{spent:.3f} s beside {watched.learning:.2f} s of learning, {100 * spent / watched.learning:.1f} %"
        print(f"- {name}: {watched.made[name]} estimates, {share}")


def draw_course(stream: Stream, course: Course, picture: Path) -> None:
    """The scores along the stream."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 9), layout="constrained")
    for axes, score in zip(figure.subplots(3, 1, sharex=True), SCORES, strict=True):
        axes.plot(course.points, 100 * course.of(HOLD_OUT, score), "k-", lw=2.5, label="fresh examples")
        for name in course.names:
            style = ":" if "%" in name else "-"
            axes.plot(course.points, 100 * course.of(name, score), style, lw=1.2, label=name)
        if stream.change:
            axes.axvline(stream.change, color="grey", lw=0.8)
        axes.set_ylabel(f"{score.replace('_', '-')} %")
        axes.grid(alpha=0.3)
    figure.axes[0].legend(ncols=3, fontsize="small")
    figure.axes[-1].set_xlabel("examples")
    figure.axes[0].set_title(stream.name)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=120)


def stream(options: argparse.Namespace) -> None:
    """The estimates along both streams."""
    for name in options.streams:
        one = drifting() if name == "drifting" else elec2(options.data, options.examples, name.endswith("shuffled"))
        course = followed_along(one, options.shares)
        show_course(one, course)
        if options.pictures:
            draw_course(one, course, options.pictures / f"forget-{one.name}.png")


def add_command(kinds: Any) -> None:
    """Add this file's sub-command to the command line."""
    one = kinds.add_parser("stream", help="the estimates beside fresh examples")
    one.add_argument("--data", type=Path, default=argparse.SUPPRESS, help="folder of npz files; default: OpenML")
    one.add_argument("--streams", nargs="+", default=STREAMS, choices=STREAMS)
    one.add_argument("--examples", type=int, default=ELEC2.n_train, help="of elec2")
    one.add_argument("--shares", nargs="+", type=float, default=[0.1, 1.0], help="of the estimates")
    one.add_argument("--pictures", type=Path, help="folder for the pictures; default: none are drawn")
    one.set_defaults(run=stream)
