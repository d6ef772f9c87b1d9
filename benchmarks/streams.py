"""Estimates of the running model along streams; bounded models; a long stream.  `forget.py` is the command line.

`stream`: one LASVM learns in batches of 100.  At every point (each 500 examples) these are compared with the error on
fresh examples, which the model as it is then predicts:

    prequential      predictions made before learning, over the last 500
    LOO, k-fold      StreamingLOO and StreamingKFold (5 folds) over the last 500, asked at each point, run to the end
    LOO, k-fold at P % the same, made every 500 examples with share = P %: the latest that there is

Fresh examples are 5000 of the concept of the moment (synthetic), or the next 500 (elec2, which resemble those just
learned less than these resemble each other; in a random order they do not).  "bias" is the mean
difference over the points, "sd" its spread; "by chance": the spread that samples of these sizes have for the error.

`bounded`: prequential error of models with and without bounds on what they keep, before and after an abrupt change.

`soak`: a long stream of noisy records, learned in batches of 100 with StreamingLOO attached; at twenty points resident
memory of the process, CPU microseconds per record, and the latest estimate beside the error on 5000 fresh examples.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from crossval import say, table
from datasets import Task, load_first

from streamsvm import LASVM
from streamsvm.metrics import prbep_score
from streamsvm.validation import Estimate, StreamingKFold, StreamingLOO
from streamsvm.validation.scores import g_mean

ELEC2 = Task("elec2", 10.0, 0.5, "1", "standard", 6000, "electricity", "UP")
BATCH, POINT, MEMORY, FOLDS = 100, 500, 500, 5
FRESH = 5000
SCORES = ("error", "g_mean", "prbep")
WARM_UP = 1000  # examples before the first point that counts
STREAMS = "drifting", "elec2", "elec2-shuffled"
HOLD_OUT, PREQUENTIAL = "hold-out", "prequential"
N_DRIFT, TURN = 6000, 2.0  # examples; radians by which the boundary turns in the middle


class Stream(NamedTuple):
    """Examples in their order, and those that stand for the moment after the first n."""

    name: str
    X: np.ndarray
    y: np.ndarray
    fresh: Any  # n -> X, y
    C: float
    gamma: float
    n_fresh: int
    change: int | None = None


class Scores(NamedTuple):
    """Of some predictions."""

    error: float
    g_mean: float
    prbep: float


def scores_of(y: np.ndarray, f: np.ndarray) -> Scores:
    """From labels and decision values."""
    return Scores(float(np.mean(y != (f > 0))), g_mean(y, f > 0), prbep_score(y, f))


# ------------------------------------------------------------------------------------------------------------- streams


def concept(n: int, angle: float, rng: np.random.Generator, noise: float = 0.4) -> tuple[np.ndarray, np.ndarray]:
    """Normal examples in four dimensions, parted by a curve that is turned by an angle, labels blurred near it."""
    X = rng.normal(size=(n, 4))
    side = np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1] + 0.5 * X[:, 2] ** 2 - 0.5
    return X, side + noise * rng.normal(size=n) > 0.0


def drifting(n: int = N_DRIFT, seed: int = 0) -> Stream:
    """A concept that changes at once, half-way."""
    rng, half = np.random.default_rng(seed), n // 2
    parts = concept(half, 0.0, rng), concept(n - half, TURN, rng)
    X, y = (np.concatenate(both) for both in zip(*parts, strict=True))

    def fresh(begin: int) -> tuple[np.ndarray, np.ndarray]:
        return concept(FRESH, 0.0 if begin <= half else TURN, np.random.default_rng([seed, begin]))

    return Stream("drifting", X, y, fresh, 10.0, 0.2, FRESH, half)


def opposite(n: int, seed: int = 0) -> Stream:
    """A concept that becomes its opposite half-way; a quarter of all labels is wrong at any time."""
    rng, half = np.random.default_rng(seed), n // 2
    X, y = concept(n, 0.0, rng, noise=0.0)
    truth = y ^ (np.arange(n) >= half)

    def fresh(begin: int) -> tuple[np.ndarray, np.ndarray]:
        X, y = concept(FRESH, 0.0, np.random.default_rng([seed, begin]), noise=0.0)
        return X, y if begin <= half else ~y

    return Stream("opposite", X, truth ^ (rng.random(n) < 0.25), fresh, 1.0, 0.2, FRESH, half)


def elec2(folder: Path | None, n: int, shuffled: bool = False) -> Stream:
    """The first examples of elec2, in the order of time, or in a random one."""
    X, y = load_first(ELEC2._replace(n_train=n + POINT), folder)
    if shuffled:
        order = np.random.default_rng(0).permutation(len(y))
        X, y = X[order], y[order]

    def fresh(begin: int) -> tuple[np.ndarray, np.ndarray]:
        return X[begin : begin + POINT], y[begin : begin + POINT] > 0

    name = "elec2-shuffled" if shuffled else "elec2"
    return Stream(name, X[:n], y[:n] > 0, fresh, ELEC2.C, ELEC2.gamma, POINT)


# ----------------------------------------------------------------------------------------------------------- estimates


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
    print(f"\n### {stream.name}: n = {len(stream.y)}, {len(course.points)} points, {n_support} support vectors\n")
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


# ------------------------------------------------------------------------------------------------------------- bounded

BOUNDS: dict[str, dict[str, Any]] = {
    "unbounded": {},
    "window=2000": {"window": 2000},
    "window=500": {"window": 500},
    **{f'budget=500, "{how}"': {"budget": 500, "on_budget": how} for how in ("remove", "project", "merge")},
    'budget=500, "remove", window=2000': {"budget": 500, "on_budget": "remove", "window": 2000},
}


def prequential(stream: Stream, **bounds: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Wrong predictions, and members and seconds after each batch."""
    model = LASVM(C=stream.C, gamma=stream.gamma, **bounds)
    wrong, members, seconds = np.ones(len(stream.y), bool), [], []
    for begin in range(0, len(stream.y), BATCH):
        part = slice(begin, begin + BATCH)
        if begin:
            wrong[part] = (model.decision_function_many(stream.X[part]) > 0) != stream.y[part]
        start = time.perf_counter()
        model.learn_many(stream.X[part], stream.y[part])
        seconds.append(time.perf_counter() - start)
        members.append(model.n_members)
    return wrong, np.array(members), np.array(seconds)


