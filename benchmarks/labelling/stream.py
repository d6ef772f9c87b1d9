"""`ActiveLearner`, which decides about each example as it passes: mean g-means by the labels it asked for.

Each set is a stream of at most 6000 examples.  Beside the learner stands its rule until version 0.1.0: random questions
until both classes are labelled, then nine in ten about the nearest of the boundary and one at random.
"""

import argparse
import itertools

import numpy as np

from labelling.kept import Kept
from labelling.policies import MARKS, g_mean
from labelling.sets import STREAMS, Part, rare
from streamsvm import LASVM
from streamsvm.active import ActiveLearner
from streamsvm.active.learner import BOUNDARY
from streamsvm.validation.rows import dicts_of

SHARES = (0.02, 0.05, 0.1)
LONGEST = 6000
RANDOM = 0.1  # share of the questions


class Nearest(ActiveLearner):
    """The rule until version 0.1.0."""

    def _is_wanted(self, x: dict) -> bool:
        share = min(1.0, self.share + (self.share * self.n_seen - self.n_asked) / 300)
        if len(self._labels) < 2:
            return self._rng.random() < share
        rank = self._scores[BOUNDARY].rank(self._score(BOUNDARY, x), self._rng.random())
        at_random = RANDOM * share
        return self._rng.random() < at_random or rank * (1.0 - at_random) < share - at_random


LEARNERS = {"nearest": Nearest, "mixed": ActiveLearner}


def simulate(part: Part, policy: str, share: float, seed: int) -> float:
    """The mean g-mean in percent, at those of `MARKS` that the labels reach, and at the end."""
    model = LASVM(C=part.C, gamma=part.gamma, pos_weight=part.pos_weight)
    learner, found = LEARNERS[policy](model, share, seed=seed), []
    for x, y in zip(dicts_of(part.X), part.y.tolist(), strict=True):
        if learner.ask(x):
            learner.learn_one(x, y)
            if learner.n_asked in MARKS:
                found.append(g_mean(model, part))
    return float(np.mean([*found, g_mean(model, part)]))


def run(arguments: argparse.Namespace, runs: Kept) -> None:
    """Run all that is missing, and print the tables."""
    for seed, name, share, policy in itertools.product(range(arguments.seeds), STREAMS, SHARES, LEARNERS):
        if runs.misses("stream", f"{name} {share}", policy, seed):
            part = rare(name, arguments.data, seed, LONGEST)
            runs.put("stream", f"{name} {share}", policy, seed, simulate(part, policy, share, seed))
    report(arguments, runs)


def report(arguments: argparse.Namespace, runs: Kept) -> None:
    """A table for each share of the stream: both rules, and their difference with its standard error."""
    for share in SHARES:
        print(f"\ng-means %, {share:.0%} of the stream\n")
        print("| set | nearest | mixed | difference | runs |\n|---|---|---|---|---|")
        means = []
        for name in STREAMS:
            done = [
                seed
                for seed in range(arguments.seeds)
                if all(runs.has("stream", f"{name} {share}", policy, seed) for policy in LEARNERS)
            ]
            if len(done) < 2:
                continue
            own = {p: np.array([runs.get("stream", f"{name} {share}", p, seed) for seed in done]) for p in LEARNERS}
            lead = own["mixed"] - own["nearest"]
            error = lead.std(ddof=1) / np.sqrt(len(done))
            means.append([own["nearest"].mean(), own["mixed"].mean()])
            print(
                f"| {name} | {means[-1][0]:.1f} | {means[-1][1]:.1f} | {lead.mean():+.1f} ({error:.1f}) | {len(done)} |"
            )
        if means:
            nearest, mixed = np.mean(means, axis=0)
            print(f"| mean | {nearest:.1f} | {mixed:.1f} | {mixed - nearest:+.1f} | |")
