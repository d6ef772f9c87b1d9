"""Learning on the border as it goes: Figures 4 to 9 and Tables 1, 3 and 4 of its source.

    python benchmarks/border_figures.py --data DIR --plot DIR    # tables and pictures: some minutes
    python benchmarks/border_figures.py --data DIR --parts roc
    python benchmarks/border_figures.py --data DIR --quick       # one set, few labels

`folds`: usps in three folds: support vectors and g-means over labels, and where the number of support vectors no longer
changes.  `waveform`, `adult`: g-means and PRBEP over labels at several imbalances.  `roc`: a9a, after active and random
labels and after all.  `ratio`: negative support vectors for each positive one, over labels.  `ways`: g-means of five
ways to learn over labels, on letter and satimage.  `ranks`: the tables, on five of the source's 18 sets: g-means, AUC,
support vectors and seconds; PRBEP of the five ways, their mean ranks, and Wilcoxon's test of the active way against
undersampling.  As in the source, ways that are equal share the best of their ranks.  A sixth set, abalone, has its
label among its features there: all five ways have 100 % and rank 1.

AL asks about the closest of 59 random examples, RS about any; LASVM does one REPROCESS after each, figures are those of
a copy after FINISH.  AL stops where the number of support vectors grew by at most 1 % over the last tenth of its
labels, or after 40 % of all.
Source: Ertekin, Huang, Bottou, Giles, "Learning on the border: active learning in imbalanced data classification", CIKM
2007.  active.py has another rule of when to stop.
"""

import argparse
import copy
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from datasets import ACTIVE_TASKS, Data, Task, load
from gap.fits import scores
from labelling.runs import fit_batch, undersample
from lasvm import AS_PRINTED
from papers.printed import ADULT_AUC, BORDER, RANKS, Stopped
from scipy.stats import rankdata, wilcoxon
from selection import chosen, first_of_each
from shared.clock import cpu_seconds
from shared.tables import table
from sklearn.metrics import roc_curve
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits
from tqdm import tqdm

import streamsvm
from streamsvm.active import ActiveSelection, ArrayPool, RandomSelection, Selection

WAYS: dict[str, Selection] = {"AL": ActiveSelection(), "RS": RandomSelection()}
STEP, BUDGET = 0.02, 0.4  # of the labels: how often figures are taken, and how far
FLAT = 1.01  # growth of the number of support vectors at which AL stops
FOLDS = 3
FIGURES = {"g_means": "g-means", "prbep": "PRBEP"}
PICTURES = {"waveform": "waveform", "a9a-10k": "adult"}
RANKED = ("usps", "letter", "satimage", "reuters", "mnist-10k", "abalone-9")  # the source's sets that can be had
SHARES = (0.05, 0.1, 0.2, 0.4, 1.0)  # of the labels, in Figure 9
METHODS = ("batch", "undersampled", "SMOTE", "costs")


class Point(NamedTuple):
    """After so many labels; g-means and PRBEP in percent."""

    labels: int
    g_means: float
    prbep: float
    auc: float
    support: int
    ratio: float
    f: np.ndarray  # of the test part
    seconds: float  # CPU seconds of asking and learning so far, and of FINISH


def followed(data: Data, task: Task, way: str, budget: float, seed: int = 0) -> list[Point]:
    """The figures on the way."""
    model, y, points = streamsvm.LASVM(C=task.C, gamma=task.gamma, **AS_PRINTED), data.y, []
    pool, begin = ArrayPool(data.X), first_of_each(y)
    for key in begin:
        model.learn_many(data.X[key : key + 1], y[key : key + 1])
        pool.discard(int(key))
    every, most = max(1, int(STEP * len(y))), int(budget * len(y))
    start = time.process_time()
    for n, key in enumerate(chosen(pool, model, WAYS[way], seed), start=len(begin) + 1):
        model.learn_many(data.X[key : key + 1], y[key : key + 1])
        if n % every == 0:
            learned = time.process_time()
            points.append(point_of(model, data, n, learned - start))
            start += time.process_time() - learned  # the figures
        if n >= most:
            break
    return points


