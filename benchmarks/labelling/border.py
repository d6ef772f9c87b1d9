"""Active selection beside learning from all labels, as in the tables and figures of its source.

Parts:

    curves   g-means, PRBEP and AUC against the number of labels, for RANDOM, GRADIENT, ACTIVE-59 (the best of 59 random
             candidates), ACTIVE-all (of everything; three runs of 1000 labels at most) and AUTOACTIVE
    stop     where it stops by itself (59 selected examples in a row outside the margin, then an audit of 59 random
             ones; or a budget of 30 % of the labels), beside learning from all labels: plain, undersampled, with
             SMOTE (imbalanced-learn), with different costs
    sweep    the same over the imbalance: positives are taken out of the training part
    query    what one query costs

The source is Ertekin, Huang, Bottou, Giles, "Learning on the border: active learning in imbalanced data
classification", CIKM 2007.  Learning from all labels is scikit-learn's SVC; active learners are LASVM, one tenth of
whose questions are drawn at random, finished after each label.  Test figures are those of a copy after FINISH.  Seconds
are CPU seconds of selecting, learning and the final FINISH on one thread, without the test figures; of SMOTE and SVC
together.
"""

import argparse
import copy
import importlib.util
import itertools
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from datasets import ACTIVE_TASKS, Data, Task, load
from gap_family import scores
from sklearn.svm import SVC

