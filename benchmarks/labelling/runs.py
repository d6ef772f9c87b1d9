"""Runs of active learners and of learning from all labels, on the sets of "Learning on the border".

Learning from all labels is scikit-learn's SVC; active learners are LASVM, one tenth of whose questions are drawn at
random, finished after each label.  Test figures are those of a copy after FINISH.  Seconds are CPU seconds on one
thread: of selecting, learning and the final FINISH, without the test figures; of SMOTE and SVC together.
"""

import argparse
import copy
import importlib.util
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from datasets import ACTIVE_TASKS, Data, Task, load
from gap.fits import scores
from sklearn.svm import SVC

import streamsvm
from streamsvm.active import (
    ActiveSelection,
    Answered,
    AutoActiveSelection,
    GradientSelection,
    MarginExhausted,
    MaxLabels,
    RandomSelection,
    Selection,
    StoppingRule,
    Verdict,
    label_pool,
)

SHARES = (
    0.005,
    0.01,
    0.02,
    0.03,
    0.05,
    0.07,
    0.1,
    0.15,
    0.2,
    0.25,
    0.3,
    0.4,
)  # of the labels: where curves are measured
BUDGET = 0.3  # of the labels, where nothing else stops
FULL_LABELS = 1000  # of ACTIVE-all, whose queries score everything
FIGURES = ("g-means", "PRBEP", "AUC")
WITHOUT_SMOTE = importlib.util.find_spec("imblearn") is None


class Method(NamedTuple):
    """A way of active learning."""

    selection: Callable[[np.ndarray], Selection]  # of the labels
    explore: float = 0.1
    weighted: bool = False  # with a weight of sqrt(negatives / positives) on the positive class
    goes_on: bool = True  # after the stop, for the curve
    most_labels: float = math.inf
    most_runs: int = 100


METHODS = {
    "RANDOM": Method(lambda positive: RandomSelection()),
    "GRADIENT": Method(lambda positive: GradientSelection(positive)),
    "ACTIVE-59": Method(lambda positive: ActiveSelection()),
    "ACTIVE-all": Method(lambda positive: ActiveSelection(None), most_labels=FULL_LABELS, most_runs=3),
    "AUTOACTIVE": Method(lambda positive: AutoActiveSelection()),
    "none at random": Method(lambda positive: ActiveSelection(), explore=0.0, goes_on=False),
    "weighted": Method(lambda positive: ActiveSelection(), weighted=True, goes_on=False),
}


class Watched(StoppingRule):
    """Stops as another rule does, or notes when it would have stopped and goes on without it."""

    def __init__(self, rule: StoppingRule, goes_on: bool) -> None:
        self.rule, self.goes_on, self.stopped_at = rule, goes_on, 0

    def observe(self, answered: Answered) -> None:
        self.rule.observe(answered)
        if not self.stopped_at and self.rule.verdict().stop:
            self.stopped_at = answered.n_labels

    def verdict(self) -> Verdict:
        verdict = self.rule.verdict()
        stop, audit = verdict.stop and not self.goes_on, verdict.audit and not self.stopped_at
        return verdict._replace(stop=stop, audit=audit, spent=verdict.spent and stop)


def simulate(data: Data, task: Task, name: str, seed: int) -> dict:
    """Label one after the other; figures at the shares of `SHARES`, and where the rule stops."""
    method, positive, n = METHODS[name], data.y > 0, len(data.y)
    weight = math.sqrt(ratio_of(data)) if method.weighted else 1.0
    model = streamsvm.LASVM(C=task.C, gamma=task.gamma, pos_weight=weight)
    rule = Watched(MarginExhausted() | MaxLabels(int(BUDGET * n)), method.goes_on)
    steps = label_pool(
        model,
        data.X,
        lambda key: bool(positive[key]),
        selection=method.selection(positive),
        stopping=rule,
        explore=method.explore,
        seed=seed,
        tune_gamma=0,
    )
    marks = sorted({FULL_LABELS, *(int(share * n) for share in SHARES)}) if method.goes_on else []
    marks = [mark for mark in marks if mark <= min(method.most_labels, SHARES[-1] * n)]
    curve, stop, seconds = [], None, 0.0
    for step, spent in timed(steps):
        seconds += spent
        stops = rule.stopped_at and stop is None
        if stops or step.n_labels in marks:
            curve.append(measure(model, data, step.n_labels, seconds))
        if stops:
            stop = curve[-1] | {"rule": rule.verdict().why}
        if marks and step.n_labels >= marks[-1]:
            break
    return {"curve": [point for point in curve if point["labels"] in marks], "stop": stop}


def timed(steps: Iterator[Any]) -> Iterator[tuple[Any, float]]:
    """Each step and the CPU seconds it took."""
    while True:
        start = time.process_time()
        step = next(steps, None)
        if step is None:
            return
        yield step, time.process_time() - start


def measure(model: streamsvm.LASVM, data: Data, n_labels: int, seconds: float) -> dict:
    """Test figures of the model as it would be after FINISH."""
    model = copy.deepcopy(model)
    start = time.process_time()
    model.finish()
    seconds += time.process_time() - start
    alpha = model.dual_coef
    counts = {"labels": n_labels, "seconds": seconds, "support": len(alpha)}
    return counts | support_ratio(alpha) | test_figures(model.decision_function_many(data.X_test), data)


