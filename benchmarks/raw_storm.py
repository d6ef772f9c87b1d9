"""Raw records in a storm: a topic with garbage, fields that come, go and change their kind, and a kill now and then.

    python benchmarks/raw_storm.py [--events N] [--kills K]

One trainer consumes the topic undisturbed, another one is killed (-9) and started again.  It prints the memory over
time, whether both end with the same model and dead letters, and the CPU time for garbage and for good records.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.trainer.state.stored_state import read_state

CONFIG = """[model]
C = 1.0
budget = 200
[features]
raw = true
id = "order"
label = "bought"
time = "created"
[daemon]
follow = false
checkpoint_records = {every}
"""
GARBAGE = (
    *(b"", b"{", b"[1]", b"\xff\xfe", b'{"order": 1, "order": 2}', b'{"bought": true}', b'{"order": {"a": 1}}'),
    *(b'{"order": "g", "a.b": 1, "a": {"b": 2}}', b'{"order": "g", "bought": "perhaps"}', b"NaN", b"7" * 5000),
    b'{"order": "g", "a": ' + b"[" * 150 + b"]" * 150 + b"}",
)
WORDS = ("late", "fast", "happy", "angry", "box", "broken", "call", "thanks", "order", "never", "again", "cheap")


def good(i, n, rng):
    """A record of a shop, whose fields come, go and change their kind."""
    age, job = rng.randint(18, 80), rng.choice(["clerk", "smith", "baker", None])
    record = {
        "order": f"o{i}",
        "age": rng.choice([age, str(age), age, float(age)]) if rng.random() > 0.1 else rng.choice([None, "", "N/A"]),
        "job": job,
        "city": f"city {i % 50_000 if rng.random() < 0.5 else rng.randint(0, 40)}",
        "created": f"2026-{1 + 11 * i // n:02d}-{1 + i % 28:02d}T{i % 24:02d}:00:00Z",
        "note": " ".join(rng.choices(WORDS, k=rng.randint(0, 12))),
        "shop": {"size": rng.random() * 1000, "open": rng.random() < 0.5},
        "bought": str((age > 45) == (job == "clerk")).lower() if rng.random() > 0.1 else "",
    }
    if i > n // 3:
        record["points"] = rng.randint(0, 9)  # comes
    if i > n // 2:
        record["shop"]["size"] = rng.choice(["S", "M", "L"])  # changes its kind
        del record["note"]  # goes
    if i % 97 == 0:
        record[f"extra{i % 40}"] = i  # seldom there
    return json.dumps(record).encode()


def made(n, share, seed=0):
    """So many records, of which a share is garbage."""
    rng = random.Random(seed)
    return [rng.choice(GARBAGE) if rng.random() < share else good(i, n, rng) for i in range(n)]


def folder_with(root, name, values):
    """A folder with a configuration and a log of these records."""
    folder = root / name
    folder.mkdir()
    (folder / "app.toml").write_text(CONFIG.format(every=max(500, len(values) // 20)))
    with LocalLog(folder / "log") as log:
        for value in values:
            log.produce("events", value)
    return folder


def start(folder):
    """A trainer, in a process of its own."""
    command = [Path(sys.executable).with_name("streamsvm"), "run", folder / "app.toml", "--set", "daemon.max_bad=1"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=open(folder / "stderr", "ab"))


def memory(process):
    """Megabytes of a running process."""
    text = Path(f"/proc/{process.pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) // 1024 if "VmRSS:" in text else 0


def run(folder, kills=0, seed=1):
    """Run to the end through so many kills; CPU seconds of the last process, and the megabytes of all over time."""
    rng, megabytes = random.Random(seed), []
    while True:
        process, ends = start(folder), time.monotonic() + rng.uniform(4, 12)
        while (found := os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is None:
            megabytes.append(memory(process))
            if kills and time.monotonic() > ends:
                process.send_signal(signal.SIGKILL)
                kills -= 1
            time.sleep(0.3)
        _, _, usage = os.wait4(process.pid, 0)
        if found.si_code == os.CLD_EXITED and found.si_status == 0:
            return usage.ru_utime + usage.ru_stime, megabytes
        if found.si_code == os.CLD_EXITED:
            raise RuntimeError((folder / "stderr").read_text()[-2000:])


def outcome(folder):
    """What a run left: the digest, the counts, and the dead letters by offset."""
    settings = load(folder / "app.toml", {})
    (stored,) = read_state(settings.daemon.state_dir)
    with LocalLog(settings.log.dir) as log:
        log.seek("dlq", 0, 0)
        letters = {dict(r.headers)["sv-dlq-offset"]: dict(r.headers)["sv-dlq-reason"] for r in log.poll(0, 10**7)}
    counters = {name: n for name, n in stored.checkpoint.counters.items() if name != "seconds"}
    return stored.models.digest(), counters, letters, stored.models.trained(None).records


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="a tenth of the events")
    arguments = parser.parse_args()
    n = arguments.events // (10 if arguments.quick else 1)
    with tempfile.TemporaryDirectory() as name:
        root, values = Path(name), made(n, 0.02)
        n_good = n - (n_garbage := sum(value in GARBAGE for value in values))
        whole, killed = folder_with(root, "whole", values), folder_with(root, "killed", values)
        seconds, megabytes = run(whole)
        quarters = [max(megabytes[len(megabytes) * q // 4 : len(megabytes) * (q + 1) // 4] or [0]) for q in range(4)]
        digest, counters, letters, records = outcome(whole)
        print(
            f"{n:,} records, {n_garbage:,} of them garbage: {seconds:.0f} CPU seconds, {1e6 * seconds / n:.0f} us each"
        )
        print(f"megabytes in each quarter of the run: {', '.join(map(str, quarters))}")
        print(f"dead letters: {len(letters):,}; {dict(Counter(map(bytes.decode, letters.values())))}")
        print(f"fields: {records.n_fields:,}; unfit values: {records.n_unfit:,}; {counters}")
        run(killed, arguments.kills)
        again = outcome(killed)
        print(f"after {arguments.kills} kills: the same model {again[0] == digest}, ", end="")
        print(f"dead letters {again[2] == letters}, counts {again[1] == counters}")
        small = max(2000, n // 10)
        costs = {}
        for what, share in {"good": 0.0, "garbage": 1.0}.items():
            begun, _ = run(folder_with(root, f"few {what}", made(20, share)))
            taken, _ = run(folder_with(root, what, made(small, share)))
            costs[what] = 1e6 * (taken - begun) / small
        print(", ".join(f"{cost:.0f} us of CPU for a {what} record" for what, cost in costs.items()))
        return 0 if again[:3] == (digest, counters, letters) and len(letters) == n_garbage and n_good else 1


if __name__ == "__main__":
    sys.exit(main())
