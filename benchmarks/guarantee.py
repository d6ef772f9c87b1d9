"""Deciding alone with a guarantee: wrong decisions of each class and the share decided, on streams of many kinds.

    python benchmarks/guarantee.py --data DIR    # all streams; DIR has the sets, see datasets.py
    python benchmarks/guarantee.py               # those that need no folder
    python benchmarks/guarantee.py --quick       # 1500 records of a few streams
    python benchmarks/guarantee.py --few         # how much is decided from 30, 60 and 120 labels
    python benchmarks/guarantee.py --data DIR --plot docs    # docs/guarantee-elec2.svg; needs matplotlib

Prequential: predict, decide, then learn.  All records count, the first ones too.  "Wrong" is the share of a class's
records that were decided alone and wrongly; "block" is the worst share among 1000 successive records of a class.
Beside the guard: ACI with a fixed step and DtACI with eight, class by class with windows of 500 scores.  If they are
installed (`pip install crepes mapie`): crepes, class by class, and MAPIE, calibrated by the last 500 scores again and
again.
"""

import argparse
import time
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from river import datasets
from shared.tables import table
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_digits

from streamsvm import LASVM, OneVsRest
from streamsvm.conformal import ConformalClassifier
from streamsvm.conformal.decision import Decision
from streamsvm.conformal.guard import Guard

try:
    import crepes
except ImportError:
    crepes = None
try:
    from mapie.classification import SplitConformalClassifier
except ImportError:
    SplitConformalClassifier = None

ALPHAS = (0.1, 0.02, 0.01)
TITLES = "stream|records|rule|alpha|wrong by class|block|decided|us"


class Stream(NamedTuple):
    """A stream: its records, the model, and how many records later the labels come."""

    make: Callable[[Path | None, int], tuple[np.ndarray, list]]
    model: Callable[[], Any] = LASVM
    late: int = 0


def _shuffled(X: np.ndarray, y: Any) -> tuple[np.ndarray, list]:
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], [y[i] for i in order]


def _sorted(X: np.ndarray, y: list) -> tuple[np.ndarray, list]:
    order = np.argsort(np.array(y), kind="stable")
    return X[order], [y[i] for i in order]


def _of_river(data: Any, n: int) -> tuple[np.ndarray, list]:
    xs, ys = zip(*data.take(n), strict=True)
    return np.array([list(x.values()) for x in xs], float), list(ys)


def _stored(folder: Path | None, name: str, positive: Any, n: int, *, shuffle: bool = False) -> tuple[np.ndarray, list]:
    if folder is None:
        raise FileNotFoundError("it needs --data")
    with np.load(folder / name / f"{name}.npz") as z:
        X = sp.csr_matrix((z["data"], z["indices"], z["indptr"]), z["shape"]).toarray() if "indptr" in z else z["X"]
        y = np.isin(z["y"], positive).tolist()
    X = np.asarray(X, float)
    X, y = _shuffled(X, y) if shuffle else (X, y)
    return X[:n], y[:n]


