"""A storm over challengers that catch up, answer shares, and are promoted: trainers are killed, in transactions too.

    python tests/helpers/challenger_storm.py --kills 20 --kafka localhost:9092     # from the repository's folder

Two trainers share two partitions on Kafka; in a folder there is one.  Afterwards a calm trainer reads the same log from
its beginning: it must come to the same models, say the same, and promote and divide at the same records.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

from nursery import Nursery
from patience import Patience, exit_code
from request_storm import END_SECONDS, N_PARTITIONS, N_USERS, RequestStorm

from streamsvm.connectors.logs.reading import read_all
from streamsvm.connectors.settings import topics
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.opening import open_once
from streamsvm.connectors.trainer import trainer
from streamsvm.connectors.trainer.state.challengers import read_standings
from streamsvm.connectors.trainer.state.checkpoint import checkpoint_files
from streamsvm.connectors.trainer.state.digests import digests
from streamsvm.connectors.trainer.state.stored_state import read_state

CONFIG = """
[log]
topic = "NAME-events"
predictions = "NAME-predictions"
dlq = "NAME-dlq"
model = "NAME-model"
erasures = "NAME-erasures"
[model]
C = 2.0
[group]
id = "NAME"
[daemon]
batch = 16
start = "earliest"
checkpoint_seconds = 0.2
"""
KAFKA = """
exactly_once = true
[kafka]
client = "CLIENT"
bootstrap_servers = "ADDRESS"
session_timeout_ms = 3000
heartbeat_interval_ms = 500
"""
CHALLENGERS = """
[[challenger]]
name = "other"
share = 0.3
[challenger.model]
C = 0.5
gamma = 0.3
"""
EARLIER = """
[[challenger]]
name = "NAME"
begin = "earliest"
share = 0.2
[challenger.model]
gamma = GAMMA
"""
WAIT_SECONDS = 20.0  # for a checkpoint
TAKEN_OVER_SECONDS = 4.0  # more than the session of a killed trainer


class ChallengerStorm(RequestStorm):
    """Trainers with a challenger that begins now and others that begin with the log; all answer shares.

    Parameters
    ----------
    folder, nursery, seed, erases
        As those of `RequestStorm`.
    address
        Of a Kafka broker; empty: the log is in a folder.
    client
        The library that talks to it.

    Attributes
    ----------
    n_kills, n_hits : int
        Kills of trainers; those while a challenger caught up.
    """

    def __init__(self, folder, nursery, seed=0, *, erases=False, address="", client="kafka-python"):
        self._name = f"storm-{time.time_ns()}"
        text = CONFIG + (KAFKA if address else "")
        for word, value in {"NAME": self._name, "ADDRESS": address, "CLIENT": client}.items():
            text = text.replace(word, value)
        super().__init__(folder, nursery, seed, erases=erases, config=text)
        self._on_kafka, self._trainers = bool(address), {}
        self._erased = set()
        self.n_kills = self.n_hits = 0

    def run(self, n_kills, backlog=5000, burst=100, n_earlier=3):
        """Kill trainers so often, beside requests; then let everything come to an end."""
        topics.create(self.settings, N_PARTITIONS)
        self._produce(backlog)
        self._finish()
        self._challenge(n_earlier)
        names = "ab" if self._on_kafka else "a"
        self._trainers = {name: self._trainer(name) for name in names}
        while self.n_kills < n_kills:
            self._produce(burst)
            command = self._start(*self._request()) if self._rng.random() < 0.5 else None
            if self._rng.random() < 0.75:
                self._wait_for_checkpoint()
            time.sleep(self._rng.random())
            self._kill(self._rng.choice([*names, names]))
            if command and self._rng.random() < 0.3:
                command.kill()
            if self._on_kafka and self._rng.random() < 0.3:
                time.sleep(TAKEN_OVER_SECONDS)
            for name in names:
                if self._trainers[name].poll() is not None:
                    self._trainers[name] = self._trainer(name)
            if command:
                exit_code(command, END_SECONDS)
        if self._erases:
            self._call("rebuild", "--receipt", self.folder / "receipt.json")
        self._kill(names)
        self._finish()

    def check(self):
        """Nothing is lost or double; a calm trainer says the same, and comes to the same models at the same places."""
        stormy, calm = self._read_log(""), self._read_log("calm")
        for number in range(N_PARTITIONS):
            one, other = stormy[number].challengers, calm[number].challengers
            assert one.terms == other.terms, (one.terms, other.terms)
            found, wanted = digests(stormy[number]), digests(calm[number])
            assert found == wanted, {name for name in found if found[name] != wanted[name]}
            for mine, its in zip(*(sorted(each.all, key=lambda one: one.name) for each in (one, other)), strict=True):
                assert (mine.dropped, mine.caught_up, mine.is_awaited) == ("", None, False), mine
                assert mine.models.digest() == its.models.digest(), mine.name
        self._check_notes(stormy)
        self._check_outputs()

    # --- processes ----------------------------------------------------------------------------------------------------

    def _challenge(self, n_earlier):
        text = self.config.read_text().replace("[log]\n", f'[log]\ncontrol = "{self._name}-control"\n') + CHALLENGERS
        for i in range(n_earlier):
            text += EARLIER.replace("NAME", f"late{i}").replace("GAMMA", f"0.{i + 1}")
        self.config.write_text(text)
        self.settings = load(self.config, {})
        topics.create(self.settings, N_PARTITIONS)

    def _trainer(self, name, *flags):
        return self._start("run", *(["--set", f"group.instance={name}"] if self._on_kafka else []), *flags)

    def _wait_for_checkpoint(self):
        """Wait for the next checkpoint of a partition, whichever it is."""
        folder = self.settings.daemon.state_dir / f"p{self._rng.randrange(N_PARTITIONS)}"
        before, patience = checkpoint_files(folder)[:1], Patience(WAIT_SECONDS)
        while checkpoint_files(folder)[:1] == before and patience.lasts:
            time.sleep(0.02)

    def _kill(self, names):
        """Kill these trainers."""
        for name in names:
            process = self._trainers[name]
            assert process.poll() is None, self.said()[-3000:]
            process.kill()
            process.wait()
            self.n_kills += 1
        found = [each for item in read_state(self.folder / "state") for each in read_standings(item.checkpoint.blobs)]
        self.n_hits += len(names) * any(each.caught_up is not None for each in found)

    def _finish(self):
        """Let each trainer consume all that there is, and end the transactions that it has left open."""
        for name in self._trainers or "a":
            process = self._trainer(name, "--set", "daemon.follow=false")
            assert exit_code(process, END_SECONDS) == 0, self.said()[-2000:]

    def _request(self):
        words = ["promote", "promote", "rollback", *["erase", "erase", "rebuild"] * self._erases]
        word = self._rng.choice(words)
        self.asked[word] += 1
        if word == "erase":
            self._erased.add(user := f"u{self._users.pop()}")
            return word, "--subject", user, "--by", "user"
        if word == "rebuild":
            return word, "--receipt", self.folder / "receipt.json"
        names = [own.name for own in self.settings.challenger]
        return (word, self._rng.choice(["other", "model", *names])) if word == "promote" else (word,)

    # --- what is left -------------------------------------------------------------------------------------------------

    def _read_log(self, name):
        flags = ["daemon.follow=false", *["group.instance=a"] * self._on_kafka]
        if name:
            log = self.settings.log
            flags += [f"daemon.state_dir={self.folder / name}", f"group.id={self._name}-{name}"]
            flags += [f"log.predictions={name}-{log.predictions}", f"log.model={name}-{log.model}"]
        settings = load(self.config, {}, flags)
        topics.create(settings, N_PARTITIONS)
        return trainer.run(settings)

    def _values(self, topic):
        """The records of a topic: partition and value."""
        with open_once(self.settings) as log:
            found = [(each.partition, each.value) for each in read_all(log, topic)]
        assert not self._on_kafka or len(set(found)) == len(found), Counter(found).most_common(3)
        return found

    def _check_notes(self, states):
        """Each request has one answer, no note is repeated, and what serves is what the answers say."""
        notes = self._values(self.settings.log.control_topics[-1])
        for number, state in states.items():
            own = [json.loads(value) for partition, value in dict.fromkeys(notes) if partition == number]
            served = [note for note in own if note["op"] == "serve"]
            assert len({note["request"] for note in served}) == len(served), served
            begun = [note["name"] for note in own if note["op"] == "begin"]
            assert begun == ["other"], begun
            shares = [note["shares"] for note in own if note["op"] == "divide"]
            assert all(one != other for one, other in pairwise(shares)), shares
            found = sorted((note["events"], note["request"], note["name"]) for note in served)
            names = ["model", *(name for *_, name in found)]
            changes = [each for each, before in zip(found, names, strict=False) if each[2] != before]
            assert [(term.offset, term.control, term.name) for term in state.challengers.terms[1:]] == changes

    def _check_outputs(self):
        """Each event has one answer, and one prediction in the shadow of each model that does not answer it."""
        names = self.settings.models()
        answers = self._predictions(self.settings.log.predictions)
        events = {(i % N_PARTITIONS, i // N_PARTITIONS): f"u{i % N_USERS}" for i in range(self._n_events)}
        assert {events[at] for at in events if at not in answers} <= self._erased
        own = {name: self._predictions(self.settings.topic_of_model(name)) for name in names}
        if self._erases:
            return
        calm = {name: self._predictions(f"calm-{self.settings.topic_of_model(name)}") for name in names}
        assert answers == self._predictions(f"calm-{self.settings.log.predictions}")
        for name in names:
            begun = self._begun(name)
            assert own[name] == {at: value for at, value in calm[name].items() if at[1] >= begun[at[0]]}, name

    def _predictions(self, topic):
        """The predictions of a topic by partition and offset of the event; each once."""
        found = {}
        for partition, value in set(self._values(topic)):
            at = (partition, int(json.loads(value)["src"].rpartition("-")[2]))
            assert found.setdefault(at, value) == value, (found[at], value)
        return found

    def _begun(self, name):
        """From which offset on a challenger has taken part, by partition: what was said last holds."""
        begun = dict.fromkeys(range(N_PARTITIONS), 0)
        for line in self.said().splitlines():
            if f"challenger '{name}' has caught up, and takes part from offset " in line:
                begun[int(line.partition("partition ")[2].partition(":")[0])] = int(line.split()[-2])
        return begun


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--events", type=int, default=5000, help="to catch up with")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--erase", action="store_true")
    parser.add_argument("--kafka", default="", help="address of a broker")
    parser.add_argument("--client", default="kafka-python")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        options = {"erases": given.erase, "address": given.kafka, "client": given.client}
        storm = ChallengerStorm(Path(folder), Nursery(), given.seed, **options)
        storm.run(given.kills, given.events)
        swaps = storm.said().count("goes on with the rebuilt")
        print(dict(storm.asked), "kills:", storm.n_kills, "while challengers caught up:", storm.n_hits, "swaps:", swaps)
        storm.check()
        print("nothing is lost or double")


if __name__ == "__main__":
    sys.exit(main())
