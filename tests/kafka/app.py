"""A trainer or scorer as its users run it: a process of its own, with a configuration file."""

import json
import math
import re
import signal
import time
import urllib.request

import numpy as np
from nursery import COMMAND_LINE
from patience import Patience, exit_code

from streamsvm.connectors.trainer.state.checkpoint import checkpoint_files

from .broker import free_ports

WAIT_SECONDS = 120
END_SECONDS = 60  # for a process to end by itself
TURN_SECONDS = 30  # for a process to do more, if there is more to do
# Of [kafka]: the partitions of a killed trainer are soon free, and members soon hear that others join and leave.
SHORT_SESSION = {"session_timeout_ms": 3000, "heartbeat_interval_ms": 500}


class App:
    """A configuration, and the processes that were started with it.

    Parameters
    ----------
    begin
        Begins a process: `Nursery.start`, or `start_fresh`.
    folder
        Of the configuration and the state.
    kafka
        The [kafka] section.
    sections
        The others: names to keys and values.
    """

    def __init__(self, begin, folder, kafka, **sections):
        folder.mkdir(parents=True, exist_ok=True)
        self.begin, self.folder = begin, folder
        self.config = folder / "app.toml"
        sections = {"kafka": kafka, **sections}
        lines = []
        for name, keys in sections.items():
            lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]
        self.config.write_text("\n".join(lines))
        self.processes = []

    def start(self, *overrides, command="run", flags=()):
        """Start a process; it logs to `output`, in its own process group."""
        given = [part for override in overrides for part in ("--set", override)]
        process = Process(self, command, [*flags, *given])
        self.processes.append(process)
        return process

    def run(self, *overrides, command="run"):
        """Start a process and wait until it ends well; return what it said."""
        process = self.start(*overrides, command=command)
        assert process.wait() == 0, process.said
        return process.said

    def newest(self, partition=0):
        """Name of the newest checkpoint; an empty string if there is none."""
        files = checkpoint_files(self.folder / "state" / f"p{partition}")
        return files[0].name if files else ""

    def partitions(self):
        """Those that have a checkpoint."""
        numbers = (int(path.name[1:]) for path in (self.folder / "state").glob("p*"))
        return [number for number in sorted(numbers) if self.newest(number)]

    def end(self):
        for process in self.processes:
            process.end()


class Process:
    """A running command."""

    def __init__(self, app, command, flags):
        self.output = app.folder / f"output-{len(app.processes)}"
        (self.port,) = free_ports(1)
        arguments = [command, app.config, *flags, "--set", f"http.port={self.port}"]
        self.popen = app.begin(COMMAND_LINE, *arguments, output=self.output)

    @property
    def said(self):
        return self.output.read_text()

    @property
    def is_alive(self):
        return self.popen.poll() is None

    def signal(self, number):
        self.popen.send_signal(number)

    def stop(self):
        """Ask it to end, and return its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait(END_SECONDS)

    def wait(self, seconds=WAIT_SECONDS):
        """The exit code."""
        code = exit_code(self.popen, seconds)
        assert code is not None, f"it has not ended after {seconds} seconds: {self.said}"
        return code

    def end(self):
        if self.is_alive:
            self.signal(signal.SIGCONT)
            self.popen.kill()
        self.popen.wait()

    def wait_for(self, text, seconds=WAIT_SECONDS):
        """Wait until the process has said something that matches."""
        self.wait_until(lambda: re.search(text, self.said), seconds)

    def wait_until(self, condition, seconds=WAIT_SECONDS):
        patience = Patience(seconds)
        began = time.monotonic()
        while not condition():
            assert self.is_alive, self.said
            assert patience.lasts, self.said
            time.sleep(min(max(0.01, 9 * (time.monotonic() - began)), 1.0))  # a look takes time that the process needs
            began = time.monotonic()

    def let_work(self, condition):
        """Wait until the condition holds, but not for ever: at the end of the records nothing more happens."""
        patience = Patience(TURN_SECONDS)
        self.wait_until(lambda: condition() or not patience.lasts)

    def get(self, path):
        """Status and text of an answer over HTTP; (0, "") if nothing listens yet."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=END_SECONDS) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def metric(self, name):
        """The sum of a metric over its labels; NaN if the process does not tell."""
        status, text = self.get("/metrics")
        found = re.findall(rf"^streamsvm_{name}(?:{{.*}})? (\S+)$", text, flags=re.MULTILINE)
        return sum(map(float, found)) if status == 200 else math.nan


def digest(said, partition=0):
    """The model's, from what a finished trainer said."""
    return re.search(rf"model digest of \S+-{partition}: (\w+)", said)[1]


def some_stream(n, seed=0, n_keys=1):
    """Events and labels, as records for `Topics.produce`, in the order and with the times they are produced.

    One label in five comes twice, one in seven late, one in eleven is corrected, a few come early or never.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3)).round(6)
    y = (x[:, 0] ** 2 + x[:, 1] ** 2 > 1.4) ^ (rng.random(n) < 0.02)
    start = int(time.time() * 1000) - 10 * n
    events, labels = [], []
    for i in range(n):
        key = f"key-{i % n_keys}".encode()
        at = start + 10 * i
        event = {"id": f"id-{i}", "x": dict(zip("abc", x[i].tolist(), strict=True)), "ts": at}
        events.append((key, json.dumps(event).encode(), [], at))
        if rng.random() < 0.03:
            continue  # never labelled
        delay = rng.choice([-200, 50, 500, 5000], p=[0.02, 0.7, 0.14, 0.14])
        label = {"id": f"id-{i}", "y": bool(y[i]), "ts": int(at + delay)}
        labels.append((at + delay, key, label))
        if i % 5 == 0:
            labels.append((at + delay + rng.integers(0, 3000), key, label))
        if i % 11 == 0:
            corrected = {**label, "y": not label["y"], "rev": 1}
            labels.append((at + delay + rng.integers(0, 3000), key, corrected))
    labels.sort(key=lambda item: item[0])
    return events, [(key, json.dumps(label).encode(), [], int(at)) for at, key, label in labels]


def settings_of(topics, partitions=1, **names):
    """A [log] section with fresh topics."""
    made = {name: topics.create(name, partitions) for name in ("topic", "labels", "predictions", "scores")}
    made["dlq"] = topics.create("dlq", max_message_bytes=16 << 20)
    made["model"] = topics.create("model", cleanup_policy="compact")
    return {**made, **names}