def _flip(n: int) -> tuple[np.ndarray, list]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    y = (X[:, 0] * X[:, 1] > 0) ^ (rng.random(n) < 0.1)
    y[n // 3 :] = ~y[n // 3 :]
    return X, y.tolist()


def _rare(n: int) -> tuple[np.ndarray, list]:
    rng = np.random.default_rng(0)
    y, X = rng.random(n) < 0.005, rng.normal(size=(n, 6))
    X[y] += rng.normal(1.6, 0.6, size=(int(y.sum()), 6))
    return X, y.tolist()


def _digits(n: int) -> tuple[np.ndarray, list]:
    X, y = load_digits(return_X_y=True)
    X, labels = _shuffled(X, y.tolist())
    return X[:n], labels[:n]


def _several() -> OneVsRest:
    return OneVsRest(LASVM())


def _window() -> LASVM:
    return LASVM(window=500)


STREAMS = {
    "bananas": Stream(lambda d, n: _of_river(datasets.Bananas(), n)),
    "phishing": Stream(lambda d, n: _of_river(datasets.Phishing(), n)),
    "flip: the concept turns": Stream(lambda d, n: _flip(n), lambda: LASVM(window=1000)),
    "rare: 0.5 % positive": Stream(lambda d, n: _rare(n)),
    "bananas, sorted by class": Stream(lambda d, n: _sorted(*_of_river(datasets.Bananas(), n))),
    "segments, 7 classes": Stream(lambda d, n: _of_river(datasets.ImageSegments(), n), _several),
    "digits, 10 classes": Stream(lambda d, n: _digits(n), _several),
    "bananas, 500 late": Stream(lambda d, n: _of_river(datasets.Bananas(), n), late=500),
    "elec2": Stream(lambda d, n: _stored(d, "elec2", 1, n), _window),
    "ijcnn1": Stream(lambda d, n: _stored(d, "ijcnn1", 1, n)),
    "creditcard": Stream(lambda d, n: _stored(d, "creditcard_subset", 1, n)),
    "letter, A-M": Stream(lambda d, n: _stored(d, "letter", range(13), n)),
    "satimage, class 4": Stream(lambda d, n: _stored(d, "satimage", 4, n, shuffle=True)),
    "covtype, class 2": Stream(lambda d, n: _stored(d, "covtype_subset", 2, n)),
    "a9a": Stream(lambda d, n: _stored(d, "a9a", 1, n)),
    "elec2, 500 late": Stream(lambda d, n: _stored(d, "elec2", 1, n), _window, 500),
    "ijcnn1, 500 late": Stream(lambda d, n: _stored(d, "ijcnn1", 1, n), late=500),
    "ijcnn1, 5000 late": Stream(lambda d, n: _stored(d, "ijcnn1", 1, n), late=5000),
}
QUICK = ("bananas", "flip: the concept turns", "segments, 7 classes", "bananas, 500 late")

# -------------------------------------------------------------------------------------------------------------- the p


def probabilities(stream: Stream, X: np.ndarray, y: list) -> list[dict]:
    """What the model says of each record when it comes."""
    model, found, waiting = stream.model(), [], deque()
    for x, label in zip(X, y, strict=True):
        row = dict(enumerate(x.tolist()))
        margin = model.decision_function_one(row)
        found.append(model.predict_proba_one(row))
        waiting.append((row, label, margin))
        if len(waiting) > stream.late:
            row, label, margin = waiting.popleft()
            model.learn_one(row, label, margin=margin if stream.late else None)
    return found


# ---------------------------------------------------------------------------------------------------------- the rules


class Ours:
    """The guard, as `ConformalClassifier` has it."""

    def __init__(self, alpha: float) -> None:
        self.guard = Guard(alpha, 1.0)
        self.note = self.guard.note

    def decide(self, p: dict) -> Decision:
        return self.guard.decide(None, p)


class Window:
    """The scores of a class, and a level that each label steers."""

    def __init__(self, alpha: float, steps: tuple[float, ...]) -> None:
        self.alpha, self.arrived, self.ordered = alpha, deque(), []
        self.steps, self.levels = np.array(steps), np.full(len(steps), alpha)
        self.weights, self.level = np.full(len(steps), 1 / len(steps)), alpha
        k, length = len(steps), 500  # DtACI's constants for intervals of 500
        scale = (1 - alpha) ** 2 * alpha**3 + alpha**2 * (1 - alpha) ** 3
        self.rate, self.sharing = np.sqrt(3 / length) * np.sqrt((np.log(k * length) + 2) / scale), 1 / (2 * length)

    def threshold(self) -> float:
        k = int(min(self.level, 1.0) * (len(self.ordered) + 1))
        return self.ordered[min(k, len(self.ordered)) - 1] if k > 0 and self.ordered else -1.0

    def note(self, p: float) -> None:
        rank = (1 + bisect_right(self.ordered, p)) / (len(self.ordered) + 1)
        losses = self.alpha * (rank - self.levels) - np.minimum(0, rank - self.levels)
        self.levels += self.steps * (self.alpha - (self.levels > rank))
        weights = self.weights * np.exp(-self.rate * (losses - losses.min()))
        self.weights = (1 - self.sharing) * weights / weights.sum() + self.sharing / len(weights)
        self.level = float((self.weights * self.levels).sum() / self.weights.sum())
        self.arrived.append(p)
        insort(self.ordered, p)
        if len(self.arrived) > 500:
            del self.ordered[bisect_left(self.ordered, self.arrived.popleft())]


class Adaptive:
    """Adaptive conformal inference: sets that may be empty; one label is a decision, none is a question."""

    steps: tuple[float, ...] = (0.02,)

    def __init__(self, alpha: float) -> None:
        self.alpha, self.classes = alpha, {}

    def decide(self, p: dict) -> Decision:
        kept = [c for c in p if c not in self.classes or p[c] >= self.classes[c].threshold()]
        return Decision(tuple(sorted(kept, key=p.get, reverse=True)), p, None, None, 0)

    def note(self, t: int, said: Decision, y: Any) -> None:
        self.classes.setdefault(y, Window(self.alpha, self.steps)).note(said.p.get(y, 0.0))


class Several(Adaptive):
    """DtACI: eight steps, weighted by their losses."""

    steps = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128)


