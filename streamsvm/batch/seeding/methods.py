"""The tables of all seeds."""

from streamsvm.batch.seeding.along_c import averaged, best_reuse, direct, pairwise, scaled
from streamsvm.batch.seeding.ato import ato
from streamsvm.batch.seeding.chains import mir, reuse, sir
from streamsvm.batch.seeding.exact import path
from streamsvm.batch.seeding.full import avg, best, top
from streamsvm.batch.seeding.greedy import greedy
from streamsvm.batch.seeding.start import Seed

# For another training set.
SEEDS: dict[str, Seed] = {
    "reuse": reuse,
    "sir": sir,
    "mir": mir,
    "ato": ato,
    "chained": path,
    "avg": avg,
    "top": top,
    "greedy": greedy,
    "best": best,
    "path": path,
}

# For another C.
C_SEEDS: dict[str, Seed] = {
    "direct": direct,
    "scaled": scaled,
    "pairwise": pairwise,
    "averaged": averaged,
    "best": best_reuse,
}
