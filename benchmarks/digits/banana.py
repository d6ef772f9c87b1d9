"""Banana, with REPROCESS repeated until the violation is at most `delta_max`."""

import copy
import statistics
from pathlib import Path

import numpy as np
from datasets import TASKS, Data, Task, load
from shared.clock import cpu_seconds
from sklearn.svm import SVC

import streamsvm
from digits.fits import warm_up

DELTAS = (1000.0, 100.0, 10.0, 5.0, 2.0, 1.0, 0.5)
SHUFFLES = 3  # of banana


def fit_banana(folder: Path | None) -> list[dict]:
    """REPROCESS repeated until each `delta_max`: means over the shuffles; the last has the figures of LIBSVM."""
    task = TASKS["banana"]
    shuffles = [load(task, folder, seed) for seed in range(SHUFFLES)]
    warm_up(streamsvm.LASVM(task.C, gamma=task.gamma, reprocess=1))
    return [
        *(_means([learn_banana(data, task, delta_max) for data in shuffles]) for delta_max in DELTAS),
        _means([fit_libsvm(data, task) for data in shuffles]),
    ]


def _means(runs: list[dict]) -> dict:
    return {name: statistics.fmean(run[name] for run in runs) for name in runs[0]}


def learn_banana(data: Data, task: Task, delta_max: float) -> dict:
    """One epoch, without FINISH and with it; two epochs with FINISH."""
    paper_s = {"reprocess": 1, "admission": "violation"}
    model, ids = streamsvm.LASVM(task.C, gamma=task.gamma, delta_max=delta_max, **paper_s), np.arange(len(data.y))
    seconds = cpu_seconds(model.learn_many, data.X, data.y, ids=ids)
    results = {"seconds 1": seconds, **_now(model, data, "1")}
    finished = copy.deepcopy(model)
    results |= {"seconds 1F": seconds + cpu_seconds(finished.finish), **_now(finished, data, "1F")}
    seconds += cpu_seconds(model.learn_many, data.X, data.y, ids=ids) + cpu_seconds(model.finish)
    return {**results, "seconds 2F": seconds, **_now(model, data, "2F")}


def fit_libsvm(data: Data, task: Task) -> dict:
    """SVC on the same examples."""
    model = SVC(C=task.C, gamma=task.gamma)
    seconds = cpu_seconds(model.fit, data.X, data.y)
    error = 100 * float(np.mean(model.predict(data.X_test) != data.y_test))
    return {"seconds": seconds, "error": error, "support": int(model.n_support_.sum())}


def _now(model: streamsvm.LASVM, data: Data, when: str) -> dict:
    wrong = model.predict_many(data.X_test) != (data.y_test > 0)
    return {f"error {when}": 100 * float(wrong.mean()), f"support {when}": model.n_support}