import streamsvm
from streamsvm.active import (
    ActiveSelection,
    Answered,
    ArrayPool,
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

DEFAULT = ("usps", "letter", "reuters", "spambase", "mnist-10k", "abalone", "a9a")
QUICK = ("usps", "letter")
OVERLAPPING = ("abalone", "a9a", "a9a-10k")
SWEEPS = {"waveform": (2, 4, 8, 16, 32), "a9a-10k": (3, 5, 10, 20, 30)}  # negatives for each positive
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
CURVES = ("RANDOM", "GRADIENT", "ACTIVE-59", "ACTIVE-all", "AUTOACTIVE")
COLORS = dict(zip(CURVES, ("#8c8c8c", "#dd8452", "#c44e52", "#8172b3", "#4c72b0"), strict=True))
STOPPED = ("ACTIVE-59", "AUTOACTIVE", "none at random", "weighted")
WITHOUT_SMOTE = importlib.util.find_spec("imblearn") is None
BATCH = ("batch", "undersampled", "SMOTE", "costs", "sqrt costs")
TITLES = {"none at random": "ACTIVE-59, none random", "weighted": "ACTIVE-59, sqrt costs", "costs": "different costs"}


# ---------------------------------------------------------------------------------------------------------------- runs


class Watched(StoppingRule):
    """Stops as another rule does, or notes when it would have stopped and goes on without it."""

    def __init__(self, rule: StoppingRule, goes_on: bool) -> None:
        self.rule, self.goes_on, self.stopped_at = rule, goes_on, 0

    def observe(self, answered: Answered) -> None:
        self.rule.observe(answered)
        if not self.stopped_at and self.rule.verdict().stop:
            self.stopped_at = answered.n_labels

    def verdict(self) -> Verdict:
        stop, audit, why = self.rule.verdict()
        return Verdict(stop and not self.goes_on, audit and not self.stopped_at, why)


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


# --------------------------------------------------------------------------------------------------------------- parts


def curves(arguments: argparse.Namespace, runs: Runs) -> None:
    """Figures against the number of labels."""
    for task in arguments.tasks:
        found = {name: by_labels for name in CURVES if (by_labels := points(runs.of(task, name)))}
        batch = runs.of(task, "batch")
        titles = [f"{name} ({max(map(len, by_labels.values()))})" for name, by_labels in found.items()]
        for figure in FIGURES:
            digits = 3 if figure == "AUC" else 1
            print(f"\n{task}: {figure} by labels (runs); batch {mean(batch, figure):.{digits}f}\n")
            print(f"{'labels':>6}  {'%':>4}  {'  '.join(f'{title:>15}' for title in titles)}")
            for labels in sorted(set(itertools.chain(*found.values()))):
                cells = [cell(by_labels.get(labels), figure, digits) for by_labels in found.values()]
                n = batch[0]["labels"]
                print(f"{labels:6}  {100 * labels / n:4.1f}  {'  '.join(f'{text:>15}' for text in cells)}", flush=True)
        if "ACTIVE-all" in found:
            compare_searches(task, found)
        if arguments.out:
            draw(task, found, batch, runs, arguments.out)


def points(runs: list[dict]) -> dict[int, list[dict]]:
    """The points of several curves by their number of labels."""
    found: dict[int, list[dict]] = {}
    for run in runs:
        for point in run["curve"]:
            found.setdefault(point["labels"], []).append(point)
    return found


def cell(runs: list[dict] | None, key: str, digits: int) -> str:
    """Mean and spread; a dash without runs."""
    if not runs:
        return "-"
    return f"{mean(runs, key):.{digits}f}" + (f" ±{spread(runs, key):.{digits}f}" if len(runs) > 1 else "")


def compare_searches(task: str, found: dict[str, dict[int, list[dict]]]) -> None:
    """ACTIVE-59 beside a search of everything, where that ended."""
    labels = max(found["ACTIVE-all"])
    both = found["ACTIVE-59"][labels], found["ACTIVE-all"][labels]
    g = [mean(runs, "g-means") for runs in both]
    seconds = [mean(runs, "seconds") for runs in both]
    say(
        g[0] > g[1] - 1,
        f"{task}: ACTIVE-59 is as good as a search of everything after {labels} labels: g-means {g[0]:.1f}, "
        f"{g[1]:.1f}; it takes {seconds[0]:.2f} s instead of {seconds[1]:.1f}",
    )


def say(holds: bool, claim: str) -> None:
    """Print whether a claim holds."""
    print(f"{'holds' if holds else 'does not hold':13}  {claim}", flush=True)


def draw(task: str, found: dict[str, dict[int, list[dict]]], batch: list[dict], runs: Runs, folder: Path) -> None:
    """Draw a task's curves with their spread, the batch figures, and where ACTIVE-59 stops."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.8), layout="constrained")
    stop = mean([run["stop"] for run in runs.of(task, "ACTIVE-59")], "labels")
    for axes, key in zip(figure.subplots(1, len(FIGURES)), FIGURES, strict=True):
        for name, by_labels in found.items():
            labels = sorted(by_labels)
            middle = np.array([mean(by_labels[n], key) for n in labels])
            off = np.array([spread(by_labels[n], key) for n in labels])
            axes.plot(labels, middle, color=COLORS[name], label=name, linewidth=1.4)
            axes.fill_between(labels, middle - off, middle + off, color=COLORS[name], alpha=0.15, linewidth=0)
        axes.axhline(mean(batch, key), color="black", linestyle="--", linewidth=1, label="batch, all labels")
        axes.axvline(stop, color=COLORS["ACTIVE-59"], linestyle=":", linewidth=1, label="ACTIVE-59 stops")
        axes.set(xlabel="labels", ylabel=key, xscale="log")
        axes.grid(alpha=0.3)
    figure.suptitle(f"{task}: mean and standard deviation of the runs")
    axes.legend(fontsize=7)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"active-{task}.png", dpi=80)


HEADER = f"{'':24} runs  {'labels %':>12}  {'g-means':>12}  {'PRBEP':>12}  {'AUC':>12}  SV-/SV+  support  seconds"


def stop(arguments: argparse.Namespace, runs: Runs) -> None:
    """Where it stops by itself, and what learning from all labels gives."""
    claims = {}
    for task in arguments.tasks:
        rows, about = stopped_and_batch(runs, task), ACTIVE_TASKS[task]
        active = rows["ACTIVE-59"]
        print(f"\n{task}, {rows['batch'][0]['labels']} examples, C = {about.C:g}, gamma = {about.gamma:g}\n\n{HEADER}")
        for name, row in rows.items():
            print_row(TITLES.get(name, name), row, rows["batch"])
        audited = sum("confidence" in run["rule"] for run in active)
        print(f"ACTIVE-59 stopped by margin and audit in {audited} of {len(active)} runs, else by the budget")
        claims[task] = claim_stop(task, rows)
        if task in OVERLAPPING and "weighted" in rows:
            claim_combination(task, rows)
    good = [task for task, (is_good, _) in claims.items() if is_good]
    fast = [task for task, (_, is_fast) in claims.items() if is_fast]
    print()
    say(len(good) >= 4, f"within 1 point of batch g-means, under 35 % of the labels, on four sets: {', '.join(good)}")
    say(len(fast) >= 4, f"three times as fast as SMOTE, or more, on four sets: {', '.join(fast)}")


def claim_stop(task: str, rows: dict[str, list[dict]]) -> tuple[bool, bool]:
    """Whether ACTIVE-59 is as good as batch with few labels, and whether it is faster than SMOTE."""
    batch, active = rows["batch"], rows["ACTIVE-59"]
    share, loss = mean(active, "labels") / batch[0]["labels"], mean(batch, "g-means") - mean(active, "g-means")
    good = share < 0.35 and loss <= 1 and mean(batch, "g-means") > 0
    say(good, f"{task}: g-means {-loss:+.1f} points off batch with {100 * share:.1f} % of the labels")
    if "SMOTE" not in rows:
        return good, False
    times = mean(rows["SMOTE"], "seconds") / mean(active, "seconds")
    say(times >= 3, f"{task}: several times as fast as SMOTE: {times:.1f} times")
    return good, times >= 3


def stopped_and_batch(runs: Runs, task: str) -> dict[str, list[dict]]:
    """The figures of all methods, active ones where they stop."""
    rows = {name: [run.get("stop", run) for run in runs.of(task, name)] for name in (*BATCH, *STOPPED)}
    return {name: row for name, row in rows.items() if row}


def print_row(title: str, row: list[dict], batch: list[dict]) -> None:
    """One row of the table; batch has all labels."""
    every = itertools.chain(batch, itertools.repeat(batch[-1]))
    shares = [{"share": 100 * run["labels"] / other["labels"]} for run, other in zip(row, every, strict=False)]
    cells = [cell(shares, "share", 1), *(cell(row, key, 3 if key == "AUC" else 1) for key in FIGURES)]
    print(
        f"{title:24} {len(row):4}  {'  '.join(f'{text:>12}' for text in cells)}  {mean(row, 'ratio'):7.2f}  "
        f"{mean(row, 'support'):7.0f}  {mean(row, 'seconds'):7.2f}",
        flush=True,
    )


def claim_combination(task: str, rows: dict[str, list[dict]]) -> None:
    """Whether weights and selection together are better than either."""
    names = ("batch", "ACTIVE-59", "sqrt costs", "weighted")
    g = {name: mean(rows[name], "g-means") for name in names}
    say(
        g["weighted"] > max(g["batch"], g["ACTIVE-59"]) + 1 and g["weighted"] > g["sqrt costs"] - 1,
        f"{task}: costs and selection combine: g-means batch {g['batch']:.1f}, ACTIVE-59 {g['ACTIVE-59']:.1f}, "
        f"sqrt costs {g['sqrt costs']:.1f}, ACTIVE-59 with sqrt costs {g['weighted']:.1f}",
    )


def sweep(arguments: argparse.Namespace, runs: Runs) -> None:
    """The same over the imbalance; the test part stays as it is."""
    names = ("batch", "SMOTE", "costs", "ACTIVE-59", "weighted")
    for task, ratios in SWEEPS.items():
        found = {}
        for ratio in ratios:
            rows = {name: row for name in names if (row := runs.of(task, name, ratio))}
            if not rows:
                continue
            found[ratio] = {name: [run.get("stop", run) for run in row] for name, row in rows.items()}
            print(f"\n{task}, {ratio} negatives for each positive\n\n{HEADER}")
            for name, row in found[ratio].items():
                print_row(TITLES.get(name, name), row, rows["batch"])
        if arguments.out:
            draw_sweep(task, found, arguments.out)


def draw_sweep(task: str, found: dict[int, dict[str, list[dict]]], folder: Path) -> None:
    """Draw the figures against the imbalance."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.8), layout="constrained")
    for axes, key in zip(figure.subplots(1, len(FIGURES)), FIGURES, strict=True):
        for name in next(iter(found.values())):
            means = [mean(rows[name], key) for rows in found.values()]
            axes.plot(list(found), means, "o-", markersize=3, label=TITLES.get(name, name))
        axes.set(xlabel="negatives for each positive", ylabel=key, xscale="log", xticks=list(found))
        axes.set_xticklabels(list(found))
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    figure.suptitle(f"{task}: imbalance; active learners where they stop")
    axes.legend(fontsize=7)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"active-sweep-{task}.png", dpi=80)


def query(arguments: argparse.Namespace, _: Runs) -> None:
    """What a query over 59 candidates costs, with the model of all labels."""
    print("\nCPU milliseconds of a query over 59 candidates, by a model of all labels: the fastest tenth of 500\n")
    for task in arguments.tasks:
        data, parameters = load(ACTIVE_TASKS[task], arguments.data), ACTIVE_TASKS[task]
        model = streamsvm.LASVM(C=parameters.C, gamma=parameters.gamma)
        model.learn_many(data.X, data.y)
        model.finish()
        pool, rng, took = ArrayPool(data.X), np.random.default_rng(0), []
        for _ in range(500):
            start = time.process_time()
            ActiveSelection().choose(pool, model, rng)
            took.append(1e3 * (time.process_time() - start))
        fast, middle = np.quantile(took, (0.1, 0.5))
        features = data.X.shape[1]
        print(
            f"{task:10} {features:5} features  {model.n_members:6} members  {fast:6.3f}  median {middle:6.3f}",
            flush=True,
        )
        if task == "usps":
            say(fast <= 0.5, f"at most 0.5 ms on usps: {fast:.3f}")
