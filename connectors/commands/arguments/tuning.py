"""The arguments of ``streamsvm crossval`` and ``streamsvm search``, which share examples, kernel and folds."""

import argparse

from streamsvm.core.kernel_table import KERNELS

from . import options
from .options import Parser

CS, GAMMAS = "2^-5:2^15:2^2", "2^-15:2^3:2^2"  # the default grid; the linear kernel has no gamma
FOLDS = ["stratified", "v-fold", "grouped", "hold-out", "leave-one-out", "leave-p-out"]
METRICS = "accuracy, g_mean, roc_auc, prbep, f1, precision, recall, balanced_accuracy, mcc"
FOR_CLASSES = "for several classes: accuracy, g_mean, balanced_accuracy"
SOLVERS = ("auto", "shared", "newton", "strategy-1", "strategy-2", "cholesky")
FROM_THE_FOLD_BEFORE = ("reuse", "sir", "mir", "ato", "chained")
SEEDINGS = ("auto", "none", *FROM_THE_FOLD_BEFORE, "skip", "avg", "top", "greedy", "best", "path")


def crossval(command: Parser) -> None:
    """Divide the examples of a file into folds, and test each fold by a model trained on the others. The line 'total'
    has the scores over all tests together; 'mean' and 'deviation' are over the folds.

    --model: svm: the hinge loss; ssvm: the smooth SVM, with the squared hinge loss (default: svm)
    --C: penalty of an error (default: 10)
    --gamma: scale of the kernel: a number; or scale: 1 / the sum of the features' variances, after scaling the features
        as the learners do, unless --scale says how (default: scale)
    --reduced SHARE|N: expand the kernel in a share or number of the examples, drawn at random with --seed (default:
        all)
    --solver: solver of Newton's linear systems; it changes the time and not the result. shared: one factor for all
        folds. auto: shared, or cholesky with few folds (default: auto)
    --seeding: where the training of a fold starts; it changes the time and not the result. none, skip: at 0. reuse,
        sir, mir, ato, chained: at the fold before. avg, top, greedy, best, path: at the solution over all examples.
        auto: the start that is expected to be cheapest; with few folds, at 0 (default: auto)
    --compare SETTING: compare with another setting on the same folds, such as C=10,gamma=0.1
    --out FILE: write the prediction of each example to this .csv or .jsonl file
    """
    _examples_and_folds(command, default_k=10)
    command.add("--model", choices=options.MODELS, default="svm")
    command.add("--C", type=options.positive, default=10.0)
    command.add("--gamma", type=options.gamma, default="scale")
    command.set_defaults(tol=None)  # Each model has its own default.
    smooth = command.add_argument_group(
        "smooth SVM (--model ssvm)", "With --model ssvm, --tol is the tolerance of the gradient (default: 1e-12)."
    )
    command.add("--reduced", group=smooth, type=options.test_size)
    command.add("--solver", group=smooth, choices=SOLVERS)
    command.add("--seeding", choices=SEEDINGS, default="auto")
    what = f"one or several of {METRICS}; {FOR_CLASSES} (default: accuracy,g_mean)"
    command.add("--metric", type=options.names, default="accuracy,g_mean", metavar="NAMES", help=what)
    command.add("--compare", type=options.setting)
    command.file("--out")


def search(command: Parser) -> None:
    """Cross-validate every C with every gamma. Values are a list, such as 0.1,1,10, or a range START:STOP:FACTOR, such
    as 2^-5:2^15:2^2.

    --seeding: where the training of a fold starts; it changes the time and not the result. none: at the fold's own
        solution for the C before. The others: as for crossval. auto: none, unless folds are many and small (default:
        auto)
    --out FILE: write scores and costs to this .csv or .jsonl file
    --plot FILE: draw the scores as a .png, .pdf or .svg file
    """
    _examples_and_folds(command, default_k=3)
    command.add("--C", type=options.values, default=CS, metavar="VALUES", help=f"penalties of an error (default: {CS})")
    command.add("--gamma", type=options.values, metavar="VALUES", help=f"scales of the kernel (default: {GAMMAS})")
    along_C = [seeding for seeding in SEEDINGS if seeding not in FROM_THE_FOLD_BEFORE]  # noqa: N806 - each has its own
    command.add("--seeding", choices=along_C, default="auto")
    what = f"one of {METRICS}; {FOR_CLASSES} (default: accuracy)"
    command.add("--metric", type=str.strip, default="accuracy", metavar="NAME", help=what)
    command.file("--out")
    command.file("--plot")


