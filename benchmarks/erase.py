"""What it costs to forget people, at once and by a rebuild, and what an attacker still learns about them.

The stream has 22 features, 1000 people and noisy labels; the model keeps a budget of members.  Of the people, 100 are
erased: first the trainer forgets them at once, then the log is replayed without them.  The table has CPU seconds of one
thread, and nothing else runs.

The attack asks of each person whether the model has seen their records.  The attacker has the records, and as many of
people that never were in the stream, and guesses by how well the model says the labels: the mean margin of a person's
records.  Their accuracy at the best threshold of one half of the people is measured on the other half; 50 % is chance.

The last part gives half a percent of the records, in a row, the wrong label, and lets `streamsvm bisect` find them.

    python benchmarks/erase.py            # 100,000 records, a budget of 2000: ten minutes
    python benchmarks/erase.py --quick    # 10,000 records, a budget of 500
    python benchmarks/erase.py --million  # the first table for 1,000,000 records: ten minutes of CPU time
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from streamsvm import LASVM, warmup
from streamsvm.connectors.commands.cli import main as streamsvm
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.trainer import erasing, trainer
from streamsvm.connectors.trainer.state.digests import digests
from streamsvm.connectors.trainer.state.stored_state import read_state

N_FEATURES, N_PEOPLE, N_ERASED = 22, 1000, 100
NAMES = [f"feature-{i}" for i in range(N_FEATURES)]


def people(n, seed, noise):
    """Records of people, each with a place of their own; a share of the labels is wrong."""
    rng = np.random.default_rng(seed)
    who = rng.integers(0, N_PEOPLE, n)
    x = rng.normal(size=(N_PEOPLE, N_FEATURES))[who] * 0.5 + rng.normal(size=(n, N_FEATURES))
    y = (x[:, 0] + x[:, 1] * x[:, 2] > 0) ^ (rng.random(n) < noise)
    return x.round(4), y, who


def configured(folder, budget):
    path = folder / "app.toml"
    path.write_text(f'[log]\nerasures = "erasures"\n[model]\nC = 10.0\nbudget = {budget}\n[daemon]\nfollow = false\n')
    return path


def fill(folder, x, y, who, chosen, begun, topic="events"):
    """Write the chosen records to a topic; their times are a tenth of a second apart."""
    with LocalLog(folder / "log") as log:
        for i in np.flatnonzero(chosen).tolist():
            named = dict(zip(NAMES, x[i].tolist(), strict=True))
            event = {"id": i, "x": named, "y": bool(y[i]), "user": f"u{who[i]}", "ts": begun + i / 10}
            log.produce(topic, json.dumps(event).encode())


def timed(work, *arguments):
    begun = time.process_time()
    return work(*arguments), time.process_time() - begun


class Erasing:
    """The CPU time that a trainer takes for the requests."""

    def __init__(self):
        self.seconds, self._erase = 0.0, erasing.erase
        erasing.erase = self

    def __call__(self, *arguments):
        found, seconds = timed(self._erase, *arguments)
        self.seconds += seconds
        return found


def cost(n, budget):
    """The rows of the first table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = configured(folder, budget)
        begun = int(time.time())
        x, y, who = people(n, 0, 0.05)
        fill(folder, x, y, who, who >= 0, begun)
        before, training = timed(trainer.run, load(config, {}))
        subjects = [f"--subject=u{number}" for number in range(N_ERASED)]
        _, finding = timed(streamsvm, ["erase", str(config), "--by", "user", *subjects])
        at_once = Erasing()
        forgot = trainer.run(load(config, {}))
        receipt = folder / "receipt.json"
        arguments = ["rebuild", str(config), "--receipt", str(receipt)]
        _, rebuilding = timed(streamsvm, arguments)
        _, swapping = timed(trainer.run, load(config, {}))
        streamsvm(arguments)
        _, verifying = timed(streamsvm, ["verify", str(receipt), str(config)])
        after = json.loads(receipt.read_text())["partitions"]["0"]["after"]
        other = folder / "never"
        other.mkdir()
        fill(other, x, y, who, who >= N_ERASED, begun)
        never = trainer.run(load(configured(other, budget), {}))[0]
        is_equal = digests(never)["models"] == after["models"]
        [stored] = read_state(folder / "state")
        members = [state[0].model.n_members for state in (before, forgot)]
    print(f"\n{n:,} records x {N_FEATURES} columns, budget {budget}, {N_ERASED} of {N_PEOPLE} people erased\n")
    print("| step | CPU s |\n| --- | ---: |")
    print(f"| the first training | {training:.1f} |")
    print(f"| `streamsvm erase`: finding {N_ERASED} people in the log | {finding:.1f} |")
    print(
        f"| the trainer forgets them at once | {at_once.seconds:.3f}: {1000 * at_once.seconds / N_ERASED:.2f} ms each |"
    )
    print(f"| `streamsvm rebuild` | {rebuilding:.1f} |")
    print(f"| the swap, with the start of a trainer | {swapping:.2f} |")
    print(f"| `streamsvm verify` | {verifying:.1f} |")
    print(f"\nMembers before and after forgetting at once: {members[0]}, {members[1]}.")
    print(f"After the swap: {stored.models.model.n_members}.")
    print(f"Digest of the rebuilt model equal to that of a log that never had them: {is_equal}")


