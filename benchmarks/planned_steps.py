"""The rules of planning ahead one by one: its step sizes, its selection alone, and more recent working sets.

    python benchmarks/planned_steps.py --data DIR --plot DIR    # seven sets, and a picture of the step sizes
    python benchmarks/planned_steps.py --data DIR --quick       # heart and ionosphere, two permutations

The solver is a plain one of this file, on a whole kernel matrix and without shrinking, so that it can do what the
project's solver has no option for:

    plain            second-order pairs and Newton steps
    planning N       a free step that follows a free step is planned, with the best of the last N working sets; after a
                     planned step the set that it was planned for is a candidate
    selection alone  nothing is planned; after each free step the working set before the last one is a candidate
    as printed       planning 1 with the branch of the source's Algorithm 5 as it is printed: the candidate is tried
                     after each step that was not planned

Figures are iterations, means over permutations, relative to the plain ones; and of "planning 1" the histogram of
mu / mu* - 1, the size of a planned step relative to the Newton step.  Source: Glasmachers, "The Planning-Ahead SMO
Algorithm", Figures 3 and 4 and the section on its selection.
"""

import argparse
import itertools
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import njit
from planning import SETS, TOL, load
from shared.tables import table
from sklearn.metrics.pairwise import rbf_kernel
from tqdm import tqdm

NAMES = ("banana", "heart", "image", "titanic", "tic-tac-toe", "chess-board-1000", "spambase")
QUICK = ("heart", "ionosphere")
MOST = 20_000_000  # iterations
EDGES = np.array([-np.inf, -100, -1, -0.1, -0.01, 0, 0.01, 0.1, 1, 10, 100, np.inf])  # of mu / mu* - 1
NEVER, AFTER_PLANNED, AFTER_OTHERS, AFTER_FREE = 0, 1, 2, 3  # when a recent working set is a candidate
ETA = 0.9


class Rules(NamedTuple):
    """How many recent sets are planned with, and when one of them is a candidate."""

    recent: int
    candidate: int


RULES = {
    "plain": Rules(0, NEVER),
    **{f"planning {n}": Rules(n, AFTER_PLANNED) for n in (1, 2, 3, 5, 10, 20)},
    "selection alone": Rules(0, AFTER_FREE),
    "as printed": Rules(1, AFTER_OTHERS),
}


@njit(cache=True)
def _gain(w, q, room, exact):
    """Twice the gain of a step: within the bounds or, not `exact`, without them."""
    if not exact:
        return w * w / q
    mu = min(w / q, room)
    return mu * (2.0 * w - q * mu)


@njit(cache=True)
def _plan(K, alpha, g, lo, hi, sets, recent, i, j, q):
    """Which of the recent sets to plan with, and the step before it; -1 if bounds disturb all of them."""
    chosen, best, step = -1, -np.inf, 0.0
    w = g[i] - g[j]
    for k in range(recent):
        a, b = sets[k, 0], sets[k, 1]
        if a < 0:
            break
        q_2 = max(2.0 - 2.0 * K[a, b], 1e-12)
        c = K[i, a] - K[i, b] - K[j, a] + K[j, b]
        if not q * q_2 - c * c > 1e-12 * q * q_2:
            continue
        mu = (q_2 * w - c * (g[a] - g[b])) / (q * q_2 - c * c)
        nu = (g[a] - g[b] - c * mu) / q_2
        new_i, new_j = alpha[i] + mu, alpha[j] - mu
        new_a = (new_i if a == i else new_j if a == j else alpha[a]) + nu
        new_b = (new_i if b == i else new_j if b == j else alpha[b]) - nu
        inside = lo[i] < new_i < hi[i] and lo[j] < new_j < hi[j]
        if inside and lo[a] < new_a < hi[a] and lo[b] < new_b < hi[b]:
            gained = w * mu - 0.5 * q * mu * mu + 0.5 * q_2 * nu * nu
            if gained > best:
                chosen, best, step = k, gained, mu
    return chosen, step


@njit(cache=True)
def solve(K, y, C, recent, candidate, tol, most, edges):
    """Iterations, and how many planned steps had each size relative to the Newton step."""
    n = len(y)
    alpha, g = np.zeros(n), y.copy()
    lo, hi = np.minimum(C * y, 0.0), np.maximum(C * y, 0.0)
    sets = np.full((max(recent, 2) + 1, 2), -1)
    sizes = np.zeros(len(edges) - 1, np.int64)
    planned, exact, free = -1, False, False
    for step in range(most):
        i, top, bottom = -1, -np.inf, np.inf
        for t in range(n):
            if alpha[t] < hi[t] and g[t] > top:
                i, top = t, g[t]
            if alpha[t] > lo[t]:
                bottom = min(bottom, g[t])
        if not top - bottom > tol:
            return step, sizes
        j, best = -1, 0.0
        for t in range(n):
            w = top - g[t]
            if alpha[t] > lo[t] and w > 0.0:
                q = max(2.0 - 2.0 * K[i, t], 1e-12)
                gained = _gain(w, q, min(hi[i] - alpha[i], alpha[t] - lo[t]), exact)
                if gained > best:
                    j, best = t, gained
        tried = candidate == AFTER_PLANNED and planned >= 0
        tried |= candidate == AFTER_OTHERS and planned < 0
        tried |= candidate == AFTER_FREE and free
        if tried:
            k = planned + 1 if planned >= 0 else 1
            a, b = sets[k, 0], sets[k, 1]
            if a >= 0:
                if g[a] < g[b]:
                    a, b = b, a
                room = min(hi[a] - alpha[a], alpha[b] - lo[b])
                if room > 0.0 and _gain(g[a] - g[b], max(2.0 - 2.0 * K[a, b], 1e-12), room, exact) > best:
                    i, j = a, b
        w, q = g[i] - g[j], max(2.0 - 2.0 * K[i, j], 1e-12)
        room = min(hi[i] - alpha[i], alpha[j] - lo[j])
        planned, mu = -1, min(w / q, room)
        if free and recent > 0:
            planned, mu_planned = _plan(K, alpha, g, lo, hi, sets, recent, i, j, q)
            if planned >= 0:
                mu = mu_planned
                sizes[np.searchsorted(edges, mu * q / w - 1.0) - 1] += 1
        exact = planned >= 0 and not abs(mu * q / w - 1.0) <= ETA
        free = planned < 0 and mu < room
        alpha[i] = hi[i] if mu >= hi[i] - alpha[i] else max(alpha[i] + mu, lo[i])
        alpha[j] = lo[j] if mu >= alpha[j] - lo[j] else min(alpha[j] - mu, hi[j])
        for t in range(n):
            g[t] -= mu * (K[i, t] - K[j, t])
        for k in range(len(sets) - 1, 0, -1):
            sets[k] = sets[k - 1]
        sets[0, 0], sets[0, 1] = i, j
    return most, sizes


