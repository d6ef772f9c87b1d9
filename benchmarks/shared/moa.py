"""MOA's own learners, which Java runs on the records of a benchmark.

CapyMOA's wheel has the jar:

    pip download capymoa --no-deps
    unzip -j capymoa-*.whl capymoa/jar/moa.jar

Each record is predicted before it is learned, with MOA's default parameters and seeds.  Microseconds are what MOA says:
CPU time of the thread that predicts and learns.  Java's compiler and garbage collector have threads of their own.
"""

import csv
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

LEARNERS = {
    "ARF": "meta.AdaptiveRandomForest",
    "SRP": "meta.StreamingRandomPatches",
    "SGBT": "meta.StreamingGradientBoostedTrees",
    "SAMkNN": "lazy.SAMkNN",
}
JAVA = ["java", "-XX:ActiveProcessorCount=1", "-XX:+UseSerialGC"]
AT_END = 10**9  # records from one line of MOA's table to the next: there is one line, the last


class Outcome(NamedTuple):
    """Of one learner."""

    accuracy: float  # percent
    microseconds: float  # of a record


def write_arff(records: list[tuple[dict, Any]], path: Path) -> None:
    """All features as numbers, and the number of the class as the last column."""
    classes = {y: i for i, y in enumerate(sorted({y for _, y in records}))}
    names = list(records[0][0])
    with path.open("w", encoding="utf-8") as file:
        print("@relation records", *(f"@attribute f{j} numeric" for j in range(len(names))), sep="\n", file=file)
        print(f"@attribute class {{{','.join(map(str, classes.values()))}}}", "@data", sep="\n", file=file)
        for x, y in records:
            print(*(repr(float(x[name])) for name in names), classes[y], sep=",", file=file)


def outcome(jar: Path, learner: str, arff: Path) -> Outcome:
    """Predict and learn each record of a file."""
    found = arff.with_suffix(".csv")
    found.unlink(missing_ok=True)
    task = f"EvaluatePrequential -l {LEARNERS[learner]} -s (ArffFileStream -f {arff}) -f {AT_END} -d {found}"
    task += " -e BasicClassificationPerformanceEvaluator"
    done = subprocess.run([*JAVA, "-cp", str(jar), "moa.DoTask", task], capture_output=True, text=True)
    if not found.exists():  # MOA ends with 0 whatever happens
        raise RuntimeError(f"{learner} of {jar} printed no table: {done.stdout[-500:]}{done.stderr[-2000:]}")
    with found.open(encoding="utf-8") as file:
        *_, last = csv.DictReader(file)
    seconds = float(last["evaluation time (cpu seconds)"])
    n = float(last["classified instances"])
    return Outcome(float(last["classifications correct (percent)"]), 1e6 * seconds / n)


def outcomes(jar: Path, records: list[tuple[dict, Any]], learners: Iterable[str] = LEARNERS) -> Iterator[Outcome]:
    """One learner after the other, on the same records."""
    with tempfile.TemporaryDirectory() as folder:
        arff = Path(folder) / "records.arff"
        write_arff(records, arff)
        for learner in learners:
            yield outcome(jar, learner, arff)
