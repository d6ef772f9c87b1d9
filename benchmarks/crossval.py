"""Cross-validation beside scikit-learn's and LIBSVM's, from every start: Tables 1 and 3 and the leave-one-out figure of
the paper on alpha seeding.

    python benchmarks/crossval.py --data DIR --out FILE.json         # everything; without --data, from OpenML
    python benchmarks/crossval.py --data DIR --quick                 # the smallest sets, 10 folds and leave-one-out
    python benchmarks/crossval.py --data DIR --sets pima --folds 10  # one of them
    python benchmarks/crossval.py --data DIR --alone --sets w8a-10000 --seedings none reuse mir sir --cache-mb 2500
    python benchmarks/crossval.py --report FILE.json                 # the tables of a run that was kept

Source: Wen, Li, Ramamohanarao, J. Chen, Y. Chen, Zhang, "Improving Efficiency of SVM k-fold Cross-validation by Alpha
Seeding".  Below the tables of its sets stand its figures, which are of the whole sets.
Data and parameters are `VALIDATION_TASKS` in datasets.py; of large sets the first rows, as stored.  `--alone` measures
this project's methods only; `LARGE_TASKS` are for it, on which scikit-learn would take long.  It compares predictions
with those of its first method.

Rows of a table:

    scikit-learn   SVC refitted for each fold, with the decision values of its test part: what the others are compared
                   with.  On sparse data it gets the faster of the dense and the sparse form.
    cross_val_score  scikit-learn's own loop around the same fits
    libsvm -v      LIBSVM's cross-validation, with stratified folds of its own (pip install libsvm-official)
    none           the kernel rows of all folds shared, every fold started from 0: the honest baseline
    skip, avg, ..  the other starts, see `streamsvm.validation.cross_validate`; auto picks one
    .., right?     leave-one-out with values=False: only whether each prediction is right

Each set is measured in a process of its own with one thread (`OMP_NUM_THREADS=1` and the like), after compiled code was
loaded by a small problem.  Methods take turns, in each of which they run once or for a fifth of a second; the fastest
turn counts, by the mean of its runs, for clocks of CPU time may tick every 4 ms only.  Seconds are CPU seconds of the
process and those of the wall clock.  One that exceeds `--max-seconds` of CPU time is cut off ("-"); the two that train
fold by fold without sharing anything are measured on as many of the folds as that allows, LIBSVM's on one training if
need be, and multiplied ("~").

"differ": predictions that are not scikit-learn's among the examples with |f| > 0.01, of which there are "of".

The last table has one training on all examples: |f - f of SVC| at most, the relative difference of the dual objectives,
support vectors and iterations.  LIBSVM's kernel rows are float32, which puts a floor of 6e-8 sum |alpha| under its f.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from datasets import LARGE_TASKS, VALIDATION_TASKS, load_first
from seeding.measuring import LEAVE_ONE_OUT, compare, equality, warm_up
from seeding.methods import Setting, setting_of
from seeding.report import show, show_comparison, show_end
from shared.elsewhere import limited

from streamsvm.validation.held_out.splits import SEEDINGS

FOLDS = ("3", "10", "100", LEAVE_ONE_OUT)
QUICK = ("heart", "ionosphere")


def measure_here(options: argparse.Namespace) -> None:
    """Measure one set in this process, a line of JSON for each part."""
    task = (VALIDATION_TASKS | LARGE_TASKS)[options.sets[0]]
    X, y = load_first(task, options.data)
    setting = Setting(task, X, y, X) if options.alone else setting_of(task, X, y)
    setting = setting._replace(cache_mb=options.cache_mb)
    warm_up(setting, tuple(options.seedings))
    for tol in () if options.alone else (1e-3, 1e-6):
        print(json.dumps({"equality": equality(setting, tol)}), flush=True)
    for kind in options.folds:
        found = compare(setting, kind, options)
        if found is not None:
            print(json.dumps({"comparison": found}), flush=True)


def measure_elsewhere(options: argparse.Namespace, name: str) -> Iterator[dict]:
    """The parts of one set, measured in a process with one thread."""
    command = [sys.executable, __file__, "--here", "--sets", name, "--folds", *options.folds]
    command += ["--seedings", *options.seedings, "--repeats", str(options.repeats)]
    command += ["--max-seconds", str(options.max_seconds), "--cache-mb", str(options.cache_mb)]
    command += (["--data", str(options.data)] if options.data else []) + (["--alone"] if options.alone else [])
    with subprocess.Popen(command, env=limited(), stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            yield json.loads(line)
    if process.returncode:
        raise SystemExit(f"{name}: not measured to its end, exit {process.returncode}")


def measure_all(options: argparse.Namespace) -> dict:
    """All sets, with the tables as they come."""
    results: dict[str, list] = {"equality": [], "comparisons": []}
    for name in options.sets:
        for part in measure_elsewhere(options, name):
            if "equality" in part:
                results["equality"].append(part["equality"])
            else:
                results["comparisons"].append(part["comparison"])
                show_comparison(part["comparison"])
            if options.out:
                options.out.write_text(json.dumps(results, indent=1))
    return results


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files; default: OpenML")
    parser.add_argument("--sets", nargs="+", default=list(VALIDATION_TASKS), choices=[*VALIDATION_TASKS, *LARGE_TASKS])
    parser.add_argument("--folds", nargs="+", default=list(FOLDS), choices=FOLDS)
    parser.add_argument("--seedings", nargs="+", default=list(SEEDINGS), choices=SEEDINGS)
    parser.add_argument("--repeats", type=int, default=5, help="turns of each method")
    parser.add_argument("--max-seconds", type=float, default=20.0, help="for one run of a method")
    parser.add_argument(
        "--quick", action="store_true", help="the smallest sets, 10 folds and leave-one-out, in one turn"
    )
    parser.add_argument("--alone", action="store_true", help="this project's methods only: no scikit-learn, no LIBSVM")
    parser.add_argument("--cache-mb", type=float, default=256.0, help="for this project's kernel rows")
    parser.add_argument("--out", type=Path, help="file for the figures, as JSON")
    parser.add_argument("--report", type=Path, help="print the tables of such a file instead of measuring")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.quick:
        options.sets, options.folds, options.repeats = QUICK, ("10", LEAVE_ONE_OUT), 1
    if options.here:
        measure_here(options)
    elif options.report:
        show(json.loads(options.report.read_text()))
    else:
        show_end(measure_all(options))


if __name__ == "__main__":
    main()
