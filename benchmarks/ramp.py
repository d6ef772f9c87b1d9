"""The ramp's parameter s: error against support vectors, as in Figure 5 of the source of the gap family.

    python benchmarks/ramp.py --data DIR --out DIR              # tables, and DIR/ramp-banana.png, DIR/ramp-a9a.png
    python benchmarks/ramp.py --data DIR --tasks banana         # the table alone
    python benchmarks/ramp.py --data DIR --quick                # the same with three values of s, in half a minute

LASVM-NC and LASVM-I learn in one epoch, without FINISH, with the ramp beginning at each of a range of s; LASVM-G, which
has no ramp, is the reference.  Pictures need matplotlib.
"""

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path

from gap.jobs import elsewhere
from tqdm import tqdm

ENGINES = ("NC", "I")
RAMP_S = (-5, -4, -3, -2, -1.5, -1, -0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75, 1)
QUICK = (-1, -0.5, 0)
SHUFFLES = {"banana": 3, "a9a": 2}
COLORS = dict(zip(ENGINES, ("#4c72b0", "#c44e52"), strict=True))

Curve = dict[float, tuple[float, float]]  # support vectors and error in percent for each s


def mean(data: Path | None, task: str, engine: str, shuffles: int, **parameters) -> tuple[float, float]:
    """Support vectors and error in percent, over the shuffles."""
    runs = [elsewhere(data, "fit", task, engine, seed, **parameters) for seed in range(shuffles)]
    support, accuracy = (statistics.fmean(run[key] for run in runs if run) for key in ("support", "accuracy"))
    return support, 100 - accuracy


def sweep(data: Path | None, task: str, values: Sequence[float], shuffles: int) -> dict[str, Curve]:
    """A curve for each learner with a ramp."""
    with tqdm(total=len(ENGINES) * len(values), desc=task) as bar:
        curves: dict[str, Curve] = {engine: {} for engine in ENGINES}
        for engine in ENGINES:
            for s in values:
                curves[engine][s] = mean(data, task, engine, shuffles, ramp_s=s)
                bar.update()
    return curves


def show(task: str, reference: tuple[float, float], curves: dict[str, Curve], shuffles: int) -> None:
    """Print the table."""
    print(f"\n{task}, shuffles: {shuffles}; support vectors and error %")
    print(f"{'s':>6}  {'NC':>14}  {'I':>14}    G {reference[0]:.0f} {reference[1]:.2f}")
    for s in curves["NC"]:
        cells = [f"{support:8.0f} {error:5.2f}" for support, error in (curves[engine][s] for engine in ENGINES)]
        print(f"{s:6}  {'  '.join(cells)}", flush=True)


def labels(curve: Curve) -> list[tuple[str, tuple[float, float]]]:
    """What to write at which point; neighbours that are too near to each other share a label."""
    width, height = (max(values) - min(values) for values in zip(*curve.values(), strict=True))
    found: list[tuple[str, tuple[float, float]]] = []
    for s, point in curve.items():
        text, (support, error) = found[-1] if found else ("", (-width, 0.0))
        if abs(point[0] - support) < 0.02 * width and abs(point[1] - error) < 0.1 * height:
            found[-1] = f"{text}, {s:g}", (support, error)
        else:
            found.append((f"{s:g}", point))
    return found


def draw(task: str, reference: tuple[float, float], curves: dict[str, Curve], path: Path) -> None:
    """Draw the curves, their points labelled by s."""
    from matplotlib.figure import Figure

    axes = Figure(figsize=(7, 4.5), layout="constrained").subplots()
    for engine, curve in curves.items():
        support, error = zip(*curve.values(), strict=True)
        axes.plot(support, error, "o-", color=COLORS[engine], label=f"LASVM-{engine}", markersize=4)
        for label, point in labels(curve):
            above = 5 if engine == "NC" or "," in label else -11  # so that labels of the two curves keep apart
            axes.annotate(label, point, (0, above), textcoords="offset points", ha="center", fontsize=7)
    axes.plot(*reference, "k*", markersize=10, label="LASVM-G")
    axes.set(xlabel="support vectors", ylabel="test error, %", title=f"{task}: where the ramp begins (s)")
    axes.grid(alpha=0.3)
    axes.legend()
    axes.figure.savefig(path, dpi=110)


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files; default: OpenML")
    parser.add_argument("--tasks", nargs="+", default=list(SHUFFLES), choices=list(SHUFFLES))
    parser.add_argument("--quick", action="store_true", help="banana in one shuffle, with a few values of s")
    parser.add_argument("--out", type=Path, help="folder for the pictures; default: none are drawn")
    arguments = parser.parse_args()
    values = QUICK if arguments.quick else RAMP_S
    for task in ["banana"] if arguments.quick else arguments.tasks:
        shuffles = 1 if arguments.quick else SHUFFLES[task]
        reference = mean(arguments.data, task, "G", shuffles)
        curves = sweep(arguments.data, task, values, shuffles)
        show(task, reference, curves, shuffles)
        if arguments.out:
            arguments.out.mkdir(parents=True, exist_ok=True)
            draw(task, reference, curves, arguments.out / f"ramp-{task}.png")


if __name__ == "__main__":
    main()
