"""Ten digits, one against the rest: the MNIST experiments of the LASVM paper, and what the classes' sharing saves.

    python benchmarks/mnist.py --data DIR                    # everything on 10000 digits
    python benchmarks/mnist.py --data DIR --quick            # 2000 digits, and as many of the test part
    python benchmarks/mnist.py --data DIR --parts digits --full      # all 60000, about an hour; it says how far it is
    python benchmarks/mnist.py --data DIR --parts digits --full --digits 0 8        # two of the ten
    python benchmarks/mnist.py --data DIR --plot DIR         # and pictures of the curves; needs matplotlib

`digits`: error, seconds and support vectors of LASVM after one epoch and after two, each finished, beside LIBSVM
(scikit-learn's SVC) and the averaged perceptron after one epoch and after ten, one model for each digit, and seconds
over support vectors.  In the second epoch, each example has the same id as before: a model that has it as a member does
not learn it again.  `epochs`: how many epochs it takes until FINISH finds nothing to do.  `sharing`: one model of ten
classes against ten models of one.  `cache`: seconds against the row cache, mean of the digits.  `delta`: banana, with
REPROCESS repeated until the violation is at most `delta_max`.

Every fit runs in a process of its own with one thread; seconds are CPU seconds of the fit alone, with compiled code
loaded before.

Source: Bordes, Ertekin, Weston, Bottou, "Fast kernel classifiers with online and active learning", JMLR 6 (2005),
section 3.
"""

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from datasets import load_digits
from digits import fits
from digits.banana import DELTAS, SHUFFLES, fit_banana
from digits.fits import CACHES, DIGITS, GAMMA, SHARING, C
from papers.printed import DIGITS as SOURCE
from shared.elsewhere import needed
from shared.tables import shown, table


def run_here(job: list, folder: Path | None) -> None:
    """Run one fit in this process, and print its figures as JSON."""
    what, n, *rest = job
    if what == "banana":
        print(json.dumps(fit_banana(folder)))
    else:
        jobs = {
            "lasvm": fits.fit_lasvm,
            "libsvm": fits.fit_libsvm,
            "perceptron": fits.fit_perceptron,
            "share": fits.share,
            "cached": fits.fit_cached,
            "epochs": fits.epochs_until_exact,
        }
        print(json.dumps(jobs[what](load_digits(folder, n, min(n, 10000)), *rest)))


def elsewhere(arguments: argparse.Namespace, what: str, *rest) -> Any:
    """Run one fit in a process of its own, with one thread."""
    return needed(__file__, "--job", json.dumps([what, arguments.n, *rest]), data=arguments.data)


def digits(arguments: argparse.Namespace) -> None:
    """LASVM and the averaged perceptron beside LIBSVM, the digits together and each by itself."""
    runs = {"LIBSVM": elsewhere(arguments, "libsvm", arguments.digits)}
    for name, reprocess in (("LASVM", 1), ("LASVM, adaptive", "adaptive")):
        of_epochs = elsewhere(arguments, "lasvm", arguments.digits, reprocess)
        runs |= {f"{name}, {epochs}": run for epochs, run in of_epochs.items()}
    of_epochs = elsewhere(arguments, "perceptron", arguments.digits)
    runs |= {f"perceptron, {epochs}": run for epochs, run in of_epochs.items()}
    reference = runs["LIBSVM"]["seconds"]
    rows = []
    for name, run in runs.items():
        error, seconds = SOURCE.get(name, (None, 0.0))
        theirs = [shown(error, "{:.2f}"), shown(error and seconds / SOURCE["LIBSVM"][1], "{:.2f}")]
        ours = [shown(run["error"], "{:.2f}"), f"{run['seconds']:.1f}", f"{run['seconds'] / reference:.2f}"]
        rows.append([name, *ours, str(run["support"]), str(sum(run["each"])), *theirs])
    listed = " ".join(map(str, arguments.digits))
    print(
        f"\n## All digits together\n\nDigits {listed}, {arguments.n} examples, C = {C:g}, gamma = {GAMMA:g}; "
        "the paper's are of all ten, 60000\n"
    )
    titles = "|error %|seconds|of LIBSVM|support vectors|sum of the classes'|paper's error %|paper's of LIBSVM"
    print(table(titles, rows))
    print("\n## Each digit against the rest\n\nError in percent, support vectors, and seconds:\n")
    cells = [zip(run["errors"], run["each"], run["of each"], strict=True) for run in runs.values()]
    rows = [
        [str(digit), *(f"{error:.2f}, {support}, {seconds:.2f}" for error, support, seconds in of_digit)]
        for digit, of_digit in zip(arguments.digits, zip(*cells, strict=True), strict=True)
    ]
    print(table("digit|" + "|".join(runs), rows), flush=True)
    if arguments.plot:
        draw_seconds(arguments.plot / "mnist-seconds.png", runs)


def epochs(arguments: argparse.Namespace) -> None:
    """Epoch after epoch."""
    rows = [
        [
            str(n + 1),
            *(f"{run[key]:.{d}f}" for key, d in (("seconds", 2), ("finishing", 2), ("error", 2))),
            *(f"{run[key]:.{d}f}" for key, d in (("support", 0), ("delta", 3), ("left", 0))),
        ]
        for n, run in enumerate(elsewhere(arguments, "epochs"))
    ]
    print(f"\nEpochs of 8 against the rest, {arguments.n} examples: figures before FINISH, and what FINISH would do\n")
    titles = "epoch|seconds so far|FINISH, s|error %|support vectors|violation among members|violators outside"
    print(table(titles, rows), flush=True)