class Found(NamedTuple):
    """Mean iterations and seconds, and the sizes of planned steps in all permutations."""

    iterations: float
    seconds: float
    sizes: np.ndarray


def measured(name: str, folder: Path | None, permutations: int) -> dict[str, Found]:
    """All rules on one set."""
    X, y = load(name, folder)
    K, signs = rbf_kernel(X, gamma=SETS[name].gamma), np.where(y, 1.0, -1.0)
    orders = [np.random.default_rng(seed).permutation(len(y)) for seed in range(permutations)]
    runs: dict[str, list[tuple[int, float, np.ndarray]]] = {rule: [] for rule in RULES}
    solve(np.eye(2), np.array([1.0, -1.0]), 1.0, *RULES["plain"], TOL, MOST, EDGES)  # loads the compiled code
    for order in tqdm(orders, desc=name, leave=False):
        K_p, y_p = np.ascontiguousarray(K[np.ix_(order, order)]), signs[order]
        for rule, (recent, candidate) in RULES.items():
            start = time.process_time()
            iterations, sizes = solve(K_p, y_p, float(SETS[name].C), recent, candidate, TOL, MOST, EDGES)
            runs[rule].append((iterations, time.process_time() - start, sizes))
    return {
        rule: Found(*(float(np.mean([run[k] for run in own])) for k in (0, 1)), np.sum([run[2] for run in own], axis=0))
        for rule, own in runs.items()
    }


def show(found: dict[str, dict[str, Found]]) -> None:
    """Print the tables."""
    rules = list(RULES)[1:]
    for title, key, form in (("Iterations", "iterations", "{:.0f}"), ("CPU seconds", "seconds", "{:.3f}")):
        rows = []
        for name, of_rules in found.items():
            plain = getattr(of_rules["plain"], key)
            rows.append([name, form.format(plain), *(f"{getattr(of_rules[rule], key) / plain:.2f}" for rule in rules)])
        print(f"\n## {title}\n")
        print(table("set|plain|" + "|".join(rules), rows))
    heads = [f"{low:g} to {high:g}" for low, high in itertools.pairwise(EDGES)]
    rows = [[name, *(str(count) for count in of_rules["planning 1"].sizes)] for name, of_rules in found.items()]
    print("\n## Planned steps by mu / mu* - 1\n")
    print(table("set|" + "|".join(heads), rows), flush=True)


def draw(found: dict[str, dict[str, Found]], path: Path) -> None:
    """A histogram for each set."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.6 * len(found), 2.6), layout="constrained")
    for axes, (name, of_rules) in zip(np.atleast_1d(figure.subplots(1, len(found))), found.items(), strict=True):
        axes.bar(range(len(EDGES) - 1), of_rules["planning 1"].sizes, width=0.9)
        axes.set_title(name, fontsize=9)
        axes.set(yscale="log", ylim=(0.5, None), xticks=np.arange(len(EDGES) - 2) + 0.5)
        axes.set_xticklabels([f"{edge:g}" for edge in EDGES[1:-1]], rotation=90, fontsize=7)
        axes.tick_params(axis="y", labelsize=7)
    figure.supxlabel("mu / mu* - 1 of planned steps", fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=65)


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files; default: only the chess board")
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(NAMES))
    parser.add_argument("--permutations", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help=" and ".join(QUICK))
    parser.add_argument("--plot", type=Path, help="folder for the picture; default: none is drawn")
    arguments = parser.parse_args()
    names, permutations = (QUICK, 2) if arguments.quick else (arguments.sets, arguments.permutations)
    solve(np.eye(4), np.array([-1.0, 1.0, -1.0, 1.0]), 1.0, 1, AFTER_PLANNED, TOL, 9, EDGES)  # compile
    there = [name for name in names if arguments.data or SETS[name].make]
    found = {name: measured(name, arguments.data, permutations) for name in there}
    show(found)
    if arguments.plot:
        draw(found, arguments.plot / "planned-steps.png")


if __name__ == "__main__":
    main()
