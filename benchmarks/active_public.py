"""The protocol of a public benchmark of active learning, beside what it publishes: mean accuracy over the curve (AUBC).

    python benchmarks/active_public.py --data DIR --results DIR        # 11 sets, 10 runs each: about 440 CPU seconds
    python benchmarks/active_public.py --data DIR --quick                # heart, one run
    python benchmarks/active_public.py --results DIR --report            # the table of the runs that were kept

Source: Lu, Li, Li, Yang, Xu, Huang, "Re-benchmarking pool-based active learning for binary classification", arXiv
2306.08954.  20 random labels to begin with, 40 % of the examples for the test, features with mean 0 and variance 1, an
RBF kernel with C = 1 and gamma = 1 / features.  Curves end when the whole pool is labelled, as the published ones do.
Questions come in batches of one in `PART` of the labels so far, which makes large pools affordable; the model is exact
after each batch.  Runs that are in the folder `--results` are not run again.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from labelling.kept import Kept
from labelling.sets import PROTOCOL, Part, chosen, protocol
from threadpoolctl import threadpool_limits

from streamsvm import LASVM, warmup
from streamsvm.active import ActiveSelection, Answer, ArrayPool, LabellingLoop, MixedSelection, RandomSelection

FIRST, PART = 20, 50
MOST, LEAST = 0.3, {"banana": 89.5}  # aims: points below the best of the others, and the mixture's AUBC
PUBLISHED = {
    "heart": (80.5, 81.6),
    "ionosphere": (91.8, 93.0),
    "wdbc": (95.4, 96.5),
    "diabetes": (74.2, 74.8),
    "german": (73.4, 74.2),
    "banana": (89.3, 87.9),
    "spambase": (91.0, 92.1),
}
SELECTIONS: dict[str, Any] = {
    "random": RandomSelection,
    "closest": lambda: ActiveSelection(None),
    "mixed": MixedSelection,
}


def simulate(part: Part, policy: str, seed: int) -> float:
    """The AUBC in percent: the mean accuracy between the first labels and the last ones, by the trapezoidal rule."""
    model, selection = LASVM(C=part.C, gamma=part.gamma), SELECTIONS[policy]()
    loop = LabellingLoop(ArrayPool(part.X), selection=selection, explore=0.0, seed=seed)
    keys, curve = list(range(FIRST)), []
    while keys:
        for key in keys:
            loop.answer(Answer(key, "label", bool(part.y[key]), "", 0), model.n_support, 0)
        model.learn_many(part.X[keys], part.y[keys], 1.0, np.array(keys))
        model.finish()
        curve.append((loop.counts.n_labels, float(np.mean(model.predict_many(part.X_test) == part.y_test))))
        loop.n_open = max(1, loop.counts.n_labels // PART)
        loop.choose(model, 0)
        keys = [question.key for question in loop.open_questions()]
    labels, right = np.array(curve).T
    return 100.0 * float(np.trapezoid(right, labels)) / (labels[-1] - labels[0])


def run(arguments: argparse.Namespace, runs: Kept) -> None:
    """Run all that is missing, and print the table."""
    for seed in range(arguments.seeds):
        for name in chosen(PROTOCOL, arguments):
            part = None
            for policy in SELECTIONS:
                if runs.misses("protocol", name, policy, seed):
                    part = part or protocol(name, arguments.data, seed)
                    runs.put("protocol", name, policy, seed, simulate(part, policy, seed))
    report(arguments, runs)


def report(arguments: argparse.Namespace, runs: Kept) -> None:
    """The table, with the lead of the mixture over the better of the others, and its standard error; and the claims.

    Published are uniform sampling and the smallest |f|.
    """
    found = {}
    for name in chosen(PROTOCOL, arguments):
        curves = [[runs.get("protocol", name, p, seed) for p in SELECTIONS] for seed in range(arguments.seeds)]
        whole = [row for row in curves if None not in row]
        if whole:
            found[name] = np.array(whole)
    print("\n## Accuracy over the curve\n\n| set | published | " + " | ".join(SELECTIONS) + " | difference | runs |")
    print("|---" * (4 + len(SELECTIONS)) + "|")
    for name, table in found.items():
        published = " / ".join(f"{value:.1f}" for value in PUBLISHED.get(name, ()))
        cells = " | ".join(f"{value:.1f}" for value in table.mean(axis=0))
        lead, error = _lead(table)
        print(f"| {name} | {published} | {cells} | {lead:+.2f} ({error:.2f}) | {len(table)} |")
    print("\n## Aims\n")
    for name, table in found.items():
        _claim(f"{name} is at most {MOST:g} below the best", _lead(table)[0], -MOST)
        if name in LEAST:
            _claim(f"{name} is at least {LEAST[name]:g}", table[:, -1].mean(), LEAST[name])


def _claim(what: str, value: float, least: float) -> None:
    print(f"- {'holds' if value >= least else 'does not hold'}: {what}: {value:.2f}")


def _lead(table: np.ndarray) -> tuple[float, float]:
    """The mean lead of the last column over the better of the others, and its standard error over the runs."""
    lead = table[:, -1] - table[:, np.argmax(table[:, :-1].mean(axis=0))]
    error = lead.std(ddof=1) / np.sqrt(len(lead)) if len(lead) > 1 else np.nan
    return float(lead.mean()), float(error)


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files")
    parser.add_argument("--sets", nargs="+", default=list(PROTOCOL), choices=list(PROTOCOL))
    parser.add_argument("--seeds", type=int, default=10, help="runs to average over")
    parser.add_argument("--quick", action="store_true", help="one run of heart")
    parser.add_argument("--results", type=Path, help="folder for finished runs")
    parser.add_argument("--report", action="store_true", help="run nothing: show what --results holds")
    arguments = parser.parse_args()
    kept = Kept(arguments.results)
    if arguments.quick:
        arguments.sets, arguments.seeds = ["heart"], 1
    if arguments.report:
        report(arguments, kept)
    elif arguments.data:
        warmup(LASVM)
        with threadpool_limits(1):
            run(arguments, kept)
    else:
        print("active_public.py needs --data DIR: nothing is measured")


if __name__ == "__main__":
    main()