def point_of(model: Any, data: Data, n: int, seconds: float) -> Point:
    """The figures of a copy after FINISH."""
    model = copy.deepcopy(model)
    seconds += cpu_seconds(model.finish)
    f = model.decision_function_many(data.X_test)
    figures, alpha = scores(f, data.y_test > 0), model.dual_coef
    ratio = float((alpha < 0).sum() / max(1, (alpha > 0).sum()))
    return Point(n, figures["g-means"], figures["PRBEP"], figures["AUC"], len(alpha), ratio, f, seconds)


def stop_of(points: list[Point]) -> Point:
    """Where the number of support vectors is flat; the last point if it never is."""
    for point in points:
        before = [p for p in points if p.labels <= 0.9 * point.labels]
        if before and point.support <= FLAT * before[-1].support:
            return point
    return points[-1]


def some(data: Data, arguments: argparse.Namespace) -> Data:
    """The first examples, for a quick look."""
    return data._replace(X=data.X[:1500], y=data.y[:1500]) if arguments.quick else data


def draw(path: Path, title: str, lines: dict[str, tuple[list, list]], x_label: str, y_label: str) -> None:
    """Some curves."""
    from matplotlib.figure import Figure

    axes = Figure(figsize=(6, 3.6), layout="constrained").subplots()
    for name, (x, y) in lines.items():
        axes.plot(x, y, linewidth=1.3, label=name)
    axes.set(title=title, xlabel=x_label, ylabel=y_label)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
    path.parent.mkdir(parents=True, exist_ok=True)
    axes.figure.savefig(path, dpi=65)


# ---------------------------------------------------------------------------------------------------------------- parts


def folds(arguments: argparse.Namespace) -> None:
    """Figure 4, on usps: the category of the source is not to be had."""
    task = ACTIVE_TASKS["usps"]
    data = some(load(task, arguments.data), arguments)
    fold = np.arange(len(data.y)) % FOLDS
    rows, lines = [], {}
    for k in range(FOLDS):
        own = Data(data.X[fold != k], data.y[fold != k], data.X[fold == k], data.y[fold == k])
        points = followed(own, task, "AL", 0.1 if arguments.quick else BUDGET)
        stop, end = stop_of(points), points[-1]
        rows.append([str(k + 1), *(f"{p.labels}, {p.support}, {p.g_means:.2f}" for p in (stop, end))])
        lines[f"fold {k + 1}"] = [p.labels for p in points], [p.support for p in points]
    print("\nFigure 4, usps, 0 against the rest, three folds: labels, support vectors, g-means %\n")
    print(table("fold|where the support vectors are flat|at the end", rows), flush=True)
    if arguments.plot:
        draw(arguments.plot / "border-folds.png", "usps, AL, three folds", lines, "labels", "support vectors")


def waveform(arguments: argparse.Namespace) -> None:
    """Figure 5: g-means."""
    imbalanced(arguments, "waveform", (2, 4, 8, 16, 32), "g_means")


def adult(arguments: argparse.Namespace) -> None:
    """Figure 6: PRBEP."""
    imbalanced(arguments, "a9a-10k", (3, 10, 20, 30), "prbep")


def imbalanced(arguments: argparse.Namespace, name: str, ratios: tuple[int, ...], figure: str) -> None:
    """Positives are taken out at random until there are so many negatives for each of them."""
    task = ACTIVE_TASKS[name]
    whole = load(task, arguments.data)
    rows, lines, title = [], {}, FIGURES[figure]
    for ratio in ratios[:1] if arguments.quick else ratios:
        X, y = undersample(whole, 1, 1 / ratio, 0)
        order = np.random.default_rng(0).permutation(len(y))
        data = some(Data(X[order], y[order], whole.X_test, whole.y_test), arguments)
        f = SVC(C=task.C, gamma=task.gamma).fit(data.X, data.y).decision_function(data.X_test)
        cells = [f"{scores(f, data.y_test > 0)[title]:.2f}"]
        for way in WAYS:
            points = followed(data, task, way, 0.1 if arguments.quick else BUDGET)
            labels, values = [p.labels for p in points], [getattr(p, figure) for p in points]
            cells += [f"{max(values):.2f} at {labels[int(np.argmax(values))]}", f"{values[-1]:.2f}"]
            lines[f"{way}, {ratio} : 1"] = labels, values
        rows.append([f"{ratio} : 1", *cells])
    print(f"\n## {name} by imbalance\n\n{title} %: of all labels, the highest value on the way, and the last.\n")
    print(table("imbalance|all labels|AL, highest|AL, last|RS, highest|RS, last", rows), flush=True)
    if arguments.plot:
        picture = arguments.plot / f"border-{PICTURES[name]}.png"
        draw(picture, f"{name}, imbalance", lines, "labels", f"{title}, %")