def attacked(n, seed):
    """The accuracies of the attack: on people in the model, after forgetting at once, and after a rebuild."""
    rng = np.random.default_rng(seed)
    n_each, n_people = 5, n // 5
    who = np.repeat(np.arange(n_people), n_each)
    x = rng.normal(size=(n_people, N_FEATURES))[who] + 0.3 * rng.normal(size=(len(who), N_FEATURES))
    y = (rng.random(n_people) < 0.5)[who]  # nothing to learn but the people themselves
    erased, never = who % 4 == 0, who % 4 == 1

    def model(rows):
        found = LASVM(C=10.0, gamma=0.05)
        found.learn_many(x[rows], y[rows], ids=np.flatnonzero(rows))
        return found

    def accuracy(found):
        margins = np.where(y, 1, -1) * found.decision_function_many(x)
        means = margins.reshape(-1, n_each).mean(axis=1)
        inside, outside = means[erased[::n_each]], means[never[::n_each]]
        guesses = []
        for first, second in ((0, 1), (1, 0)):
            known = np.concatenate([inside[first::2], outside[first::2]])
            truth = np.arange(len(known)) < len(inside[first::2])
            best = max(known, key=lambda cut: np.mean((known >= cut) == truth))
            guesses += [np.mean(inside[second::2] >= best), np.mean(outside[second::2] < best)]
        return float(np.mean(guesses))

    full = model(~never)
    before = accuracy(full)
    full.forget(np.flatnonzero(erased))
    return before, accuracy(full), accuracy(model(~never & ~erased))


def attack(n, n_seeds):
    found = np.array([attacked(n, seed) for seed in range(n_seeds)])
    print(f"\n{n:,} records of {n // 5:,} people, {n_seeds} streams\n")
    print("| the attacker of erased people is right in | mean | +- |\n| --- | ---: | ---: |")
    for name, column in zip(("before", "after forgetting at once", "after a rebuild"), found.T, strict=True):
        print(f"| {name} | {100 * column.mean():.1f} % | {100 * column.std() / np.sqrt(n_seeds):.1f} |")


def found(n, budget, first):
    """Half a percent of the records from `first` on have the wrong label; which ones bisect names."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = configured(folder, budget)
        begun = int(time.time())
        x, y, who = people(n + 5000, 1, 0.05)
        trusted = np.arange(n + 5000) >= n
        poisoned = range(first, first + n // 200)
        y[poisoned] = ~y[poisoned]
        fill(folder, x, y, who, ~trusted, begun)
        fill(folder, x, y, who, trusted, begun, "trusted")
        print(f"\n{n:,} records, {len(poisoned)} with the wrong label: offsets {first} to {poisoned.stop}\n")
        _, seconds = timed(streamsvm, ["bisect", str(config), "--held-out", "trusted"])
        print(f"{seconds:.1f} CPU s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--data", help="not used: the streams are made")
    chosen = parser.parse_args()
    quick = chosen.quick
    warmup(LASVM, removal=True)
    if chosen.million:
        cost(1_000_000, 2000)
        sys.exit()
    attack(*((2000, 3) if quick else (8000, 20)))
    cost(*((10_000, 500) if quick else (100_000, 2000)))
    found(*((10_000, 500, 4150) if quick else (100_000, 2000, 41_500)))