def bounded(options: argparse.Namespace) -> None:
    """Print what bounds do around an abrupt change."""
    for one in (drifting(options.examples), opposite(options.examples)):
        curves = show_bounded(one)
        if options.pictures:
            draw_bounded(one, curves, options.pictures / f"forget-bounded-{one.name}.png")


def show_bounded(one: Stream) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Print prequential errors before and after the change; wrong predictions and members by the bounds' names."""
    half, n = len(one.y) // 2, len(one.y)
    parts = [("before", slice(half // 2, half)), ("first 500 after", slice(half, half + 500))]
    parts += [("next 500", slice(half + 500, half + 1000)), ("next 1000", slice(half + 1000, half + 2000))]
    parts += [("end", slice(n - (n - half) // 4, n))]
    rows, curves = [], {}
    for name, bounds in BOUNDS.items():
        wrong, members, seconds = prequential(one, **bounds)
        curves[name] = wrong, members
        errors = [f"{100 * wrong[part].mean():.2f}" for _, part in parts]
        late = 1e6 * seconds[-len(seconds) // 4 :].mean() / BATCH
        rows.append([name, *errors, str(members.max()), str(members[-1]), f"{late:.0f}"])
    print(f"\n### {one.name}: abrupt change after {half} of {n} examples, prequential error %\n")
    heads = "|".join(name for name, _ in parts)
    print(table(f"model|{heads}|most members|at the end|us per example, last quarter", rows), flush=True)
    return curves


def draw_bounded(stream: Stream, curves: dict[str, tuple[np.ndarray, np.ndarray]], picture: Path) -> None:
    """Errors over the last 500 examples, and members."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    for name, (wrong, members) in curves.items():
        rolling = np.convolve(wrong, np.ones(POINT) / POINT, "valid")
        above.plot(np.arange(POINT, len(wrong) + 1), 100 * rolling, label=name, lw=1.2)
        below.plot(BATCH * np.arange(1, len(members) + 1), members, lw=1.2)
    above.set_ylabel(f"prequential error % of the last {POINT}")
    above.legend(fontsize="small")
    below.set(xlabel="examples", ylabel="members")
    for axes in (above, below):
        axes.axvline(stream.change, color="grey", lw=0.8)
        axes.grid(alpha=0.3)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=120)


# ---------------------------------------------------------------------------------------------------------------- soak


def records(n: int, noise: float, seed: int = 0) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batches of a long stream."""
    rng = np.random.default_rng(seed)
    for _ in range(n // BATCH):
        yield concept(BATCH, 0.0, rng, noise)


def soak(options: argparse.Namespace) -> None:
    """Learn a long stream, and print what it takes as it goes on."""
    import psutil

    names = ("budget", "on_budget", "window")
    bounds = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    model = LASVM(C=10.0, gamma=0.2, **bounds)
    loo = StreamingLOO(model, every=5000, share=options.share)
    process, every, rows, spent = psutil.Process(), max(BATCH, options.records // 20), [], []
    begin = time.process_time()
    for batch, (X, y) in enumerate(records(options.records, options.noise), 1):
        before = loo.latest
        loo.learn_many(X, y)
        if loo.latest is not None and loo.latest is not before:
            spent.append(loo.latest.seconds)
        if batch * BATCH % every == 0:
            now = time.process_time()
            figures = process.memory_info().rss / 2**20, 1e6 * (now - begin) / every, 1e3 * np.mean(spent or np.nan)
            spent.clear()
            X, y = concept(FRESH, 0.0, np.random.default_rng([1, batch]), options.noise)
            error = loo.latest.error.value if loo.latest else np.nan
            fresh = np.mean((model.decision_function_many(X) > 0) != y)
            rows.append((batch * BATCH, *figures, model.n_members, 100 * error, 100 * fresh))
            print("{}: {:.1f} MB, {:.1f} us, {:.1f} ms, {} members, {:.2f} %, {:.2f} %".format(*rows[-1]), flush=True)
            begin = time.process_time()
    show_soak(np.array(rows), bounds, options)


def show_soak(rows: np.ndarray, bounds: dict[str, Any], options: argparse.Namespace) -> None:
    """Print the table, compare its second quarter with its last, and draw it."""
    print(f"\n### {options.records} records, noise {options.noise:g}, {bounds or 'no bounds'}\n")
    forms = ("{:.0f}", "{:.1f}", "{:.1f}", "{:.1f}", "{:.0f}", "{:.2f}", "{:.2f}")
    titles = "records|resident MB|CPU us per record|ms per estimate|members|LOO error %|fresh error %"
    print(table(titles, [[form.format(value) for form, value in zip(forms, row, strict=True)] for row in rows]) + "\n")
    early, late = rows[len(rows) // 4 : len(rows) // 2].mean(axis=0), rows[-(len(rows) // 4) :].mean(axis=0)
    say("memory stays flat", f"{early[1]:.1f} MB, later {late[1]:.1f}", late[1] < 1.05 * early[1])
    say("time per record stays flat", f"{early[2]:.1f} us, later {late[2]:.1f}", late[2] < 1.25 * early[2])
    if options.picture:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 6), layout="constrained")
        for axes, column, label in zip(
            figure.subplots(3, 1, sharex=True), (1, 2, 4), ("resident MB", "CPU us per record", "members"), strict=True
        ):
            axes.plot(rows[:, 0], rows[:, column], "o-")
            axes.set_ylabel(label)
            axes.set_ylim(0, 1.1 * rows[:, column].max())
            axes.grid(alpha=0.3)
        figure.axes[-1].set_xlabel("records")
        options.picture.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(options.picture, dpi=120)


def add_commands(kinds: Any) -> None:
    """Add this file's sub-commands to the command line."""
    one = kinds.add_parser("stream", help="the estimates beside fresh examples")
    one.add_argument("--data", type=Path, default=argparse.SUPPRESS, help="folder of npz files; default: OpenML")
    one.add_argument("--streams", nargs="+", default=STREAMS, choices=STREAMS)
    one.add_argument("--examples", type=int, default=ELEC2.n_train, help="of elec2")
    one.add_argument("--shares", nargs="+", type=float, default=[0.1, 1.0], help="of the estimates")
    one.add_argument("--pictures", type=Path, help="folder for the pictures; default: none are drawn")
    one.set_defaults(run=stream)
    one = kinds.add_parser("bounded", help="budget and window around an abrupt change")
    one.add_argument("--examples", type=int, default=12_000)
    one.add_argument("--pictures", type=Path, help="folder for the pictures; default: none are drawn")
    one.set_defaults(run=bounded)
    one = kinds.add_parser("soak", help="a long stream")
    one.add_argument("--records", type=int, default=1_000_000)
    one.add_argument("--noise", type=float, default=0.4, help="blur of the labels; 0: none")
    one.add_argument("--budget", type=int)
    one.add_argument("--on-budget", choices=["remove", "project", "merge"])
    one.add_argument("--window", type=int)
    one.add_argument("--share", type=float, default=0.1, help="of StreamingLOO")
    one.add_argument("--picture", type=Path, help="file for the picture; default: none is drawn")
    one.set_defaults(run=soak)
