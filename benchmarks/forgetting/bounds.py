"""Prequential error of models with and without bounds on what they keep, before and after an abrupt change."""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from shared.tables import table

from forgetting.streams import BATCH, POINT, Stream, drifting, opposite
from streamsvm import LASVM

BOUNDS: dict[str, dict[str, Any]] = {
    "unbounded": {},
    "window=2000": {"window": 2000},
    "window=500": {"window": 500},
    **{f'budget=500, "{how}"': {"budget": 500, "on_budget": how} for how in ("remove", "project", "merge")},
    'budget=500, "remove", window=2000': {"budget": 500, "on_budget": "remove", "window": 2000},
}


def prequential(stream: Stream, **bounds: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Wrong predictions, and members and seconds after each batch."""
    model = LASVM(C=stream.C, gamma=stream.gamma, **bounds)
    wrong, members, seconds = np.ones(len(stream.y), bool), [], []
    for begin in range(0, len(stream.y), BATCH):
        part = slice(begin, begin + BATCH)
        if begin:
            wrong[part] = (model.decision_function_many(stream.X[part]) > 0) != stream.y[part]
        start = time.perf_counter()
        model.learn_many(stream.X[part], stream.y[part])
        seconds.append(time.perf_counter() - start)
        members.append(model.n_members)
    return wrong, np.array(members), np.array(seconds)


def bounded(options: argparse.Namespace) -> None:
    """Print what bounds do around an abrupt change."""
    for one in (drifting(options.examples), opposite(options.examples)):
        curves = show_bounded(one)
        if options.pictures:
            draw_bounded(one, curves, options.pictures / f"forget-bounded-{one.name}.png")


def show_bounded(one: Stream) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Print prequential errors before and after the change; wrong predictions and members by the bounds' names."""
    half, n = len(one.y) // 2, len(one.y)
    parts = [("before", slice(half // 2, half)), ("first 500 after", slice(half, half + 500))]
    parts += [("next 500", slice(half + 500, half + 1000)), ("next 1000", slice(half + 1000, half + 2000))]
    parts += [("end", slice(n - (n - half) // 4, n))]
    rows, curves = [], {}
    for name, bounds in BOUNDS.items():
        wrong, members, seconds = prequential(one, **bounds)
        curves[name] = wrong, members
        errors = [f"{100 * wrong[part].mean():.2f}" for _, part in parts]
        late = 1e6 * seconds[-len(seconds) // 4 :].mean() / BATCH
        rows.append([name, *errors, str(members.max()), str(members[-1]), f"{late:.0f}"])
    print(f"\n### {one.name}: abrupt change after {half} of {n} examples, prequential error %\n")
    heads = "|".join(name for name, _ in parts)
    print(table(f"model|{heads}|most members|at the end|us per example, last quarter", rows), flush=True)
    return curves


def draw_bounded(stream: Stream, curves: dict[str, tuple[np.ndarray, np.ndarray]], picture: Path) -> None:
    """Errors over the last 500 examples, and members."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    for name, (wrong, members) in curves.items():
        rolling = np.convolve(wrong, np.ones(POINT) / POINT, "valid")
        above.plot(np.arange(POINT, len(wrong) + 1), 100 * rolling, label=name, lw=1.2)
        below.plot(BATCH * np.arange(1, len(members) + 1), members, lw=1.2)
    above.set_ylabel(f"prequential error % of the last {POINT}")
    above.legend(fontsize="small")
    below.set(xlabel="examples", ylabel="members")
    for axes in (above, below):
        axes.axvline(stream.change, color="grey", lw=0.8)
        axes.grid(alpha=0.3)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=120)


def add_command(kinds: Any) -> None:
    """Add this file's sub-command to the command line."""
    one = kinds.add_parser("bounded", help="budget and window around an abrupt change")
    one.add_argument("--examples", type=int, default=12_000)
    one.add_argument("--pictures", type=Path, help="folder for the pictures; default: none are drawn")
    one.set_defaults(run=bounded)
