"""Planning ahead, over-steps and Newton steps beside plain steps, as in Tables 1 and 2 of the source of planning ahead.

    python benchmarks/planning.py --data DIR                       # every set, 10 permutations (fewer of the slow ones)
    python benchmarks/planning.py --full                       # and 100,000 points of the chess board
    python benchmarks/planning.py --data DIR --permutations 100 --out FILE.json
    python benchmarks/planning.py --sets twonorm chess-board-1000  # those that are generated need no folder
    python benchmarks/planning.py --data DIR --quick               # a few small sets in two permutations: seconds

Source: Glasmachers, "The Planning-Ahead SMO Algorithm", whose figures, means over permutations of the examples as
well, stand behind ours after a slash.  Each set is solved in a process of its own with one thread.  There every
permutation is solved by each kind of step in turn, with shrinking and without, so that what disturbs the machine
disturbs all alike.  Seconds are CPU seconds of one training with its kernel rows; compiled code is loaded before.
Ratios are of means; `*` marks those whose pairs differ by Wilcoxon's signed-rank test at 0.05, which needs at least six
permutations.  Iterations are pair steps.
"""

import argparse
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from papers.printed import PLANNING
from shared.elsewhere import elsewhere
from tqdm import tqdm

PLAIN = {"planning": 0, "over_step": 1.0, "newton": False}
KINDS = {
    "plain": PLAIN,
    "planning 1": PLAIN | {"planning": 1},
    "planning 2": PLAIN | {"planning": 2},
    "planning 3": PLAIN | {"planning": 3},
    "over-step 1.1": PLAIN | {"over_step": 1.1},
    "Newton": PLAIN | {"newton": True},
    "Newton + planning 2": PLAIN | {"newton": True, "planning": 2},
}
SHRINKING = {"with shrinking": True, "without shrinking": False}
TOL = 1e-3
SIGNIFICANT = 0.05

Problem = tuple[np.ndarray, np.ndarray]  # X, and y as bool


# ----------------------------------------------------------------------------------------------------------------- sets


def _two_normals(n: int, shift: float, deviation: float) -> Problem:
    """N(-shift a, deviation^2 I) against N(a, I) in 20 dimensions, a = (2, .., 2) / sqrt(20)."""
    rng = np.random.default_rng(0)
    y, Z, a = rng.random(n) < 0.5, rng.standard_normal((n, 20)), 2 / 20**0.5
    return np.where(y[:, None], a + Z, deviation * Z - shift * a), y


def twonorm() -> Problem:
    """Breiman 1996."""
    return _two_normals(7400, 1.0, 1.0)


def ringnorm() -> Problem:
    """Breiman 1996, with the constant of the DELVE archive."""
    return _two_normals(7400, 0.0, 2.0)


def chess_board(n: int) -> Problem:
    """A board of 4 x 4 fields, the points uniform on it: no noise, and an infinitely sharp border."""
    X = np.random.default_rng(0).uniform(0, 4, size=(n, 2))
    return X, np.floor(X).sum(axis=1) % 2 == 0


def board_values(stored: Mapping[str, np.ndarray]) -> np.ndarray:
    """Tic-tac-toe as stored, 0 blank, 1 o, 2 x, as 0, -1, 1: gives the support vectors that the source counts."""
    return np.array([0.0, -1.0, 1.0])[stored["X"]]


def bases(stored: Mapping[str, np.ndarray]) -> np.ndarray:
    """A G C T as 1 2 3 4, which gives nearly the source's counts; NaN for letters that stand for several of them."""
    letters = json.loads(str(stored["levels"]))
    codes = [np.array(["-AGCT".find(letter) for letter in column], float) for column in letters[: stored["X"].shape[1]]]
    X = np.column_stack([of_column[values] for of_column, values in zip(codes, stored["X"].T, strict=True)])
    return np.where(X > 0, X, np.nan)


class Set(NamedTuple):
    """A data set with the source's parameters; how features are coded and scaled fits its support vectors."""

    C: float
    gamma: float
    stored: str | None = None  # its name in the folder
    positive: tuple[int, ...] = (1,)
    standard: bool = False  # whether features get mean 0 and variance 1
    make: Callable[[], Problem] | None = None
    prepare: Callable[[Mapping[str, np.ndarray]], np.ndarray] | None = None  # rows with NaN are dropped
    most: int = 1000  # permutations of a slow one
    long: bool = False  # it takes many minutes: only when it is asked for, or by --full
    always_shrinks: bool = False  # it takes too long without