def roc(arguments: argparse.Namespace) -> None:
    """Figure 7, on Adult."""
    task = ACTIVE_TASKS["a9a-10k"]
    data = some(load(task, arguments.data), arguments)
    followed_by = {way: followed(data, task, way, 0.1 if arguments.quick else BUDGET) for way in WAYS}
    stop = stop_of(followed_by["AL"])
    at_stop = next(p for p in followed_by["RS"] if p.labels == stop.labels)
    f = SVC(C=task.C, gamma=task.gamma).fit(data.X, data.y).decision_function(data.X_test)
    found = {
        "active": (stop.auc, stop.f),
        "all labels": (scores(f, data.y_test > 0)["AUC"], f),
        "random, as many labels": (at_stop.auc, at_stop.f),
    }
    rows = [[name, f"{auc:.4f} / {ADULT_AUC[name]:.4f}"] for name, (auc, _) in found.items()]
    print(f"\nFigure 7, a9a, {len(data.y)} examples: AUC; AL stops after {stop.labels} labels\n")
    print(table("|AUC", rows), flush=True)
    if arguments.plot:
        curves = {name: roc_curve(data.y_test > 0, values)[:2] for name, (_, values) in found.items()}
        lines = {name: (list(x), list(y)) for name, (x, y) in curves.items()}
        draw(arguments.plot / "border-roc.png", "a9a", lines, "false positives", "true positives")


def ratio(arguments: argparse.Namespace) -> None:
    """Figure 8."""
    rows = []
    for name in ("usps",) if arguments.quick else ("usps", "reuters"):
        task, lines = ACTIVE_TASKS[name], {}
        data = some(load(task, arguments.data), arguments)
        for way in WAYS:
            points = followed(data, task, way, 0.1 if arguments.quick else BUDGET)
            lines[way] = [p.labels for p in points], [p.ratio for p in points]
            marks = [points[round(share * len(points)) - 1] for share in (0.25, 0.5, 1.0)]
            rows.append(
                [f"{name}, {way}", *(f"{p.labels}: {p.ratio:.2f}" for p in marks), f"{BORDER[name].support_ratio}"]
            )
        if arguments.plot:
            draw(arguments.plot / f"border-ratio-{name}.png", name, lines, "labels", "SV- / SV+")
    print("\nFigure 8: negative support vectors for each positive one\n")
    print(table("|a quarter of the way|half|the last|Table 1", rows), flush=True)


def ways(arguments: argparse.Namespace) -> None:
    """Figure 9: the other ways learn the first examples of a random order."""
    for name in ("letter",) if arguments.quick else ("letter", "satimage"):
        task = ACTIVE_TASKS[name]
        data = some(load(task, arguments.data), arguments)
        budget = 0.1 if arguments.quick else BUDGET
        points = followed(data, task, "AL", budget)
        stop, order = stop_of(points), np.random.default_rng(0).permutation(len(data.y))
        lines = {"AL": ([p.labels for p in points], [p.g_means for p in points])}
        shares = SHARES[-2:] if arguments.quick else SHARES
        sizes = [int(share * len(order)) for share in shares]
        for method in METHODS:
            parts = [data._replace(X=data.X[order[:n]], y=data.y[order[:n]]) for n in sizes]
            lines[method] = sizes, [fit_batch(part, task, method, 0, stop.ratio)["g-means"] for part in parts]
        rows = []
        for k, (share, n) in enumerate(zip(shares, sizes, strict=True)):
            own = [p.g_means for p in points if p.labels <= n]
            reached = f"{own[-1]:.2f}" if own and share <= budget else "-"
            rows.append([f"{100 * share:g} %", reached, *(f"{lines[method][1][k]:.2f}" for method in METHODS)])
        print(
            f"\nFigure 9, {name}: g-means %; AL's support vectors are flat after {stop.labels} of {len(order)} labels\n"
        )
        print(table("labels|AL|all labels|undersampled|SMOTE|different costs", rows), flush=True)
        if arguments.plot:
            draw(arguments.plot / f"border-ways-{name}.png", name, lines, "labels", "g-means, %")