class Crepes(Adaptive):
    """A conformal classifier of crepes for each class, fitted to its last 500 scores at each label."""

    def decide(self, p: dict) -> Decision:
        kept = [c for c in p if c not in self.classes or self._p_value(c, 1.0 - p[c]) > self.alpha]
        return Decision(tuple(sorted(kept, key=p.get, reverse=True)), p, None, None, 0)

    def _p_value(self, c: Any, strangeness: float) -> float:
        scores, fitted = self.classes[c]
        return float(fitted.predict_p(np.array([[strangeness]]), smoothing=False)[0, 0]) if scores else 1.0

    def note(self, t: int, said: Decision, y: Any) -> None:
        scores, fitted = self.classes.setdefault(y, (deque(maxlen=500), crepes.ConformalClassifier()))
        scores.append(1.0 - said.p.get(y, 0.0))
        fitted.fit(np.array(scores))


class Given(ClassifierMixin, BaseEstimator):
    """A classifier whose examples are the probabilities themselves."""

    def __init__(self, labels: tuple = ()) -> None:
        self.labels = labels
        self.classes_, self.n_features_in_ = np.arange(len(labels)), len(labels)

    def fit(self, X: Any, y: Any) -> "Given":
        """Nothing is learned."""
        return self

    def predict_proba(self, X: Any) -> Any:
        """The examples."""
        return X

    def predict(self, X: Any) -> Any:
        """The numbers of the most probable labels."""
        return X.argmax(axis=1)


class Mapie:
    """MAPIE, for all classes together, calibrated after every 50 records by the last 500."""

    def __init__(self, alpha: float) -> None:
        self.alpha, self.last, self.fitted, self.labels, self.n = alpha, deque(maxlen=500), None, (), 0

    def decide(self, p: dict) -> Decision:
        kept = list(p)
        if self.fitted is not None:
            [sets] = self.fitted.predict_set(self._row(p)[np.newaxis])[1][:, :, 0]
            kept = [c for c in p if c not in self.labels or sets[self.labels.index(c)]]
        return Decision(tuple(sorted(kept, key=p.get, reverse=True)), p, None, None, 0)

    def _row(self, p: dict) -> np.ndarray:
        row = np.array([p.get(c, 0.0) + 1e-12 for c in self.labels])
        return row / row.sum()

    def note(self, t: int, said: Decision, y: Any) -> None:
        self.last.append((said.p, y))
        self.n += 1
        if self.n % 50 or len(self.last) < 2 / self.alpha:
            return
        labels = tuple(sorted({c for _, c in self.last}))
        if len(labels) < 2:
            return
        self.labels = labels
        rows, places = np.array([self._row(p) for p, _ in self.last]), [self.labels.index(c) for _, c in self.last]
        self.fitted = SplitConformalClassifier(Given(self.labels), confidence_level=1.0 - self.alpha, prefit=True)
        self.fitted.conformalize(rows, np.array(places))