SETS = {
    "banana": Set(100, 0.25, "banana"),
    "breast-cancer": Set(0.6, 0.1, "breast_cancer", standard=True),
    "diabetis": Set(0.5, 0.05, "pima", standard=True),
    "german": Set(1, 0.05, "german", standard=True),
    "heart": Set(1, 0.005, "heart", standard=True),
    "image": Set(100, 0.1, "segment", (1, 3, 6), standard=True),
    "ringnorm": Set(2, 0.1, standard=True, make=ringnorm),
    "splice": Set(10, 0.01, "splice", (0, 1), prepare=bases),
    "thyroid": Set(500, 0.05, "thyroid", standard=True),
    "titanic": Set(1000, 0.1, "titanic"),
    "twonorm": Set(0.5, 0.02, standard=True, make=twonorm),
    "waveform": Set(1, 0.05, "waveform", standard=True),
    "chess-board-1000": Set(1e6, 0.5, make=lambda: chess_board(1000)),
    "chess-board-10000": Set(1e6, 0.5, make=lambda: chess_board(10_000), most=3, always_shrinks=True),
    "chess-board-100000": Set(1e6, 0.5, make=lambda: chess_board(100_000), most=1, always_shrinks=True, long=True),
    "tic-tac-toe": Set(200, 0.02, "tictactoe", prepare=board_values),
    "ionosphere": Set(3, 0.4, "ionosphere"),
    "spambase": Set(10, 0.005, "spambase"),
}


QUICK = ["german", "heart", "ionosphere", "titanic", "twonorm"]


def load(name: str, folder: Path | None) -> Problem:
    """The examples of a set in their first order."""
    s = SETS[name]
    if s.make:
        X, y = s.make()
    else:
        with np.load(folder / s.stored / f"{s.stored}.npz", allow_pickle=False) as stored:
            X, y = s.prepare(stored) if s.prepare else stored["X"].astype(float), np.isin(stored["y"], s.positive)
        whole = ~np.isnan(X).any(axis=1)
        X, y = X[whole], y[whole]
    if s.standard:
        X = X[:, X.std(axis=0) > 0]
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, y


# ------------------------------------------------------------------------------------------------------------ measuring


def train(X: np.ndarray, y: np.ndarray, C: float, gamma: float, **options) -> dict:
    """One training, rows included."""
    from streamsvm.batch import RowStore, SolverOptions, smo
    from streamsvm.core.kernels import RBF

    start = time.process_time()
    signs = np.where(y, 1.0, -1.0)
    lo, hi = np.minimum(0.0, C * signs), np.maximum(0.0, C * signs)
    s = smo.train(RowStore(X, RBF(gamma)), signs, lo, hi, options=SolverOptions(tol=TOL, **options))
    seconds = time.process_time() - start
    return {
        "iterations": s.iterations,
        "seconds": seconds,
        "objective": s.objective,
        "support": len(s.support),
        "bounded": int(np.count_nonzero(np.abs(s.dual_coef) >= C)),
        "newton_steps": s.newton_steps,
    }


def measure(arguments: argparse.Namespace) -> None:
    """All trainings of one set in this process; prints, for each way to train, its figures for each permutation."""
    X, y = load(arguments.set, arguments.data)
    s = SETS[arguments.set]
    ways = [(kind, how) for how in SHRINKING for kind in KINDS if SHRINKING[how] or not s.always_shrinks]
    for kind, how in ways:  # load compiled code, and what a first Newton step loads
        train(*chess_board(300), C=1e4, gamma=0.5, shrinking=SHRINKING[how], **KINDS[kind])
    runs: dict[str, dict[str, list[dict]]] = {how: {kind: [] for kind in KINDS} for how in SHRINKING}
    for permutation in range(min(arguments.permutations, s.most)):
        order = np.random.default_rng(permutation).permutation(len(y))
        X_p, y_p = np.ascontiguousarray(X[order]), y[order]
        first = permutation % len(ways)  # no way is always the first
        for kind, how in ways[first:] + ways[:first]:
            figures = train(X_p, y_p, C=s.C, gamma=s.gamma, shrinking=SHRINKING[how], **KINDS[kind])
            runs[how][kind].append(figures)
    print(json.dumps({"n": len(y), "runs": runs}))


# --------------------------------------------------------------------------------------------------------------- tables


def values(runs: list[dict], key: str) -> np.ndarray:
    """One figure of each permutation."""
    return np.array([run[key] for run in runs], float)


