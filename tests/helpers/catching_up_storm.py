"""A storm over challengers that begin earlier: a trainer is killed while they catch up with the log.

    python tests/helpers/catching_up_storm.py --kills 20     # from the repository's folder

Whenever a challenger has caught up, another one takes its place in the configuration.  Afterwards a calm trainer reads
the same log from its beginning: the models must be the same, and nothing lost or double.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from nursery import Nursery
from patience import exit_code
from request_storm import CONFIG, N_PARTITIONS, RequestStorm

from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.trainer.state.challengers import read_standings
from streamsvm.connectors.trainer.state.stored_state import read_state


class CatchingUpStorm(RequestStorm):
    """A trainer of two partitions, whose challenger begins with the log.

    Attributes
    ----------
    n_hits : int
        Kills of a trainer whose checkpoint had a challenger that was catching up.
    n_caught_up : int
        Challengers that had caught up before the last one.
    """

    n_hits = n_caught_up = 0

    def run(self, n_kills, backlog):
        """Kill the trainer while a challenger catches up, so often; then let everything come to an end."""
        with LocalLog(self.folder / "log") as log:
            log.create("events", N_PARTITIONS)
        self.config.write_text(CONFIG.split("[[challenger]]")[0].replace('control = "control"\n', ""))
        self._produce(backlog)
        self._finish()
        self._challenge()
        while self.n_hits < n_kills:
            process = self._start("run")
            self._produce(20)
            exit_code(process, 1.5 * self._rng.random())  # it does not end: a random moment
            process.kill()
            process.wait()
            self._look()
        self._finish()

    def check(self):
        """The models are those of a calm trainer, and each event has one prediction."""
        stormy, calm = [self._read_log(name) for name in ("", "calm")]
        for number in range(N_PARTITIONS):
            one, other = stormy[number], calm[number]
            assert one.model.digest() == other.model.digest()
            (challenger,), (expected,) = one.challengers.all, other.challengers.all
            assert challenger.caught_up is None
            assert challenger.counters.learned == expected.counters.learned > 0
            assert challenger.models.digest() == expected.models.digest()
        self._check_predictions()

    def _challenge(self):
        own = f'[[challenger]]\nname = "c{self.n_caught_up}"\nbegin = "earliest"\n[challenger.model]\ngamma = '
        self.config.write_text(CONFIG.split("[[challenger]]")[0] + own + f"0.{self.n_caught_up + 1}\n")
        self.settings = load(self.config, {})

    def _look(self):
        """Count a kill that has hit; if all challengers have caught up, begin with another one."""
        found = [each for item in read_state(self.folder / "state") for each in read_standings(item.checkpoint.blobs)]
        self.n_hits += any(each.caught_up is not None for each in found)
        if found and all(each.caught_up is None for each in found):
            self.n_caught_up += 1
            self._challenge()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--events", type=int, default=20_000, help="to catch up with")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        storm = CatchingUpStorm(Path(folder), Nursery(), given.seed)
        storm.run(given.kills, given.events)
        resumed = storm.said().count("going on from checkpoint")
        print(f"kills while catching up: {storm.n_hits}; challengers before the last: {storm.n_caught_up}; {resumed=}")
        storm.check()
        print("nothing is lost or double; the digests are those of a calm trainer")


if __name__ == "__main__":
    sys.exit(main())
