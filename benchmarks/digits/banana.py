"""Banana, with REPROCESS repeated until the violation is at most `delta_max`."""

import statistics
import time
from pathlib import Path

from datasets import TASKS, Data, Task, load

import streamsvm
from digits.fits import warm_up

DELTAS = (1000.0, 100.0, 10.0, 5.0, 2.0, 1.0, 0.5)
SHUFFLES = 3  # of banana


def fit_banana(folder: Path | None) -> list[dict]:
    """One epoch with REPROCESS repeated until each `delta_max`, before FINISH and after it: means over the shuffles."""
    task = TASKS["banana"]
    shuffles = [load(task, folder, seed) for seed in range(SHUFFLES)]
    warm_up(streamsvm.LASVM(task.C, gamma=task.gamma, reprocess=1))
    means = []
    for delta_max in DELTAS:
        runs = [learn_banana(data, task, delta_max) for data in shuffles]
        means.append({name: statistics.fmean(run[name] for run in runs) for name in runs[0]})
    return means


def learn_banana(data: Data, task: Task, delta_max: float) -> dict:
    """One epoch, and FINISH."""
    paper_s = {"reprocess": 1, "admission": "violation"}
    model = streamsvm.LASVM(task.C, gamma=task.gamma, delta_max=delta_max, **paper_s)
    start = time.process_time()
    model.learn_many(data.X, data.y)
    results = {"learning": time.process_time() - start, **_now(model, data, "before")}
    start = time.process_time()
    model.finish()
    return {**results, "finishing": time.process_time() - start, **_now(model, data, "after")}


def _now(model, data: Data, when: str) -> dict:
    wrong = model.predict_many(data.X_test) != (data.y_test > 0)
    return {f"error {when}": 100 * float(wrong.mean()), f"support {when}": model.n_support}