def differ(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether pairs differ significantly."""
    from scipy.stats import wilcoxon

    return bool((a != b).any()) and wilcoxon(a, b).pvalue < SIGNIFICANT


def ratio(runs: dict[str, list[dict]], kind: str, key: str) -> str:
    """The mean relative to that of plain steps, and whether it differs."""
    ours, plain = values(runs[kind], key), values(runs["plain"], key)
    return f"{ours.mean() / plain.mean():.2f}{'*' if differ(ours, plain) else ''}"


def largest_difference(found: dict) -> tuple[float, float]:
    """Of the objectives of one permutation, relative to that of plain steps: largest difference, largest loss."""
    plain = values(found["runs"]["with shrinking"]["plain"], "objective")
    every = [values(runs, "objective") for kinds in found["runs"].values() for runs in kinds.values() if runs]
    change = (np.array(every) - plain) / np.abs(plain)
    return float(np.abs(change).max()), max(0.0, float(-change.min()))


def row(cells: list[str]) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def head(titles: list[str]) -> list[str]:
    """The first two rows of a table."""
    return [row(titles), row(["---"] * len(titles))]


def iterations_table(results: dict[str, dict], how: str) -> list[str]:
    """Iterations of plain steps, and of the others relative to them, with the source's beside those that it has."""
    titles = ["set", "plain", "planning 1", *list(KINDS)[2:]]
    lines = [f"## Iterations {how}", "", *head(titles)]
    for name, found in results.items():
        runs, printed = found["runs"][how], PLANNING[name]
        if not runs["plain"]:
            continue
        plain = f"{values(runs['plain'], 'iterations').mean():.0f} / {printed.iterations[0]}"
        cells = [name, plain, f"{ratio(runs, 'planning 1', 'iterations')} / {printed.share:.2f}"]
        lines.append(row(cells + [ratio(runs, kind, "iterations") for kind in list(KINDS)[2:]]))
    return lines


def seconds_table(results: dict[str, dict], how: str) -> list[str]:
    """Seconds of plain steps, and of the others relative to them."""
    titles = ["set", "plain, s", *list(KINDS)[1:]]
    lines = [f"## Seconds {how}", "", *head(titles)]
    for name, found in results.items():
        runs, theirs = found["runs"][how], PLANNING[name].seconds
        if not runs["plain"]:
            continue
        cells = [name, f"{values(runs['plain'], 'seconds').mean():.4f} / {theirs[0]:.2f}"]
        cells += [f"{ratio(runs, 'planning 1', 'seconds')} / {theirs[1] / theirs[0]:.2f}"]
        lines.append(row(cells + [ratio(runs, kind, "seconds") for kind in list(KINDS)[2:]]))
    return lines


def problems_table(results: dict[str, dict]) -> list[str]:
    """The problems, and what the objectives differ by."""
    titles = ["set", "n", "C", "gamma", "support", "bounded", "permutations", "objective differs by", "falls by"]
    titles.append("planning 1 ends higher")
    lines = ["## Problems", "", *head(titles)]
    for name, found in results.items():
        s, runs, printed = SETS[name], found["runs"]["with shrinking"], PLANNING[name]
        plain, planned = runs["plain"], runs["planning 1"]
        difference, loss = largest_difference(found)
        ours, theirs = values(planned, "objective"), values(plain, "objective")
        cells = [name, str(found["n"]), f"{s.C:g}", f"{s.gamma:g}"]
        cells += [f"{values(plain, 'support').mean():.0f} / {printed.support}"]
        cells += [f"{values(plain, 'bounded').mean():.0f} / {printed.bounded}"]
        cells += [str(len(plain)), f"{difference:.1e}", f"{loss:.1e}"]
        cells += [f"{int((ours > theirs).sum())} of {len(plain)}{'*' if differ(ours, theirs) else ''}"]
        lines.append(row(cells))
    return lines


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files; default: only the sets that are generated")
    parser.add_argument("--sets", nargs="+", choices=list(SETS), help="default: all but chess-board-100000")
    parser.add_argument("--permutations", type=int, default=10)
    parser.add_argument("--full", action="store_true", help="chess-board-100000 too: some CPU minutes")
    parser.add_argument("--quick", action="store_true", help="a few small sets in two permutations")
    parser.add_argument("--out", type=Path, help="file for the figures of every training, as JSON")
    parser.add_argument("--set", choices=list(SETS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.set:
        measure(arguments)
        return
    if arguments.quick:
        arguments.sets, arguments.permutations = QUICK, 2
    names = arguments.sets or [name for name in SETS if arguments.full or not SETS[name].long]
    there = [name for name in names if arguments.data or SETS[name].make]
    words = ["--permutations", arguments.permutations, "--set"]
    found = {name: elsewhere(__file__, *words, name, data=arguments.data) for name in tqdm(there)}
    results = {name: figures for name, figures in found.items() if figures}
    tables = [problems_table(results)]
    tables += [iterations_table(results, how) for how in SHRINKING] + [seconds_table(results, how) for how in SHRINKING]
    print("\n\n".join("\n".join(table) for table in tables))
    if arguments.out:
        arguments.out.write_text(json.dumps(results))


if __name__ == "__main__":
    main()