def support_ratio(alpha: np.ndarray) -> dict:
    """Negative support vectors for each positive one."""
    return {"ratio": float((alpha < 0).sum() / max(1, (alpha > 0).sum()))}


def test_figures(f: np.ndarray, data: Data) -> dict:
    """In percent but for the AUC."""
    figures = scores(f, data.y_test > 0)
    return {name: figures[name] for name in FIGURES}


def fit_batch(data: Data, task: Task, name: str, seed: int, keep: float) -> dict:
    """SVC on all labels; or undersampled to `keep` negatives for each positive, with SMOTE, or with other costs."""
    start = time.process_time()
    X, y, costs = data.X, data.y, {1: 1.0}
    if name == "undersampled":
        X, y = undersample(data, -1, keep, seed)
    elif name == "SMOTE":
        from imblearn.over_sampling import SMOTE

        X, y = SMOTE(random_state=seed).fit_resample(X, y)
    elif name == "costs":
        costs = {1: ratio_of(data)}
    elif name == "sqrt costs":
        costs = {1: math.sqrt(ratio_of(data))}
    model = SVC(C=task.C, gamma=task.gamma, class_weight=costs).fit(X, y)
    seconds, alpha = time.process_time() - start, model.dual_coef_
    alpha = alpha.toarray() if sp.issparse(alpha) else alpha
    counts = {"labels": len(data.y), "seconds": seconds, "support": int(model.n_support_.sum())}
    return counts | support_ratio(alpha) | test_figures(model.decision_function(data.X_test), data)


def ratio_of(data: Data) -> float:
    """Negatives for each positive in the training part."""
    return float((data.y < 0).sum() / (data.y > 0).sum())


def undersample(data: Data, label: int, keep: float, seed: int) -> tuple[Any, np.ndarray]:
    """The training part with `keep` examples of a class for each of the other (or all of them, if those are fewer)."""
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(data.y == label))
    others = np.flatnonzero(data.y != label)
    rows = np.sort(np.concatenate([others, rows[: round(keep * len(others))]]))
    return data.X[rows], data.y[rows]


class Runs:
    """Does runs, each once; keeps them in a folder if there is one."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.data, self.folder = arguments.data, arguments.results
        self.repeats, self.only_report = arguments.repeats, arguments.report
        self.done: dict[str, dict] = {}
        self.loaded: tuple[str, Data] | None = None

    def of(self, task: str, name: str, imbalance: int | None = None) -> list[dict]:
        """The runs of a method.  What does not depend on the seed is run once."""
        once = name in ("batch", "costs", "sqrt costs") and not ACTIVE_TASKS[task].anew and imbalance is None
        n_runs = 1 if once else min(self.repeats, METHODS[name].most_runs if name in METHODS else self.repeats)
        runs = [self._run(task, name, seed, imbalance) for seed in range(n_runs)]
        return [run for run in runs if run]

    def _run(self, task: str, name: str, seed: int, imbalance: int | None) -> dict | None:
        title = "-".join(str(part).replace(" ", "_") for part in (task, name, imbalance, seed) if part is not None)
        path = self.folder and self.folder / f"{title}.json"
        if title not in self.done and path and path.exists():
            self.done[title] = json.loads(path.read_text())
        if title not in self.done and not self.only_report and not (name == "SMOTE" and WITHOUT_SMOTE):
            start = time.monotonic()
            self.done[title] = self._fit(task, name, seed, imbalance)
            print(f"{title}: {time.monotonic() - start:.1f} s", file=sys.stderr, flush=True)
            if path:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(self.done[title]))
        return self.done.get(title)

    def _fit(self, task: str, name: str, seed: int, imbalance: int | None) -> dict:
        """Undersampling is to the ratio of support vectors that ACTIVE-59 stopped with."""
        about = self._load(task, seed, imbalance), ACTIVE_TASKS[task], name, seed
        if name in METHODS:
            return simulate(*about)
        keep = self._run(task, "ACTIVE-59", seed, imbalance)["stop"]["ratio"] if name == "undersampled" else math.nan
        return fit_batch(*about, keep)

    def _load(self, task: str, seed: int, imbalance: int | None) -> Data:
        """The data; in another split for each seed if the task says so, else always the same."""
        split = seed if ACTIVE_TASKS[task].anew else 0
        title = f"{task} {split}"
        if self.loaded is None or self.loaded[0] != title:
            self.loaded = title, load(ACTIVE_TASKS[task], self.data, split)
        data = self.loaded[1]
        if imbalance is None:
            return data
        X, y = undersample(data, 1, 1 / imbalance, seed)
        return data._replace(X=X, y=y)


def mean(runs: list[dict], key: str) -> float:
    """The mean of a figure over the runs."""
    return statistics.fmean(run[key] for run in runs)


def spread(runs: list[dict], key: str) -> float:
    """The standard deviation of a figure over the runs."""
    return statistics.stdev(run[key] for run in runs) if len(runs) > 1 else 0.0