def _examples_and_folds(command: Parser, default_k: int) -> None:
    """Add the file and how to read it, the kernel, and the folds, of which `default_k` is the default number."""
    command.take(_examples)
    command.take(_kernel)
    command.take(_folds, k=default_k)
    command.set_defaults(default_k=default_k)


def _examples(command: Parser) -> None:
    """The examples.

    file: CSV with a header, JSON lines, LIBSVM format, or npz; missing features are 0
    --feature COLUMN: use a column that numbers the rows as a feature; without this option it is refused
    --scale: standard: scale to mean 0 and deviation 1; minmax: to 0..1. The statistics are those of all examples,
        tested ones included, because all folds share one kernel (default: none; with raw records: standard)
    --raw: the rows are raw records: texts, blanks, times, nested objects. All of them, tested ones included, decide
        which kinds the fields are; a missing value is guessed by the rows before it. Labels have no influence
    --config CONFIG.toml: a configuration with [features] raw = true, such as `streamsvm init` writes: it names the
        label, the id and the kinds of the fields
    """
    command.take(options.examples)
    command.add("--feature", action="append", default=[])
    command.add("--scale", choices=["none", "standard", "minmax"])
    command.flag("--raw")
    command.file("--config")
    command.set_defaults(time=None)


def _kernel(command: Parser) -> None:
    """The kernel and the solver.

    --tol: stopping tolerance (default: 1e-3)
    --jobs N: number of processes, each with its own cache; -1: one per core (default: this process; the values of gamma
        of a grid share its cores)
    --cache-mb MB: memory for kernel values (default: 256)
    """
    kernel = command.add_argument_group("kernel and solver")
    formulas = "; ".join(f"{name}: {about.formula}" for name, about in KERNELS.items())
    having = {
        parameter: " and ".join(name for name, about in KERNELS.items() if parameter in about.parameters)
        for parameter in ("degree", "coef0")
    }
    command.add("--kernel", group=kernel, choices=KERNELS, default="rbf", help=f"{formulas} (default: rbf)")
    what = f"degree of {having['degree']} (default: 3)"
    command.add("--degree", group=kernel, type=options.count, default=3, metavar="N", help=what)
    what = f"constant of {having['coef0']} (default: 0)"
    command.add("--coef0", group=kernel, type=options.number, default=0.0, metavar="X", help=what)
    command.add("--tol", group=kernel, type=options.positive, default=1e-3)
    command.add("--jobs", group=kernel, type=options.jobs)
    command.add("--cache-mb", group=kernel, type=options.megabytes, default=256.0)
    options.device(command, "where to compute the kernel values of svm", kernel)


def _folds(command: Parser, k: int) -> None:
    """The folds.

    --folds: kind of folds (default: stratified, with equal shares of both classes)
    --group COLUMN: column of the group; all examples of a group are in the same fold (--folds grouped)
    --test SHARE|N: hold-out: share or number of the tested examples (default: 0.25)
    -p N: leave-p-out: number of examples to leave out (default: 2)
    --repeat N: repeat with N different divisions (default: 1)
    --seed N: seed of the division (default: 0)
    """
    folds = command.add_argument_group("folds")
    command.add("--folds", group=folds, type=_not_a_number, choices=FOLDS)
    command.add("-k", group=folds, type=options.count, metavar="N", help=f"number of folds (default: {k})")
    command.add("--group", group=folds)
    command.add("--test", group=folds, type=options.test_size)
    command.add("-p", group=folds, type=options.count)
    command.add("--repeat", group=folds, type=options.count)
    command.add("--seed", group=folds, type=options.offset, default=0)


def _not_a_number(text: str) -> str:
    if text.isdecimal():
        raise argparse.ArgumentTypeError(
            f"{text!r} must be a kind of folds ({', '.join(FOLDS)}); their number is -k {text}"
        )
    return text