def sharing(arguments: argparse.Namespace) -> None:
    """One model of ten classes against ten models."""
    rows = []
    for algorithm in SHARING:
        run = elsewhere(arguments, "share", algorithm)
        together, apart = run["together"], run["apart"]
        cells = [f"{apart[what] / together[what]:.2f}" for what in ("evaluations", "learning", "prediction")]
        seconds = f"{together['learning']:.1f} / {apart['learning']:.1f}"
        rows.append([algorithm, str(run["n"]), f"{run['members']:.2f}", *cells, seconds, f"{run['difference']:g}"])
    print("\nTen models apart, over the same together: how many times the work\n")
    titles = "|examples|members|kernel values|learning|prediction|seconds together / apart|largest difference of f"
    print(table(titles, rows), flush=True)


def cache(arguments: argparse.Namespace) -> None:
    """Seconds against the size of the row cache, for LIBSVM with the largest one."""
    runs = {engine: elsewhere(arguments, "cached", arguments.digits, engine) for engine in CACHES}
    most = runs["LIBSVM"][-1]["seconds"]
    lines = {
        engine: {run["cache_mb"]: mean_ratio(run["seconds"], most) for run in of_sizes}
        for engine, of_sizes in runs.items()
    }
    rows = [
        [engine, f"{run['cache_mb']} MB", f"{sum(run['seconds']):.1f}", f"{share:.2f}", f"{run['error']:.2f}"]
        for engine, of_sizes in runs.items()
        for run, share in zip(of_sizes, lines[engine].values(), strict=True)
    ]
    listed = " ".join(map(str, arguments.digits))
    print(f"\nRow cache: digits {listed}, each against the rest, {arguments.n} examples; of LIBSVM's with the most\n")
    print(table("|cache|seconds, all|of LIBSVM's, mean|error %, mean", rows), flush=True)
    if arguments.plot:
        draw(arguments.plot / "mnist-cache.png", "row cache, MB", "CPU seconds, of LIBSVM's with the most", lines)


def mean_ratio(seconds: list[float], of: list[float]) -> float:
    """The mean over the digits."""
    return statistics.fmean(one / other for one, other in zip(seconds, of, strict=True))


def delta(arguments: argparse.Namespace) -> None:
    """Banana: how far REPROCESS goes after each example."""
    *means, libsvm = elsewhere(arguments, "banana")
    ways = {"one epoch": "1", "one epoch + FINISH": "1F", "two epochs + FINISH": "2F"}
    rows = [
        [f"{delta_max:g}"]
        + [f"{mean[f'error {k}']:.2f}, {mean[f'support {k}']:.0f}, {mean[f'seconds {k}']:.2f}" for k in ways.values()]
        for delta_max, mean in zip(DELTAS, means, strict=True)
    ]
    print(f"\nbanana, REPROCESS until delta <= delta_max: error %, support vectors, seconds; shuffles: {SHUFFLES}\n")
    print(table("delta_max|" + "|".join(ways), rows))
    print("\nLIBSVM: {error:.2f}, {support:.0f}, {seconds:.2f}".format(**libsvm), flush=True)
    if arguments.plot:
        lines = {name: [mean[f"error {key}"] for mean in means] for name, key in ways.items()}
        lines["LIBSVM"] = [libsvm["error"]] * len(DELTAS)
        of_deltas = {name: dict(zip(DELTAS, errors, strict=True)) for name, errors in lines.items()}
        draw(arguments.plot / "mnist-delta.png", "delta_max", "test error, %", of_deltas)


def draw(path: Path, x_label: str, y_label: str, lines: dict[str, dict[float, float]]) -> None:
    """Draw some curves over a logarithmic scale."""
    from matplotlib.figure import Figure

    axes = Figure(figsize=(6, 4), layout="constrained").subplots()
    for name, points in lines.items():
        axes.plot(list(points), list(points.values()), "o-", markersize=4, label=name)
    axes.set(xscale="log", xlabel=x_label, ylabel=y_label)
    axes.grid(alpha=0.3)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    axes.figure.savefig(path, dpi=110)


def draw_seconds(path: Path, runs: dict[str, dict]) -> None:
    """Seconds over support vectors, a point for each digit: the paper's Figure 3."""
    from matplotlib.figure import Figure

    axes = Figure(figsize=(6, 4), layout="constrained").subplots()
    for name in ("LIBSVM", "LASVM, 1 epoch"):
        axes.plot(runs[name]["each"], runs[name]["of each"], "o", label=name)
    axes.set(xlabel="support vectors", ylabel="CPU seconds", yscale="log", title="ten digits, each against the rest")
    axes.grid(alpha=0.3)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    axes.figure.savefig(path, dpi=80)


PARTS = {"digits": digits, "epochs": epochs, "sharing": sharing, "cache": cache, "delta": delta}


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files; default: OpenML")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--digits", nargs="+", type=int, default=[*DIGITS], choices=DIGITS, help="of digits and cache")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_const", const=2000, dest="n", help="2000 digits")
    size.add_argument("--full", action="store_const", const=60000, dest="n", help="all 60000 digits")
    parser.add_argument("--plot", type=Path, help="folder for pictures; default: none are drawn")
    parser.add_argument("--job", type=json.loads, help=argparse.SUPPRESS)
    parser.set_defaults(n=10000)
    arguments = parser.parse_args()
    if arguments.job:
        run_here(arguments.job, arguments.data)
        return
    for part in arguments.parts:
        PARTS[part](arguments)


if __name__ == "__main__":
    main()