def ranks(arguments: argparse.Namespace) -> None:
    """Tables 1, 3 and 4."""
    learned, rows, every = [], [], []
    for name in tqdm(RANKED[:2] if arguments.quick else arguments.sets, desc="ranks", leave=False):
        task = ACTIVE_TASKS[name]
        data = some(load(task, arguments.data), arguments)
        stop = stop_of(followed(data, task, "AL", 0.1 if arguments.quick else BUDGET))
        found = {method: fit_batch(data, task, method, 0, stop.ratio) for method in METHODS}
        learned.append([name, *beside_printed(name, found, stop, len(data.y))])
        every.append([*(figures["PRBEP"] for figures in found.values()), stop.prbep])
        theirs = printed_of(name)
        printed = [f" / {value:.2f}" for value in theirs.prbep] if theirs else [""] * len(every[-1])
        rows.append([name, *(f"{value:.2f}{source}" for value, source in zip(every[-1], printed, strict=True))])
    print("\n## Tables 1 and 3\n")
    print(table("|g-means %: all|AL|AUC %: all|AL|SV-/SV+|labels %|SMOTE, s|AL, s", learned))
    each = np.mean([rankdata([-round(value, 2) for value in row], method="min") for row in every], axis=0)
    mean = [f"{ours:.2f} / {theirs:.2f}" for ours, theirs in zip(each, RANKS.values(), strict=True)]
    print("\n## Table 4\n\nPRBEP %; mean ranks, the source's of its 18 sets.\n")
    print(table("|all labels|undersampled|SMOTE|different costs|AL", [*rows, ["mean rank", *mean]]))
    undersampled, active = (np.array([row[k] for row in every]) for k in (1, 4))
    if (undersampled != active).any():
        p = wilcoxon(active, undersampled).pvalue
        print(f"\nAL against undersampling, Wilcoxon: p = {p:.4f} of {len(every)} sets (the source 0.0015 of 18)")


def printed_of(name: str) -> Stopped | None:
    """The source's figures of a set, whole or in part."""
    return BORDER.get(name.removesuffix("-10k").removesuffix("-9"))


def beside_printed(name: str, found: dict[str, dict], stop: Point, n: int) -> list[str]:
    """A row of Tables 1 and 3; without the source's figures if it does not have the set."""
    source, batch = printed_of(name), found["batch"]
    ours = [batch["g-means"], stop.g_means, 100 * batch["AUC"], 100 * stop.auc, stop.ratio, 100 * stop.labels / n]
    ours += [found["SMOTE"]["seconds"], stop.seconds]
    if source is None:
        return [f"{one:.2f}" for one in ours]
    theirs = *source.g_means, *source.auc, source.support_ratio, source.labels, *source.seconds
    return [f"{one:.2f} / {other:g}" for one, other in zip(ours, theirs, strict=True)]


PARTS = {"folds": folds, "waveform": waveform, "adult": adult, "roc": roc, "ratio": ratio, "ways": ways, "ranks": ranks}


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files; default: OpenML, which has no reuters")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--sets", nargs="+", default=list(RANKED), choices=list(ACTIVE_TASKS), help="of ranks")
    parser.add_argument("--quick", action="store_true", help="few examples, one or two sets")
    parser.add_argument("--plot", type=Path, help="folder for pictures; default: none are drawn")
    arguments = parser.parse_args()
    streamsvm.warmup(streamsvm.LASVM)
    with threadpool_limits(1):
        for part in arguments.parts:
            PARTS[part](arguments)


if __name__ == "__main__":
    main()
