"""The gap family beside Table 3 of its source, and what it costs.

    python benchmarks/gap_family.py --data DIR                      # everything, in about a quarter of an hour
    python benchmarks/gap_family.py --data DIR --quick              # usps with wrong labels in one shuffle: a minute
    python benchmarks/gap_family.py --data DIR --parts table --tasks mnist --repeats 1     # all 60000 digits

Table 3 of Ertekin, Bottou, Giles, "Ignorance is Bliss: Non-Convex Online Support Vector Machines" (a manuscript; the
published form is "Nonconvex online support vector machines", IEEE TPAMI 33, 2011), has the figures after one epoch
without FINISH; so have ours.  `SVC` is scikit-learn's, as a reference for all four.  Then follow:
which of the source's claims hold, support vectors with its steps of one member, `sparsify`, what these steps cost,
speed, and sparse input.
Without --data, the sets come from OpenML; reuters is not there.

Every fit runs in a process of its own with one thread; seconds are CPU seconds of the fit alone, with compiled code
loaded before.  Kernel values count again when they are computed again, because their row had to leave the row cache of
256 MB (`--cache-mb`).
"""

import argparse
import itertools
import json
from pathlib import Path

from datasets import GAP_TASKS
from gap.fits import BATCH, CACHE_MB, FAMILY, FORMS
from gap.jobs import elsewhere, run_here
from gap.split import PIECES
from gap.table import means, single, table
from shared.tables import shown
from shared.tables import table as markdown

DEFAULT = ("banana", "a9a", "usps", "usps+N", "mnist-20k", "reuters")
QUICK = ("usps+N",)


def sparsify(arguments: argparse.Namespace) -> None:
    """What `sparsify` gives up."""
    print("\nsparsify: before and after, one pass (first shuffle)\n")
    print(
        f"{'task':9} {'':4}  {'support':>14}  {'ratio':>5}  {'accuracy':>14}  {'g-means':>12}  seconds: pass, sparsify"
    )
    for task, engine in itertools.product(("usps+N", "banana"), ("G", "NC")):
        run = elsewhere(arguments.data, "polish", task, engine)
        if run:
            a, b = run["before"], run["after"]
            print(
                f"{task:9} {engine:4}  {a['support']:5} -> {b['support']:5}  {b['support'] / a['support']:5.2f}  "
                f"{a['accuracy']:5.2f} -> {b['accuracy']:5.2f}  {a['g-means']:4.1f} -> {b['g-means']:4.1f}  "
                f"{run['learning']:.2f}, {run['polishing']:.2f}",
                flush=True,
            )


def steps(arguments: argparse.Namespace) -> None:
    """Steps of two members against steps of one."""
    n = None if arguments.full else 5000
    print(f"\nSteps of two members and of one: G on {n or 'all'} examples of a9a, C = 100 (first shuffle)\n")
    runs = {kind: elsewhere(arguments.data, "fit", "a9a", "G", n=n, steps=kind) for kind in ("pair", "single")}
    for kind, run in runs.items():
        if run:
            print(
                f"{kind:6}  accuracy {run['accuracy']:.2f}  support {run['support']:5}  "
                f"REPROCESS {run['reprocess']:8}  K values {run['K values M']:.1f} M  {run['seconds']:.2f} s",
                flush=True,
            )
    if all(runs.values()):
        ratios = [runs["single"][key] / runs["pair"][key] for key in ("reprocess", "seconds")]
        print(f"single / pair: REPROCESS {ratios[0]:.1f}, seconds {ratios[1]:.1f}")


def speed(arguments: argparse.Namespace) -> None:
    """One epoch over a9a beside batch solvers, and where its time goes."""
    runs = {engine: run for engine in (*FAMILY, *BATCH) if (run := means(arguments, "a9a", engine))}
    print(f"\n## One epoch over a9a\n\nShuffles: {arguments.repeats}, for batch solvers 1.\n")
    peers = [engine for engine in BATCH if engine in runs]
    rows = []
    for engine, run in runs.items():
        sizes = [f"{run['support']:.0f}", f"{run['accuracy']:.2f}", shown(run.get("K values M"), "{:.0f}")]
        times = [f"{runs[peer]['seconds'] / run['seconds']:.1f}" if engine in FAMILY else "-" for peer in peers]
        rows.append([name_of(engine), *sizes, f"{run['seconds']:.2f}", *times])
    titles = ["", "support vectors", "accuracy %", "kernel values, M", "CPU s", *(f"{peer}'s, times" for peer in peers)]
    print(markdown("|".join(titles), rows))
    print("\n## Microseconds per example\n")
    print("Each piece timed by itself after every sixteenth of the pass, times its count.\n")
    found = {engine: run for engine in ("G", "NC", "I") if (run := elsewhere(arguments.data, "split", "a9a", engine))}
    whats = ("each", *PIECES, "squeezing and growing", "rest", "slots", "steps")
    rows = [[what, *(f"{run[what]:.2f}" for run in found.values())] for what in whats]
    print(markdown("|".join(["", *found]), rows), flush=True)


def name_of(engine: str) -> str:
    """A learner by its class, in code."""
    return f"`{FAMILY[engine].__name__}`" if engine in FAMILY else engine


def sparse(arguments: argparse.Namespace) -> None:
    """Sparse input against dense."""
    print("\nSparse input: one pass over reuters (first shuffle); MB beyond data and an empty model\n")
    print(
        f"{'':5} {'features':33} {'at the end':10}  {'seconds':>7}  {'MB':>5}  {'data MB':>7}  {'support':>7}  accuracy"
    )
    for engine, form in itertools.product(("FULL", "G", "I"), FORMS):
        run = elsewhere(arguments.data, "form", "reuters", engine, form=form)
        if run:
            print(
                f"{engine:5} {form:33} {run['kind']:10}  {run['seconds']:7.2f}  {run['MB']:5.0f}  "
                f"{run['data MB']:7.0f}  {run['support']:7}  {run['accuracy']:8.2f}",
                flush=True,
            )


PARTS = {"table": table, "single": single, "sparsify": sparsify, "steps": steps, "speed": speed, "sparse": sparse}
QUICK_PARTS = ("table", "sparsify", "steps")


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files; default: OpenML")
    parser.add_argument("--tasks", nargs="+", default=list(DEFAULT), choices=list(GAP_TASKS), help="of the table")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--repeats", type=int, default=5, help="shuffles to average over")
    parser.add_argument("--cache-mb", type=float, default=CACHE_MB, help="row cache of the table's models")
    parser.add_argument("--quick", action="store_true", help="usps+N in one shuffle, no part that takes minutes")
    parser.add_argument("--full", action="store_true", help="all of a9a for the steps of one member")
    parser.add_argument("--job", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        run_here(arguments.job)
        return
    if arguments.quick:
        arguments.tasks, arguments.parts, arguments.repeats = list(QUICK), list(QUICK_PARTS), 1
    for part in arguments.parts:
        PARTS[part](arguments)


if __name__ == "__main__":
    main()
