"""Alarms: how often they are false, and how soon they hear a change; and whether explanations name what decides.

    python benchmarks/alarms.py --data DIR           # all tables
    python benchmarks/alarms.py --quick              # few and short streams, and no set from a folder

exchangeable   streams whose records are drawn independently of each other: every alarm is false
changes        20 streams each; three features, or two classes, that change after 1000 or after 4000 records
sets           real streams: LASVM(window=500) predicts each record before it is learned
explanations   LASVM on ijcnn1, asked about the 1000 records after the first 8000, 16 000, 24 000 and 32 000: the three
               members that `explain_one` names are forgotten, or three others of the same side; the steepest feature is
               changed by 1.5 times what should turn the answer
"""

import argparse
import copy
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from defaults import of_folder
from shared.tables import table
from tqdm import tqdm

from streamsvm import LASVM
from streamsvm.alarms import ErrorAlarm, InputAlarm

SETS = {"elec2": True, "ijcnn1": True, "creditcard_subset": True, "a9a": False, "banana": False}  # in order of time?
LONGEST = 20_000
Features = Callable[[np.random.Generator, int], np.ndarray]


def heard_inputs(X: np.ndarray, first: bool = False) -> list[int]:
    """The records at which `InputAlarm` speaks; only the first one if that is enough."""
    alarm, heard = InputAlarm(), []
    for n, x in enumerate(X.tolist()):
        alarm.update(dict(enumerate(x)))
        if alarm.drift_detected:
            heard.append(n)
            if first:
                break
    return heard


def heard_errors(wrong: np.ndarray, y: np.ndarray, first: bool = False) -> list[int]:
    """The records at which `ErrorAlarm` speaks; only the first one if that is enough."""
    alarm, heard = ErrorAlarm(), []
    for n, (x, label) in enumerate(zip(wrong.tolist(), y.tolist(), strict=True)):
        alarm.update(x, label)
        if alarm.drift_detected:
            heard.append(n)
            if first:
                break
    return heard


# -------------------------------------------------------------------------------------------------------- exchangeable


def mixed(rng: np.random.Generator, n: int) -> np.ndarray:
    """A normal feature, a skewed one, one of 0 and 1, and a rounded one."""
    return np.column_stack(
        [rng.normal(size=n), rng.exponential(size=n), rng.random(n) < 0.1, rng.normal(size=n).round()]
    )


def false_alarms(n_streams: int, n: int) -> Iterator[list[str]]:
    """Alarms in streams without a change."""
    of_inputs = of_errors = 0
    for seed in tqdm(range(n_streams), "exchangeable", leave=False):
        rng = np.random.default_rng(seed)
        of_inputs += len(heard_inputs(mixed(rng, n)))
        of_errors += len(heard_errors(rng.random(n) < 0.15, rng.random(n) < 0.1))
    yield ["`InputAlarm`, four features", f"{n_streams} x {n}", str(of_inputs)]
    yield ["`ErrorAlarm`, classes of 90 and 10 %", f"{n_streams} x {n}", str(of_errors)]


# ------------------------------------------------------------------------------------------------------------- changes


def moved(size: float) -> Features:
    """What adds so many deviations to one of three features."""
    return lambda rng, n: rng.normal(size=(n, 3)) + np.array([size, 0.0, 0.0])


def new_cluster(rng: np.random.Generator, n: int) -> np.ndarray:
    """One record in ten lies elsewhere."""
    return rng.normal(size=(n, 3)) + 4.0 * (rng.random(n) < 0.1)[:, np.newaxis]


CHANGES: dict[str, Features] = {
    "a feature moves by 1.5 deviations": moved(1.5),
    "a feature moves by 1 deviation": moved(1.0),
    "a feature moves by 0.5 deviations": moved(0.5),
    "one record in ten from a new cluster": new_cluster,
}


def delays(n_streams: int, before: tuple[int, ...]) -> Iterator[list[str]]:
    """How many records after a change the alarm speaks."""
    for name, changed in CHANGES.items():
        yield _row(name, before, [[_of_inputs(changed, at, seed) for seed in range(n_streams)] for at in before])
    for share in (0.9, 0.5, 0.3):
        found = [[_of_errors(share, at, seed) for seed in range(n_streams)] for at in before]
        yield _row(f"errors of both classes from 10 to {100 * share:.0f} %", before, found)


