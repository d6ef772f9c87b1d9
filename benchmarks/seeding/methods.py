"""Ways to cross-validate: scikit-learn's, LIBSVM's, and this project's from each of its starts."""

import contextlib
import io
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from datasets import Task
from shared.clock import timed
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from streamsvm import LASVM
from streamsvm.validation import cross_validate, folds

REFERENCE, LIBSVM, COLD, AUTO = "scikit-learn", "libsvm -v", "none", "auto"


class Setting(NamedTuple):
    """A task with its data."""

    task: Task
    X: np.ndarray | sp.csr_matrix
    y: np.ndarray  # -1 and +1
    X_svc: np.ndarray | sp.csr_matrix  # in the form in which SVC is faster
    cache_mb: float = 256.0  # of this project's kernel rows

    def svc(self, **options: Any) -> SVC:
        """scikit-learn's model for it."""
        return SVC(C=self.task.C, gamma=self.task.gamma, **options)


class Outcome(NamedTuple):
    """What a cross-validation found; None: it does not say."""

    predictions: np.ndarray | None = None  # -1 and +1; 0: not tested
    f: np.ndarray | None = None  # decision values; NaN: not known
    accuracy: float | None = None  # percent
    iterations: int | None = None
    newton: int | None = None
    rows: int | None = None
    note: str = ""


Method = Callable[[Setting, folds.Folds], Outcome]


def setting_of(task: Task, X: np.ndarray | sp.csr_matrix, y: np.ndarray) -> Setting:
    """The task with its data, for SVC in the form in which one training is faster."""
    setting = Setting(task, X, y, X)
    if not sp.issparse(X):
        return setting
    dense = setting._replace(X_svc=X.toarray())
    return min((setting, dense), key=lambda one: timed(lambda: one.svc().fit(one.X_svc, y))[1])


def refitted(setting: Setting, splits: folds.Folds) -> Outcome:
    """SVC for each fold."""
    f, iterations = np.full(len(setting.y), np.nan), 0
    for train, test in splits:
        model = setting.svc().fit(setting.X_svc[train], setting.y[train])
        f[test] = model.decision_function(setting.X_svc[test])
        iterations += int(model.n_iter_.sum())
    tested = ~np.isnan(f)
    predictions = np.where(tested, np.where(f > 0, 1, -1), 0)
    return Outcome(predictions, f, 100 * float((predictions == setting.y)[tested].mean()), iterations)


def scored(setting: Setting, splits: folds.Folds) -> Outcome:
    """scikit-learn's `cross_val_score`."""
    scores = cross_val_score(setting.svc(), setting.X_svc, setting.y, cv=list(splits))
    return Outcome(accuracy=100 * float(np.average(scores, weights=[len(test) for test in splits.tests])))


def seeded(seeding: str, values: bool = True) -> Method:
    """This project's, from one of its starts."""

    def method(setting: Setting, splits: folds.Folds) -> Outcome:
        task = setting.task
        model = LASVM(C=task.C, gamma=task.gamma, cache_mb=setting.cache_mb)
        result = cross_validate(model, setting.X, setting.y, folds=splits, seeding=seeding, values=values)
        events = sum(part.events for part in result.per_fold)
        note = (result.seeding if seeding == AUTO else "") + (f" {events} events" if events else "")
        return Outcome(
            result.predictions,
            result.decision_values,
            100 * result.accuracy,
            result.iterations,
            result.newton_steps,
            result.rows_computed,
            note.strip(),
        )

    return method


def libsvm(setting: Setting) -> Method | None:
    """LIBSVM's `-v`, its data converted beforehand; None if it is not installed."""
    try:
        from libsvm.svmutil import svm_problem, svm_train
    except ImportError:
        return None
    problem = svm_problem(setting.y.astype(float), setting.X)

    def method(setting: Setting, splits: folds.Folds) -> Outcome:
        options = f"-q -c {setting.task.C} -g {setting.task.gamma} -v {len(splits)}"
        with contextlib.redirect_stdout(io.StringIO()):  # it says what it returns
            return Outcome(accuracy=float(svm_train(problem, options)))

    return method


def libsvm_once(setting: Setting, k: int) -> float:
    """CPU seconds of k trainings by LIBSVM on 1 - 1/k of the examples, of which one is measured."""
    from libsvm.svmutil import svm_problem, svm_train

    some = np.random.default_rng(0).permutation(len(setting.y))[: math.ceil(len(setting.y) * (1 - 1 / k))]
    problem = svm_problem(setting.y[some].astype(float), setting.X[some])
    begin = time.process_time()
    svm_train(problem, f"-q -c {setting.task.C} -g {setting.task.gamma}")
    return k * (time.process_time() - begin)