RULES = {"ours": Ours, "ACI": Adaptive, "DtACI": Several}
if crepes is not None:
    RULES["crepes"] = Crepes
if SplitConformalClassifier is not None:
    RULES["MAPIE"] = Mapie


def play(rule: Any, found: list[dict], y: list, late: int) -> list[str]:
    """Wrong decisions by class, the worst block, the share decided, and microseconds a record."""
    waiting, wrong, decided, begin = deque(), [], [], time.process_time()
    for t, (p, label) in enumerate(zip(found, y, strict=True)):
        said = rule.decide(p)
        decided.append(said.decided)
        wrong.append(said.is_wrong(label))
        waiting.append((t, said, label))
        if len(waiting) > late:
            rule.note(*waiting.popleft())
    seconds = time.process_time() - begin
    errors, block = [], 0.0
    for c in sorted(set(y)):
        own = np.array([w for w, label in zip(wrong, y, strict=True) if label == c], float)
        errors.append(own.mean())
        sums = np.concatenate([[0.0], own.cumsum()])
        if len(own) >= 1000:
            block = max(block, float((sums[1000:] - sums[:-1000]).max()) / 1000)
    by_class = ", ".join(f"{e:.4f}" for e in errors) if len(errors) == 2 else f"at most {max(errors):.4f}"
    return [by_class, f"{block:.3f}" if block else "-", f"{np.mean(decided):.3f}", f"{1e6 * seconds / len(y):.1f}"]


# ---------------------------------------------------------------------------------------------------------- few labels


class WithoutLeaveOut(ConformalClassifier):
    """By the scores of the stream alone."""

    def _look_at_few(self, is_late: bool) -> None:
        pass


def few(folder: Path | None, seeds: int) -> None:
    """What is decided of the first n records, and of 300 others after them: with and without leave-one-out."""
    rows = []
    for name in ("bananas", "phishing", "elec2", "ijcnn1"):
        try:
            X, y = STREAMS[name].make(folder, 60_000)
        except FileNotFoundError as error:
            print(f"{name}: left out, {error}")
            continue
        for alpha, n in ((0.1, 30), (0.1, 60), (0.1, 120), (0.05, 60), (0.05, 120)):
            found = [_few(X, np.array(y, bool), alpha, n, seed) for seed in range(seeds)]
            means = np.nanmean([each for each in found if each is not None], axis=0)
            shown = (
                text
                for along, share, *wrong in means
                for text in (f"{along:.3f}", f"{share:.3f}", ", ".join(f"{w:.3f}" for w in wrong))
            )
            rows.append([name, str(alpha), str(n), *shown])
            print(*rows[-1], sep=" | ", flush=True)
    print(table("stream|alpha|labels|ours: first n|then|wrong by class|without: first n|then|wrong by class", rows))


def _few(X: np.ndarray, y: np.ndarray, alpha: float, n: int, seed: int) -> list | None:
    """For both ways: the share decided of the first n, that of 300 others, and the share of each class wrong there."""
    order = np.random.default_rng(seed).permutation(len(y))
    known, others = order[:n], order[n : n + 300]
    if min(y[known].sum(), (~y[known]).sum()) < 3:
        return None
    rows, ways = [dict(enumerate(x)) for x in X[order[: n + 300]].tolist()], []
    for kind in (ConformalClassifier, WithoutLeaveOut):
        model, along = kind(LASVM(), alpha), []
        for x, i in zip(rows, known, strict=False):
            along.append(model.decide_one(x).decided)
            model.learn_one(x, bool(y[i]))
        said = [model.decide_one(x) for x in rows[n:]]
        wrong = np.array([s.is_wrong(bool(y[i])) for s, i in zip(said, others, strict=True)])
        decided = np.mean([s.decided for s in said])
        ways.append([np.mean(along), decided, *(wrong[y[others] == c].mean() for c in (False, True))])
    return ways


