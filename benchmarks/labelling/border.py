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
classification", CIKM 2007.  `runs` has the learners.
"""

import argparse
import itertools
import time
from pathlib import Path

import numpy as np
from datasets import ACTIVE_TASKS, load

import streamsvm
from labelling.runs import FIGURES, Runs, mean, spread
from streamsvm.active import ActiveSelection, ArrayPool

DEFAULT = ("usps", "letter", "reuters", "spambase", "mnist-10k", "abalone", "a9a")
QUICK = ("waveform",)
OVERLAPPING = ("abalone", "a9a", "a9a-10k")
SWEEPS = {"waveform": (2, 4, 8, 16, 32), "a9a-10k": (3, 5, 10, 20, 30)}  # negatives for each positive
CURVES = ("RANDOM", "GRADIENT", "ACTIVE-59", "ACTIVE-all", "AUTOACTIVE")
COLORS = dict(zip(CURVES, ("#8c8c8c", "#dd8452", "#c44e52", "#8172b3", "#4c72b0"), strict=True))
STOPPED = ("ACTIVE-59", "AUTOACTIVE", "none at random", "weighted")
BATCH = ("batch", "undersampled", "SMOTE", "costs", "sqrt costs")
TITLES = {"none at random": "ACTIVE-59, none random", "weighted": "ACTIVE-59, sqrt costs", "costs": "different costs"}


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
