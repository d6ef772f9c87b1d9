"""A storm of requests: a trainer is killed while models are promoted, people are erased, and states are swapped.

    python tests/helpers/request_storm.py --kills 20 --erase     # from the repository's folder

The commands of the requests are killed too, and called again.  Afterwards a calm trainer reads the same log: it must
promote at the same records, and come to the same models.
"""

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from nursery import COMMAND_LINE, Nursery
from patience import exit_code

from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.logs.reading import read_all
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.opening import open_once
from streamsvm.connectors.trainer import trainer
from streamsvm.connectors.trainer.state.digests import digests

N_PARTITIONS, N_USERS = 2, 40
END_SECONDS = 120  # for a process that is to end by itself
CONFIG = """
[log]
control = "control"
erasures = "erasures"
model = "model"
[model]
C = 2.0
[daemon]
batch = 16
start = "earliest"
checkpoint_seconds = 0.1
[[challenger]]
name = "other"
[challenger.model]
C = 0.5
gamma = 0.3
"""


class RequestStorm:
    """A trainer of two partitions with a challenger, in a folder of its own.

    Parameters
    ----------
    folder
        Of the configuration, the log and the state.
    nursery
        Starts the processes.
    seed
        What is asked for, and when something is killed.
    erases
        Whether people are erased and states rebuilt, beside promotions.
    config
        The text of the configuration.

    Attributes
    ----------
    asked : Counter
        The requests, by the word of the command.
    """

    def __init__(self, folder, nursery, seed=0, *, erases=False, config=CONFIG):
        self.folder, self.config, self._nursery = folder, folder / "app.toml", nursery
        folder.mkdir(parents=True, exist_ok=True)
        self.config.write_text(config)
        self.settings = load(self.config, {})
        self._rng = random.Random(seed)
        self._users = self._rng.sample(range(N_USERS), N_USERS)
        self._erases = erases
        self._n_events = 0
        self.asked = Counter()

    def run(self, n_kills, burst=100):
        """Kill the trainer so often, each time while it follows a request; then let everything come to an end."""
        with LocalLog(self.folder / "log") as log:
            log.create("events", N_PARTITIONS)
        self._produce(10 * burst)
        process = self._start("run")
        for _ in range(n_kills):
            self._produce(burst)
            command = self._start(*self._request())
            exit_code(process, 3 * self._rng.random())  # it does not end: a random moment
            process.kill()
            process.wait()
            if self._rng.random() < 0.3:
                command.kill()
            process = self._start("run")
            exit_code(command, END_SECONDS)
        process.kill()
        process.wait()
        self._call("promote", "model")
        self._finish()
        if self._erases:
            for _ in range(2):  # The second call writes the receipt.
                self._call("rebuild", "--receipt", self.folder / "receipt.json")
                self._finish()

    def check(self):
        """Nothing is lost or double; a calm trainer over the same log comes to the same models at the same places."""
        stormy, calm = [self._read_log(name) for name in ("", "calm")]
        for number in range(N_PARTITIONS):
            one, other = stormy[number], calm[number]
            assert one.challengers.terms == other.challengers.terms, (one.challengers.terms, other.challengers.terms)
            found, wanted = digests(one), digests(other)
            assert found == wanted, {name for name in found if found[name] != wanted[name]}
            if not self._erases:
                assert one.challengers.all[0].models.digest() == other.challengers.all[0].models.digest()
        self._check_answers(stormy)
        self._check_predictions()

    def said(self):
        """What the processes have said."""
        return (self.folder / "said").read_text()

    # --- processes ----------------------------------------------------------------------------------------------------

    def _request(self):
        words = ["erase", "rebuild", "rebuild", "promote"] if self._erases else ["promote", "rollback"]
        word = self._rng.choice(words)
        self.asked[word] += 1
        if word == "erase":
            return word, "--subject", f"u{self._users.pop()}", "--by", "user"
        if word == "promote":
            return word, "model" if self._erases else "other"
        return (word, "--receipt", self.folder / "receipt.json") if word == "rebuild" else (word,)

    def _start(self, word, *arguments):
        config = [self.config] if word != "verify" else []
        return self._nursery.start(COMMAND_LINE, word, *config, *arguments, output=self.folder / "said")

    def _call(self, word, *arguments):
        process = self._start(word, *arguments)
        assert exit_code(process, END_SECONDS) == 0, self.said()[-2000:]

    def _finish(self):
        """Let a trainer consume all that there is."""
        self._call("run", "--set", "daemon.follow=false")

    def _produce(self, n):
        with open_once(self.settings) as log:
            for i in range(self._n_events, self._n_events + n):
                a, b = (round(self._rng.gauss(0, 1), 3) for _ in "ab")
                event = {"id": i, "x": {"a": a, "b": b}, "y": a * b > 0, "user": f"u{i % N_USERS}"}
                log.produce(self.settings.log.topic, json.dumps(event).encode(), partition=i % N_PARTITIONS)
            log.flush()
        self._n_events += n

    # --- what is left -------------------------------------------------------------------------------------------------

    def _read_log(self, name):
        """The states of the partitions: those of the storm, or those of a trainer that begins again."""
        flags = ["daemon.follow=false"]
        if name:
            state = self.folder / name
            flags += [f"daemon.state_dir={state}", f"log.predictions={name}-predictions", f"log.model={name}-model"]
        return trainer.run(load(self.config, {}, flags))

    def _check_answers(self, states):
        """Each request has one answer, and what serves is what the answers say."""
        with open_once(self.settings) as log:
            answers = {(each.partition, each.value) for each in read_all(log, "control-served")}
        for number, state in states.items():
            own = [json.loads(value) for partition, value in answers if partition == number]
            assert len({each["request"] for each in own}) == len(own), own
            found = sorted((each["events"], each["request"], each["name"]) for each in own)
            names = ["model", *(name for *_, name in found)]
            changes = [each for each, before in zip(found, names, strict=False) if each[2] != before]
            assert [(term.offset, term.control, term.name) for term in state.challengers.terms[1:]] == changes

    def _check_predictions(self):
        """Each event is predicted, in one way; in a calm run over the log in the same way."""
        with open_once(self.settings) as log:
            own = {(json.loads(each.value)["src"], each.value) for each in read_all(log, "predictions")}
            calm = {(json.loads(each.value)["src"], each.value) for each in read_all(log, "calm-predictions")}
        sources = {src for src, _ in own}
        assert len(own) == len(sources)
        if not self._erases:
            assert len(sources) == self._n_events
            assert own == calm


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--erase", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        storm = RequestStorm(Path(folder), Nursery(), given.seed, erases=given.erase)
        storm.run(given.kills)
        said = storm.said()
        print(dict(storm.asked), "swaps:", said.count("goes on with the rebuilt"), "kills:", given.kills)
        print("promotions:", said.count(" serves from offset "))
        storm.check()
        print("nothing is lost or double")


if __name__ == "__main__":
    sys.exit(main())
