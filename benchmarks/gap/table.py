"""Table 3 of the source, ours beside its figures, and which of its claims hold."""

import argparse
import itertools
import statistics
from collections.abc import Iterator

from datasets import GAP_TASKS
from papers.printed import GAP
from shared.tables import shown
from shared.tables import table as markdown
from tqdm import tqdm

from gap.fits import BATCH, CACHE_MB, FAMILY
from gap.jobs import elsewhere

NOISY = ("banana", "a9a", "usps+N")
COLUMNS = {  # of the table: its title and format
    "accuracy": ("accuracy %", "{:.2f}"),
    "PRBEP": ("PRBEP %", "{:.2f}"),
    "AUC": ("AUC", "{:.3f}"),
    "g-means": ("g-means %", "{:.2f}"),
    "support": ("support vectors", "{:.0f}"),
    "K values M": ("kernel values, M", "{:.1f}"),
    "seconds": ("seconds", "{:.2f}"),
}


def means(arguments: argparse.Namespace, task: str, engine: str, **parameters) -> dict | None:
    """Mean figures over the shuffles.  A batch solver does not depend on the order: one run, if the split is fixed."""
    once = engine in BATCH and not GAP_TASKS[task].anew
    if engine not in BATCH and arguments.cache_mb != CACHE_MB:
        parameters["cache_mb"] = arguments.cache_mb
    seeds = range(1 if once else arguments.repeats)
    runs = [run for seed in seeds if (run := elsewhere(arguments.data, "fit", task, engine, seed, **parameters))]
    return {key: statistics.fmean(run[key] for run in runs) for key in runs[0]} if runs else None


def table(arguments: argparse.Namespace) -> None:
    """Table 3, ours / the source's, and which of its claims hold."""
    rows, holds = [], []
    for task in tqdm(arguments.tasks, leave=False):
        found = {engine: means(arguments, task, engine) for engine in (*FAMILY, "SVC")}
        rows += [row_of_table(task, engine, figures) for engine, figures in found.items() if figures]
        if all(found.values()):
            holds += [f"- {task}: {claim}" for claim in claims(task, found)]
    shuffles = f"{arguments.repeats} {'shuffle' if arguments.repeats == 1 else 'shuffles'}"
    print(f"## Table 3\n\nOurs / the source's, {shuffles}, one epoch, no FINISH.\n")
    print(markdown("data|learner|" + "|".join(title for title, _ in COLUMNS.values()), rows))
    print("\n## The source's claims\n\n" + "\n".join(holds), flush=True)


def single(arguments: argparse.Namespace) -> None:
    """Support vectors with steps of one member, which the source takes, and of two."""
    rows = []
    for task, engine in tqdm(
        [*itertools.product(("banana", "usps+N"), FAMILY), ("a9a", "NC"), ("a9a", "I")], leave=False
    ):
        found = [means(arguments, task, engine, steps=kind) for kind in ("single", "pair")]
        rows.append([task, engine, f"{GAP[task, engine].support}", *(shown(run and run["support"]) for run in found)])
    print(f"\n## Single steps\n\nSupport vectors; shuffles: {arguments.repeats}.\n")
    print(markdown("data|learner|the source's|single|pair", rows), flush=True)


def row_of_table(task: str, engine: str, figures: dict) -> list[str]:
    """One row: ours / the source's."""
    known = dict(zip(COLUMNS, GAP.get((task, engine), ()), strict=False))

    def cell(name: str, form: str) -> str:
        theirs = known.get(name)
        return shown(figures.get(name), form) + ("" if theirs is None else f" / {form.format(theirs)}")

    return [task, engine, *(cell(name, form) for name, (_, form) in COLUMNS.items())]


def claims(task: str, rows: dict[str, dict]) -> Iterator[str]:
    """Which of the source's claims hold on this task."""

    def said(holds: bool, claim: str) -> str:
        return f"{'holds' if holds else 'does not hold'}: {claim}"

    for engine in ("NC", "I") if task in NOISY else ():
        share = rows[engine]["support"] / rows["G"]["support"]
        theirs = GAP[task, engine].support / GAP[task, "G"].support
        better = rows[engine]["g-means"] - rows["G"]["g-means"]
        ours = f"{share:.2f} of them (source {theirs:.2f})"
        yield said(share < 0.5, f"{engine} needs under half of G's support vectors: {ours}")
        yield said(better > -0.3, f"{engine} has g-means no worse than G's: {better:+.2f} points")
    least = min(FAMILY, key=lambda engine: rows[engine]["K values M"])
    yield said(least == "I", f"I computes the fewest kernel values: {least} does")
    off = {engine: rows[engine]["accuracy"] - rows["SVC"]["accuracy"] for engine in FAMILY}
    furthest = max(FAMILY, key=lambda engine: abs(off[engine]))
    most = off[furthest]
    yield said(abs(most) <= 0.5, f"accuracy within 0.5 of SVC's: furthest is {furthest} with {most:+.2f}")
