"""Jobs in processes of their own, with one thread."""

import functools
import json
from pathlib import Path

from datasets import GAP_TASKS, load
from shared import elsewhere as processes

from gap.fits import fit, fit_form, polish
from gap.split import split

COMMAND = Path(__file__).parents[1] / "gap_family.py"

JOBS = {"fit": fit, "polish": polish, "form": fit_form, "split": split}


def run_here(request: dict) -> None:
    """Do one job in this process and print its figures as JSON."""
    task, folder = GAP_TASKS[request.pop("task")], request.pop("data")
    job, seed = JOBS[request.pop("job")], request.pop("seed")
    print(json.dumps(job(load(task, folder and Path(folder), seed), task, **request)))


@functools.cache
def elsewhere(data: Path | None, job: str, task: str, engine: str, seed: int = 0, **parameters) -> dict | None:
    """Do one job in a process of its own, once; None if it failed, which is said."""
    request = {"data": data and str(data), "job": job, "task": task, "engine": engine, "seed": seed, **parameters}
    return processes.elsewhere(COMMAND, "--job", json.dumps(request))
