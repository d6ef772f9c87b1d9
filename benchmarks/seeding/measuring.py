"""Methods on one set, which take turns, and how their predictions compare."""

import argparse
from typing import Any

import numpy as np
import scipy.sparse as sp
from shared.clock import TooSlowError, limit, timed
from sklearn.metrics.pairwise import rbf_kernel

from seeding.methods import (
    AUTO,
    LIBSVM,
    REFERENCE,
    Method,
    Outcome,
    Setting,
    libsvm,
    libsvm_once,
    refitted,
    scored,
    seeded,
)
from streamsvm.batch import SolverOptions, smo
from streamsvm.validation import folds

LEAVE_ONE_OUT = "loo"
SURE = 1e-2  # |f| from which a prediction has to be the same
TURN = 0.2  # seconds for which a fast method runs again and again
ENOUGH = 10.0  # seconds after which a method is not repeated
FLOAT32 = 6e-8  # relative error of LIBSVM's kernel rows


class Run:
    """A method on one set and one kind of folds."""

    def __init__(self, name: str, method: Method, setting: Setting, splits: folds.Folds, most: float = 0.0) -> None:
        self.name, self.method, self.setting, self.splits = name, method, setting, splits
        self.share = 1.0  # of the folds that are trained
        self.most = most  # CPU seconds of a run after which it is cut off; 0: none
        self.cpu: list[float] = []
        self.wall: list[float] = []
        self.outcome: Outcome | None = None
        self.cut = False

    def thin(self, seconds: float) -> "Run":
        """Train on so many of the folds as that takes, at least three."""
        few = min(3, len(self.splits))
        _, cpu, _ = timed(lambda: self.method(self.setting, thinned(self.splits, few)))
        affordable = max(few, int(few * seconds / cpu))
        if affordable < len(self.splits):
            self.share = affordable / len(self.splits)
            self.splits = thinned(self.splits, affordable)
        return self

    def turn(self) -> None:
        """Run it once, or again and again if it is fast; a turn counts as the mean of its runs."""
        cpu: list[float] = []
        wall: list[float] = []
        while not self.cut and sum(cpu) < TURN and sum(self.cpu) < ENOUGH:
            try:
                with limit(self.most):
                    self.outcome, *seconds = timed(lambda: self.method(self.setting, self.splits))
            except TooSlowError:
                self.cut = True
                return
            cpu.append(seconds[0])
            wall.append(seconds[1])
        if cpu:
            self.cpu.append(float(np.mean(cpu)))
            self.wall.append(float(np.mean(wall)))

    def figures(self, reference: np.ndarray) -> dict:
        """As the tables need them."""
        found: dict[str, Any] = {"method": self.name, "share": self.share, "runs": len(self.cpu)}
        if self.outcome is None:
            return found
        found |= {"cpu": min(self.cpu) / self.share, "wall": min(self.wall) / self.share}
        found |= {key: getattr(self.outcome, key) for key in ("accuracy", "iterations", "newton", "rows", "note")}
        if self.share < 1:
            found["note"] = f"{len(self.splits)} folds"
            found["accuracy"] = None
        if self.outcome.iterations is not None:
            found["iterations"] = round(self.outcome.iterations / self.share)
        if self.outcome.predictions is not None:
            found |= differences(self.outcome, reference)
        return found


def differences(outcome: Outcome, reference: np.ndarray) -> dict:
    """How it compares with the decision values of SVC, which may be those of some of the examples."""
    sure = np.abs(reference) > SURE  # False where NaN
    differ = np.sign(reference[sure]) != outcome.predictions[sure]
    apart = np.abs(outcome.f - reference)
    known = ~np.isnan(apart)
    return {
        "differ": int(differ.sum()),
        "of": int(sure.sum()),
        "max_df": float(apart[known].max()) if known.any() else None,
    }


