"""Forgetting and leave-one-out estimates beside retraining; estimates along streams; bounded models; a long stream.

    python benchmarks/forget.py removal --picture FILE.png        # cost per removal, by the number of support vectors
    python benchmarks/forget.py tables --data DIR                 # every way to leave, on ordinary tables
    python benchmarks/forget.py loo --data DIR                    # StreamingLOO beside brute force; else from OpenML
    python benchmarks/forget.py stream --data DIR --pictures DIR  # the estimates beside fresh examples
    python benchmarks/forget.py cost                              # CPU time of the estimates along a stream
    python benchmarks/forget.py bounded --pictures DIR            # `budget` and `window` around an abrupt change
    python benchmarks/forget.py soak --budget 500 --picture FILE.png  # a million records
    python benchmarks/forget.py --quick --data DIR                # removal, tables, loo and bounded, small

Everything runs on one thread (BLAS included), after compiled code was loaded by a small problem.  The files of
`forgetting/` say what the columns of their tables mean.
"""

import argparse
from pathlib import Path

from forgetting import along, bounds, cost, loo, removal, soak, tables
from threadpoolctl import threadpool_limits

QUICK = (
    ["removal", "--sizes", "200", "400", "800"],
    ["tables", "--sets", "banana"],
    ["loo", "--sets", "heart", "ionosphere"],
    ["bounded", "--examples", "4000"],
)


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="removal, tables, loo and bounded, small")
    parser.add_argument("--data", type=Path, help="folder of npz files; default: OpenML")
    kinds = parser.add_subparsers()
    for part in (removal, tables, loo, along, cost, bounds, soak):
        part.add_command(kinds)
    given = parser.parse_args()
    if not given.quick and "run" not in given:
        parser.error("one of removal, tables, loo, stream, cost, bounded, soak, or --quick")
    todo = (
        [parser.parse_args(words, argparse.Namespace(data=given.data)) for words in QUICK] if given.quick else [given]
    )
    with threadpool_limits(1):
        removal.warm_up()
        for options in todo:
            options.run(options)


if __name__ == "__main__":
    main()
