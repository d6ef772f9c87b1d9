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
    """
    add_examples_and_folds(command, default_k=10)
    command.add(
        "--model",
        choices=options.MODELS,
        default="svm",
        help="svm: the hinge loss; ssvm: the smooth SVM, with the squared hinge loss (default: svm)",
    )
    command.add("--C", type=options.positive, default=10.0, help="penalty of an error (default: 10)")
    command.add(
        "--gamma",
        type=options.gamma,
        default="scale",
        help="scale of the kernel: a number; or scale: 1 / the sum of the features' variances, after scaling the "
        "features as the learners do, unless --scale says how (default: scale)",
    )
    command.set_defaults(tol=None)  # Each model has its own default.
    _add_smooth(command)
    command.add(
        "--seeding",
        choices=SEEDINGS,
        default="auto",
        help="where the training of a fold starts; it changes the time and not the result. none, skip: at 0. reuse, "
        "sir, mir, ato, chained: at the fold before. avg, top, greedy, best, path: at the solution over all examples. "
        "auto: the start that is expected to be cheapest; with few folds, at 0 (default: auto)",
    )
    command.add(
        "--metric",
        type=options.names,
        default="accuracy,g_mean",
        metavar="NAMES",
        help=f"one or several of {METRICS}; {FOR_CLASSES} (default: accuracy,g_mean)",
    )
    command.add(
        "--compare",
        type=options.setting,
        metavar="SETTING",
        help="compare with another setting on the same folds, such as C=10,gamma=0.1",
    )
    command.file("--out", help="write the prediction of each example to this .csv or .jsonl file")


def _add_smooth(command: Parser) -> None:
    smooth = command.add_argument_group(
        "smooth SVM (--model ssvm)", "With --model ssvm, --tol is the tolerance of the gradient (default: 1e-12)."
    )
    smooth.add_argument(
        "--reduced",
        type=options.test_size,
        metavar="SHARE|N",
        help="expand the kernel in a share or number of the examples, drawn at random with --seed (default: all)",
    )
    smooth.add_argument(
        "--solver",
        choices=SOLVERS,
        help="solver of Newton's linear systems; it changes the time and not the result. shared: one factor for all "
        "folds. auto: shared, or cholesky with few folds (default: auto)",
    )


def search(command: Parser) -> None:
    """Cross-validate every C with every gamma. Values are a list, such as 0.1,1,10, or a range START:STOP:FACTOR, such
    as 2^-5:2^15:2^2.
    """
    add_examples_and_folds(command, default_k=3)
    command.add("--C", type=options.values, default=CS, metavar="VALUES", help=f"penalties of an error (default: {CS})")
    command.add("--gamma", type=options.values, metavar="VALUES", help=f"scales of the kernel (default: {GAMMAS})")
    command.add(
        "--seeding",
        choices=[seeding for seeding in SEEDINGS if seeding not in FROM_THE_FOLD_BEFORE],  # along C, each has its own
        default="auto",
        help="where the training of a fold starts; it changes the time and not the result. none: at the fold's own "
        "solution for the C before. The others: as for crossval. auto: none, unless folds are many and small (default: "
        "auto)",
    )
    command.add(
        "--metric",
        type=str.strip,
        default="accuracy",
        metavar="NAME",
        help=f"one of {METRICS}; {FOR_CLASSES} (default: accuracy)",
    )
    command.file("--out", help="write scores and costs to this .csv or .jsonl file")
    command.file("--plot", help="draw the scores as a .png, .pdf or .svg file")


def add_examples_and_folds(command: Parser, default_k: int) -> None:
    """Add the file and how to read it, the kernel, and the folds, of which `default_k` is the default number."""
    _add_examples(command)
    _add_kernel(command)
    _add_folds(command, default_k)
    command.set_defaults(default_k=default_k)


def _add_examples(command: Parser) -> None:
    options.add_file(command, "CSV with a header, JSON lines, LIBSVM format, or npz; missing features are 0")
    command.column(
        "--feature",
        action="append",
        default=[],
        help="use a column that numbers the rows as a feature; without this option it is refused",
    )
    command.add(
        "--scale",
        choices=["none", "standard", "minmax"],
        help="standard: scale to mean 0 and deviation 1; minmax: to 0..1. The statistics are those of all examples, "
        "tested ones included, because all folds share one kernel (default: none; with raw records: standard)",
    )
    command.flag(
        "--raw",
        help="the rows are raw records: texts, blanks, times, nested objects. All of them, tested ones included, "
        "decide which kinds the fields are; a missing value is guessed by the rows before it. Labels have no influence",
    )
    command.file(
        "--config",
        "CONFIG.toml",
        help="a configuration with [features] raw = true, such as `streamsvm init` writes: it names the label, the id "
        "and the kinds of the fields",
    )
    command.set_defaults(time=None)


def _add_kernel(command: Parser) -> None:
    formulas = "; ".join(f"{name}: {about.formula}" for name, about in KERNELS.items())
    kernel = command.add_argument_group("kernel and solver")
    kernel.add_argument("--kernel", choices=KERNELS, default="rbf", help=f"{formulas} (default: rbf)")
    kernel.add_argument(
        "--degree", type=options.count, default=3, metavar="N", help=f"degree of {_having('degree')} (default: 3)"
    )
    kernel.add_argument(
        "--coef0", type=options.number, default=0.0, metavar="X", help=f"constant of {_having('coef0')} (default: 0)"
    )
    kernel.add_argument("--tol", type=options.positive, default=1e-3, help="stopping tolerance (default: 1e-3)")
    kernel.add_argument(
        "--jobs",
        type=options.jobs,
        metavar="N",
        help="number of processes, each with its own cache; -1: one per core (default: this process; the values of "
        "gamma of a grid share its cores)",
    )
    kernel.add_argument(
        "--cache-mb",
        type=options.megabytes,
        default=256.0,
        metavar="MB",
        help="memory for kernel values (default: 256)",
    )
    options.add_device(command, "where to compute the kernel values of svm")


def _having(parameter: str) -> str:
    """The kernels that have this parameter."""
    return " and ".join(name for name, about in KERNELS.items() if parameter in about.parameters)


def _add_folds(command: Parser, k: int) -> None:
    folds = command.add_argument_group("folds")
    folds.add_argument(
        "--folds",
        type=_not_a_number,
        choices=FOLDS,
        help="kind of folds (default: stratified, with equal shares of both classes)",
    )
    folds.add_argument("-k", type=options.count, metavar="N", help=f"number of folds (default: {k})")
    folds.add_argument(
        "--group",
        metavar="COLUMN",
        help="column of the group; all examples of a group are in the same fold (--folds grouped)",
    )
    folds.add_argument(
        "--test",
        type=options.test_size,
        metavar="SHARE|N",
        help="hold-out: share or number of the tested examples (default: 0.25)",
    )
    folds.add_argument(
        "-p", type=options.count, metavar="N", help="leave-p-out: number of examples to leave out (default: 2)"
    )
    folds.add_argument(
        "--repeat", type=options.count, metavar="N", help="repeat with N different divisions (default: 1)"
    )
    folds.add_argument("--seed", type=options.offset, default=0, metavar="N", help="seed of the division (default: 0)")


def _not_a_number(text: str) -> str:
    if text.isdecimal():
        raise argparse.ArgumentTypeError(
            f"{text!r} must be a kind of folds ({', '.join(FOLDS)}); their number is -k {text}"
        )
    return text
