"""What a search over the events costs on the labelling page: 100,000 made events with 30 words and 64 numbers each.

Words come as often as in languages: the n-th most frequent one 1/n as often as the first.
"""

import argparse
import itertools
import random
import resource
import time
from collections.abc import Callable
from dataclasses import replace

from streamsvm.connectors.labelling.finding.index import EventIndex, Page
from streamsvm.connectors.labelling.finding.query import parse
from streamsvm.connectors.records.people.questions import FOUND, Question

WORDS, IN_A_TEXT, NUMBERS = 30_000, 30, 64
QUERIES = ("", "w0", "w0 w1", "w500", '"w0 w1"', "w12*", "v0 > 0.5", "country = FR", "country != FR w3 -w1 v1 < 0.1")
REPETITIONS = 5


def events(n: int) -> list[Question]:
    """Made events."""
    rng = random.Random(0)
    words = [f"w{i}" for i in range(WORDS)]
    often = list(itertools.accumulate(1 / (i + 1) for i in range(WORDS)))
    return [
        Question(
            f"q{i}", i, 0, {f"v{j}": rng.random() for j in range(NUMBERS)},
            {"text": " ".join(rng.choices(words, cum_weights=often, k=IN_A_TEXT)), "country": rng.choice(("FR", "DE"))},
            0.0, None, FOUND, 0, 0, {}, {},
        )
        for i in range(n)
    ]  # fmt: skip


def milliseconds(find: Callable[[], Page | None]) -> float:
    """Processor time of a search, the median of some."""
    taken = []
    for _ in range(REPETITIONS):
        start = time.process_time()
        find()
        taken.append(1000 * (time.process_time() - start))
    return sorted(taken)[REPETITIONS // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--quick", action="store_true", help="5000 events")
    arguments = parser.parse_args()
    n = 5000 if arguments.quick else arguments.events
    index, taken = EventIndex(), 0.0
    for i in range(0, n, 5000):
        some = events(min(5000, n - i))
        some = [replace(question, query_id=f"q{i + j}") for j, question in enumerate(some)]
        before = time.process_time()
        index.add(some)
        taken += time.process_time() - before
    print(f"{n} events, read in {taken:.1f} s; the process has {_megabytes():.0f} MB\n")
    print(f"{'search':34}  {'found':>7}  {'ms':>6}")
    for text in QUERIES:
        query = parse(text)
        found = index.search(query, None, 20).n_found
        print(f"{text or '(all)':34}  {found:>7}  {milliseconds(lambda q=query: index.search(q, None, 20)):>6.1f}")
    print(f"{'alike by words':34}  {20:>7}  {milliseconds(lambda: index.like('q7', 20)):>6.1f}")
    print(f"{'alike by numbers':34}  {n:>7}  {milliseconds(lambda: index._numbers.distances(7, n)):>6.1f}")
    index.close()


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
