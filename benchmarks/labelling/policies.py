"""Ways of choosing questions, on 16 sets with a rare class: g-means by the number of labels.

The positive class weighs sqrt(negatives / positives) of the pool.  The model is exact after each label.
"""

import argparse
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from labelling.kept import Kept
from labelling.sets import RARE, Part, chosen, rare
from streamsvm import LASVM
from streamsvm.active import ActiveSelection, MixedSelection, RandomSelection, label_pool
from streamsvm.active.choosing.pool import Pool
from streamsvm.active.choosing.selection import Choice

MARKS = (20, 30, 40, 50, 75, 100, 150, 200, 300)
SPANS = {"20-50": slice(0, 4), "75-100": slice(4, 6), "150-300": slice(6, 9)}
TARGETS = {"kdd_http": 95.0, "creditcard": 85.0, "ijcnn1": 48.0}
MEAN = 68.0

Options = Callable[[Part, int], dict[str, Any]]


class Closest(MixedSelection):
    """The smallest |f| of the whole pool, as `ActiveSelection(None)`, by kernel rows that are kept."""

    def __init__(self) -> None:
        super().__init__(start="random")

    def choose(self, pool: Pool, model: Any, rng: np.random.Generator) -> Choice:
        places = self._look(pool, model)
        scored = self._scored(pool, model, places, rng)
        closest = int(np.argmin(np.abs(scored.f)))
        return Choice(pool.keys()[scored.at[closest]], float(scored.f[closest]), len(scored.at))


def by_hand(part: Part, seed: int) -> dict[str, Any]:
    """Ten random labels, or more until both classes are there; then the smallest |f|."""
    first = np.random.default_rng(seed).choice(len(part.y), 10, replace=False).tolist()
    return {"selection": Closest(), "explore": 0.0, "initial": first}


POLICIES: dict[str, Options] = {
    "random": lambda part, seed: {"selection": RandomSelection()},
    "10 random, closest": by_hand,
    "closest": lambda part, seed: {"selection": Closest(), "explore": 0.0},
    "59": lambda part, seed: {"selection": ActiveSelection()},
    "mixed": lambda part, seed: {"selection": MixedSelection()},
    "mixed, 5 % audit": lambda part, seed: {"selection": MixedSelection(), "explore": 0.05},  # as in the trainer
    "mixed, gamma": lambda part, seed: {"selection": MixedSelection(), "tune_gamma": 50},
}
OTHERS = ("random", "10 random, closest", "closest", "59")
NEW = "mixed, gamma"
ORDER = (NEW, "59", "10 random, closest", "random", "closest", "mixed", "mixed, 5 % audit")


def simulate(part: Part, policy: str, seed: int) -> list[float]:
    """G-means in percent at `MARKS`."""
    model = LASVM(C=part.C, gamma=part.gamma, pos_weight=part.pos_weight)
    options = {"tune_gamma": 0, **POLICIES[policy](part, seed)}
    steps = label_pool(model, part.X, lambda row: bool(part.y[row]), seed=seed, **options)
    found = []
    for step in itertools.islice(steps, MARKS[-1]):
        if step.n_labels in MARKS:
            found.append(g_mean(model, part))
    return found


def g_mean(model: Any, part: Part) -> float:
    """The geometric mean of both classes' recalls in the test part, in percent."""
    positive = model.decision_function_many(part.X_test) > 0.0
    recalls = positive[part.y_test].mean(), 1.0 - positive[~part.y_test].mean()
    return 100.0 * float(np.sqrt(recalls[0] * recalls[1]))


def run(arguments: argparse.Namespace, runs: Kept) -> None:
    """Run all that is missing, the new policy first, and print the tables."""
    for policy, seed, name in itertools.product(ORDER, range(arguments.seeds), chosen(RARE, arguments)):
        if runs.misses("rare", name, policy, seed):
            runs.put("rare", name, policy, seed, simulate(rare(name, arguments.data, seed), policy, seed))
    report(arguments, runs)


def report(arguments: argparse.Namespace, runs: Kept) -> None:
    """Mean g-means by policy and by set, and what is to be reached."""
    names, seeds = chosen(RARE, arguments), arguments.seeds
    curves = {
        (name, policy): np.array(found)
        for name, policy in itertools.product(names, POLICIES)
        if len(found := [runs.get("rare", name, policy, s) for s in range(seeds) if runs.has("rare", name, policy, s)])
        >= min(2, seeds)
    }
    policies = [policy for policy in POLICIES if all((name, policy) in curves for name in names)]
    print("\n## g-means %, mean over the sets\n")
    print("| policy | all | " + " | ".join(SPANS) + " | runs |\n|---|---|---|---|---|---|")
    for policy in policies:
        table = np.array([curves[name, policy].mean(axis=0) for name in names])
        spans = " | ".join(f"{table[:, span].mean():.1f}" for span in SPANS.values())
        n = sum(len(curves[name, policy]) for name in names)
        print(f"| {policy} | {table.mean():.1f} | {spans} | {n} |")
    print("\n## g-means % by set\n\nMean over 20 to 300 labels.\n")
    print("| set | " + " | ".join(policies) + " |\n" + "|---" * (1 + len(policies)) + "|")
    for name in names:
        print(f"| {name} | " + " | ".join(f"{curves[name, policy].mean():.1f}" for policy in policies) + " |")
    _claims(curves, names)
    if arguments.out:
        draw({policy: [curves[name, policy] for name in names] for policy in policies}, arguments.out)


def draw(curves: dict[str, list[np.ndarray]], folder: Path) -> None:
    """Draw the mean g-mean of all sets against the number of labels."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for policy, found in curves.items():
        style = {"linewidth": 2.5, "color": "#c44e52"} if policy == NEW else {"linewidth": 1.2}
        axes.plot(MARKS, np.mean([curve.mean(axis=0) for curve in found], axis=0), "o-", ms=3, label=policy, **style)
    axes.set(xlabel="labels", ylabel="g-mean %", xscale="log", xticks=MARKS, ylim=(0, 100))
    axes.set_xticklabels(MARKS)
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "labelling-g-means.png", dpi=100)


def _claims(curves: dict[tuple[str, str], np.ndarray], names: list[str]) -> None:
    new = {name: curves[name, NEW] for name in names if (name, NEW) in curves}
    print("\n## Aims\n")
    if len(new) == len(RARE):
        mean = float(np.mean([curve.mean() for curve in new.values()]))
        print(f"- {'holds' if mean >= MEAN else 'does not hold'}: the mean is at least {MEAN:g}: {mean:.1f}")
    for name, target in TARGETS.items():
        if name in new:
            own = new[name].mean()
            print(f"- {'holds' if own >= target else 'does not hold'}: {name} is at least {target:g}: {own:.1f}")
    for name, own in new.items():
        rivals = {policy: curves[name, policy] for policy in OTHERS if (name, policy) in curves}
        if not rivals:
            continue
        best = max(rivals, key=lambda policy: rivals[policy].mean())
        n = min(len(own), len(rivals[best]))
        if n < 2:
            continue
        lead = own[:n].mean(axis=1) - rivals[best][:n].mean(axis=1)
        error = lead.std(ddof=1) / np.sqrt(n)
        kept = lead.mean() >= -1.0 - 2.0 * error
        print(f"- {'holds' if kept else 'does not hold'}: {name}: {lead.mean():+.1f} ({error:.1f}) beside {best}")