def thinned(splits: folds.Folds, count: int) -> folds.Folds:
    """So many of the folds, evenly spread."""
    some = np.linspace(0, len(splits) - 1, count).astype(int)
    return folds.Folds(splits.n, [splits.tests[i] for i in some], [splits.left_out[i] for i in some])


def splits_of(kind: str, y: np.ndarray) -> folds.Folds | None:
    """The folds; None if there are too few examples."""
    if kind == LEAVE_ONE_OUT:
        return folds.leave_one_out(len(y))
    return folds.stratified(y, int(kind)) if int(kind) <= min((y > 0).sum(), (y < 0).sum()) else None


def methods_of(kind: str, seedings: tuple[str, ...]) -> dict[str, Method]:
    """This project's methods."""
    named = {seeding: seeded(seeding) for seeding in seedings}
    if kind == LEAVE_ONE_OUT:
        named |= {f"{name}, right?": seeded(name, values=False) for name in (AUTO, "path", "best") if name in seedings}
    return named


def compare(setting: Setting, kind: str, options: argparse.Namespace) -> dict | None:
    """All methods on one set and one kind of folds, taking turns."""
    splits = splits_of(kind, setting.y)
    if splits is None:
        return None
    most = options.max_seconds
    runs = [Run(name, method, setting, splits, most) for name, method in methods_of(kind, options.seedings).items()]
    if not options.alone:
        others = (REFERENCE, refitted), ("cross_val_score", scored)
        runs = [Run(name, method, setting, splits).thin(most) for name, method in others] + runs
    baseline, guess = runs[0], None
    peer = None if options.alone else libsvm(setting)
    if peer is not None:
        guess = libsvm_once(setting, len(splits))
        if guess <= most:
            runs.insert(2, Run(LIBSVM, peer, setting, splits))
    for _ in range(options.repeats):
        for run in runs:
            run.turn()
    rows = [run.figures(baseline.outcome.f) for run in runs]
    if guess is not None and guess > most:
        rows.insert(2, {"method": LIBSVM, "share": 1 / len(splits), "cpu": guess, "note": "one training"})
    task = setting.task
    about = {"set": task.name, "n": len(setting.y), "d": setting.X.shape[1], "C": task.C, "gamma": task.gamma}
    return about | {"folds": kind, "k": len(splits), "libsvm": peer is not None, "rows": rows}


def warm_up(setting: Setting, seedings: tuple[str, ...]) -> None:
    """Load the compiled code that the methods need, with 40 examples of each class."""
    some = np.concatenate([np.flatnonzero(setting.y == label)[:40] for label in (-1, 1)])
    small = Setting(setting.task, setting.X[some], setting.y[some], setting.X_svc[some])
    for kind in ("10", LEAVE_ONE_OUT):
        splits = splits_of(kind, small.y)
        for method in (refitted, scored, *methods_of(kind, seedings).values()):
            method(small, splits)


def equality(setting: Setting, tol: float) -> dict:
    """One training on all examples, by SVC and here."""
    task, y = setting.task, setting.y.astype(float)
    model = setting.svc(tol=tol).fit(setting.X_svc, y)
    ours = smo.solve(setting.X, y, C=task.C, gamma=task.gamma, options=SolverOptions(tol=tol))
    beta, ids = model.dual_coef_, model.support_
    beta = (beta.toarray() if sp.issparse(beta) else beta).ravel()
    objective = float(beta @ y[ids] - 0.5 * beta @ rbf_kernel(setting.X[ids], gamma=task.gamma) @ beta)
    apart = np.abs(model.decision_function(setting.X_svc) - ours.decision_values)
    return {
        "set": task.name,
        "tol": tol,
        "max_df": float(apart.max()),
        "floor": FLOAT32 * float(np.abs(ours.dual_coef).sum()),
        "objective": ours.objective,
        "gain": (ours.objective - objective) / abs(objective),
        "support": len(ours.support),
        "support_svc": len(ids),
        "iterations": ours.iterations,
        "newton": ours.newton_steps,
        "iterations_svc": int(model.n_iter_.sum()),
    }