# ------------------------------------------------------------------------------------------------------------- picture


def draw(folder: Path, path: Path) -> None:
    """Decisions on elec2 with an error of 2 %: the share decided, the errors of each class, and other errors."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": path.stem})
    stream, alpha = STREAMS["elec2"], 0.02
    X, y = stream.make(folder, 60_000)
    found = probabilities(stream, X, y)
    alone, wrong, promised = _along(found, y, alpha)
    figure, (above, below, others) = plt.subplots(3, 1, figsize=(7, 7.5), layout="constrained")
    above.plot(*_means(np.arange(len(y)), alone), color="#333333")
    above.set(ylabel="decided, of the last 1000", ylim=(0, 1), xlabel="records")
    for c, color in ((False, "#1f77b4"), (True, "#d62728")):
        places = np.flatnonzero(np.array(y) == c)
        below.plot(*_means(places, wrong[places]), color=color, label="price up" if c else "price down")
    below.axhline(alpha, color="#333333", linewidth=0.8, label="error = 0.02")
    below.axhline(promised, color="#333333", linewidth=0.8, linestyle=":", label="promised of 1000")
    below.set(ylabel="wrong, of the class's last 1000", ylim=(0, 1.2 * promised), xlabel="records")
    below.legend(frameon=False, ncols=4, fontsize="small")
    errors = (0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15)
    others.plot(errors, [_along(found, y, error)[0].mean() for error in errors], "o-", color="#333333")
    others.set(xlabel="error", ylabel="decided, of all", xlim=(0, None), ylim=(0, 1))
    figure.savefig(path, metadata={"Date": None})


def _along(found: list[dict], y: list, alpha: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Which records are decided, which of them wrongly, and the largest share promised of 1000."""
    rule, alone, wrong = Ours(alpha), np.zeros(len(y)), np.zeros(len(y))
    for t, (p, label) in enumerate(zip(found, y, strict=True)):
        said = rule.decide(p)
        alone[t], wrong[t] = said.decided, said.is_wrong(label)
        rule.note(t, said, label)
    return alone, wrong, rule.guard.promised(1000) / 1000


def _means(places: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every 100th mean of the last 1000 values, and where it ends."""
    sums = np.concatenate([[0.0], values.cumsum()])
    return places[999::100], ((sums[1000:] - sums[:-1000]) / 1000)[::100]


def main() -> None:
    """Run the streams and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--records", type=int, default=60_000, help="largest number of records of a stream")
    parser.add_argument("--few", action="store_true", help="how much is decided from few labels")
    parser.add_argument("--plot", type=Path, metavar="FOLDER", help="draw elec2 into this folder instead")
    given = parser.parse_args()
    if given.plot:
        draw(given.data, given.plot / "guarantee-elec2.svg")
        return
    if given.few:
        few(given.data, 2 if given.quick else 30)
        return
    rows = []
    for name, stream in STREAMS.items():
        if given.quick and name not in QUICK:
            continue
        try:
            X, y = stream.make(given.data, min(given.records, 1500) if given.quick else given.records)
        except FileNotFoundError as error:
            print(f"{name}: left out, {error}")
            continue
        found = probabilities(stream, X, y)
        for alpha in ALPHAS:
            for rule, make in RULES.items():
                rows.append([name, str(len(y)), rule, str(alpha), *play(make(alpha), found, y, stream.late)])
                print(*rows[-1], sep=" | ", flush=True)
    print(table(TITLES, rows))


if __name__ == "__main__":
    main()
