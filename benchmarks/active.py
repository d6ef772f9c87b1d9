"""Active learning: which examples to ask a label for.

    python benchmarks/active.py --data DIR --parts rare start several stream flips ask --results DIR  # the default
    python benchmarks/active.py --data DIR --parts curves stop sweep query --out DIR # the paper's tables: some hours
    python benchmarks/active.py --data DIR --quick                                   # short versions: half a minute
    python benchmarks/active.py --parts rare --results DIR --report                  # tables of the runs that were kept

Parts:

    rare      ways of choosing questions on 16 sets with a rare class: g-means at 20 to 300 labels, and what is aimed at
    threshold the same ways with the threshold from the pool; with `--texts DIR` also texts, see labelling/thresholds.py
    start     labels until both classes have one, on the same sets
    several   rare classes among several: labels until each class has some, and macro F1, with and without rare_first
    stream    a learner that decides about each example as it passes: g-means of 9 sets, for 2, 5 and 10 % of the labels
    flips     5 and 10 % wrong answers: how many are among the suspects, by leave-one-out and by folds
    ask       milliseconds of one question, with 10,000 examples and 300 labels
    curves, stop, sweep, query
              the tables of "Learning on the border", see labelling/border.py

All but query, curves, stop and sweep need a folder of npz files, `--data`; runs that are in the folder `--results` are
not run again.
"""

import argparse
from pathlib import Path

from datasets import ACTIVE_TASKS
from labelling import ask, border, flips, policies, several, start, stream, thresholds
from labelling.kept import Kept
from labelling.runs import WITHOUT_SMOTE, Runs
from threadpoolctl import threadpool_limits

import streamsvm

BORDER = {"curves": border.curves, "stop": border.stop, "sweep": border.sweep, "query": border.query}
COMPARED = {
    "rare": policies,
    "threshold": thresholds,
    "start": start,
    "several": several,
    "stream": stream,
    "flips": flips,
}
PARTS = (*COMPARED, "ask", *BORDER)


def run(part: str, arguments: argparse.Namespace) -> None:
    """Run a part and print its tables."""
    kept = Kept(arguments.results)
    if part in COMPARED:
        (COMPARED[part].report if arguments.report else COMPARED[part].run)(arguments, kept)
    elif part == "ask":
        ask.run()
    else:
        BORDER[part](arguments, Runs(arguments))


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files; default: OpenML, for the paper's parts")
    parser.add_argument("--texts", type=Path, help="folder of texts, for the part threshold")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--seeds", type=int, default=8, help="runs of all but the paper's parts to average over")
    sets = [*policies.RARE, *several.SEVERAL]
    parser.add_argument("--sets", nargs="+", default=sets, choices=sets, help="of rare, start and several")
    parser.add_argument("--tasks", nargs="+", default=list(border.DEFAULT), choices=list(ACTIVE_TASKS))
    parser.add_argument("--repeats", type=int, default=10, help="runs of the paper's parts to average over")
    parser.add_argument("--quick", action="store_true", help="few sets, one run, no curves and no sweep")
    parser.add_argument("--results", type=Path, help="folder for finished runs, which are then not run again")
    parser.add_argument("--report", action="store_true", help="run nothing: show what --results holds")
    parser.add_argument("--out", type=Path, help="folder for the pictures; default: none are drawn")
    arguments = parser.parse_args()
    if arguments.report and not arguments.results:
        parser.error("--report needs --results")
    if arguments.quick:
        arguments.tasks, arguments.repeats, arguments.parts = list(border.QUICK), 1, ["ask", "stop", "query"]
        if arguments.data:
            arguments.seeds, arguments.sets, arguments.parts = (
                1,
                ["letter A", "trap", "digits"],
                ["rare", "several", *arguments.parts],
            )
    if not (arguments.data or arguments.texts) and not arguments.report and set(COMPARED) & set(arguments.parts):
        parser.error(f"{', '.join(COMPARED)} need --data DIR")
    streamsvm.warmup(streamsvm.LASVM)
    if WITHOUT_SMOTE:
        print("SMOTE is left out: it needs pip install imbalanced-learn", flush=True)
    with threadpool_limits(1):
        for part in arguments.parts:
            run(part, arguments)


if __name__ == "__main__":
    main()