def _of_inputs(changed: Features, at: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    return _delay(heard_inputs(np.concatenate([rng.normal(size=(at, 3)), changed(rng, 3000)]), first=True), at)


def _of_errors(share: float, at: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    wrong = rng.random(at + 3000) < np.where(np.arange(at + 3000) < at, 0.1, share)
    return _delay(heard_errors(wrong, rng.random(at + 3000) < 0.5, first=True), at)


def _delay(heard: list[int], at: int) -> float:
    return heard[0] + 1 - at if heard else np.inf


def _row(name: str, before: tuple[int, ...], found: list[list[float]]) -> list[str]:
    return [name, *(f"{np.median(of):.0f}, {max(of):.0f}" for of in found[: len(before)])]


# ---------------------------------------------------------------------------------------------------------------- sets


def on_sets(folder: Path | None) -> Iterator[list[str]]:
    """Alarms on real streams, and what a record costs."""
    for name, in_order in tqdm(SETS.items(), "sets", leave=False):
        X, y, *_ = of_folder(folder, name, [1], LONGEST, in_order=in_order)
        model, wrong = LASVM(window=500), np.empty(len(y), bool)
        for n in range(0, len(y), 10):
            part = slice(n, n + 10)
            wrong[part] = model.predict_many(X[part]) != y[part]
            model.learn_many(X[part], y[part])
        inputs, records = InputAlarm(), [dict(enumerate(x)) for x in X.tolist()]
        begin = time.process_time()
        for x in records:
            inputs.update(x)
        cost = 1e6 * (time.process_time() - begin) / len(X)
        heard = inputs.n_alarms, "muted" if inputs.muted else ""
        of_errors = len(heard_errors(wrong, y))
        yield [name, f"{len(X)}, {X.shape[1]}", str(of_errors), " ".join(map(str, heard)).strip(), f"{cost:.1f}"]


# -------------------------------------------------------------------------------------------------------- explanations


def explained(folder: Path | None) -> Iterator[list[str]]:
    """How many decisions turn without the members that an explanation names.

    To forget a member, a model optimises all others again.  This alone turns a fifth of the decisions near the boundary
    of a model that follows a stream, so the models are optimised first.
    """
    X, y, *_ = of_folder(folder, "ijcnn1", [1], LONGEST, in_order=True)
    model, rng, margins, turned = LASVM(), np.random.default_rng(0), [], []
    for begin in tqdm((0, 8000, 16_000, 24_000), "explanations", leave=False):
        model.learn_many(X[begin : begin + 8000], y[begin : begin + 8000], ids=np.arange(begin, begin + 8000))
        solved = copy.deepcopy(model)
        solved.finish()
        for x in X[begin + 8000 : begin + 9000].tolist():
            query = dict(enumerate(x))
            if (margin := abs(solved.decision_function_one(query))) < 1.0:
                margins.append(margin)
                turned.append(_turned(solved, query, rng))
    for low, high in ((0.0, 0.2), (0.2, 0.5), (0.0, 0.5), (0.5, 1.0)):
        chosen = (np.array(margins) >= low) & (np.array(margins) < high)
        shares = np.array(turned)[chosen].mean(axis=0)
        yield [f"{low} to {high}", str(np.count_nonzero(chosen)), *(f"{100 * share:.0f} %" for share in shares)]


def _turned(model: LASVM, x: dict, rng: np.random.Generator) -> list[bool]:
    """Whether the answer turns: without the named members, without others, with another value of a feature."""
    why = model.explain_one(x)
    same_side = model.support_ids[(model.dual_coef > 0.0) == why.label]
    turned = []
    for ids in ([member.id for member in why.members], rng.choice(same_side, 3, replace=False)):
        without = copy.deepcopy(model)
        without.forget(ids)
        turned.append(without.predict_one(x) != why.label)
    steepest = why.features[0]
    changed = x | {steepest.name: x[steepest.name] + 1.5 * steepest.change}
    return [*turned, model.predict_one(changed) != why.label]


def main() -> None:
    """Parse the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few and short streams, and no set from a folder")
    parser.add_argument("--data", type=Path, help="folder of npz files, for the sets")
    given = parser.parse_args()
    n_streams, n, before = (4, 2000, (1000,)) if given.quick else (200, 10_000, (1000, 4000))
    print(table("no change|streams x records|alarms", list(false_alarms(n_streams, n))))
    titles = "|".join(["records until it is heard: median, worst", *(f"after {at}" for at in before)])
    print(table(titles, list(delays(4 if given.quick else 20, before))))
    if not given.quick:
        titles = "set|records, features|of errors|of inputs|us a record, inputs"
        print(table(titles, list(on_sets(given.data))))
        titles = "margin|decisions|turn without the 3 named|without 3 others|with the feature changed"
        print(table(titles, list(explained(given.data))))


if __name__ == "__main__":
    main()
