"""The arguments of the commands that read a trainer's state, or a model's file."""

from .options import Parser, config, count, offset


def report(command: Parser) -> None:
    """Write one HTML file that needs no other file and no network. It shows the newest checkpoints; the trainer may be
    running. With the configuration instead of the folder, the report also says how far the trainer is behind its
    embedded log.

    --out FILE: the page to write (default: DIR/report.html)
    """
    command.take(_run)
    command.file("--out")


def challengers(command: Parser) -> None:
    """Show how the challengers do beside the model that serves, on the same labels: each metric, the challenger's gain,
    and bounds of the gain that hold at all times together. The newest checkpoints are read; the trainer may be running.
    """
    command.take(_run)


def promote(command: Parser) -> None:
    """Let a challenger serve. The command writes a request for each partition on log.control. The trainer of a
    partition follows it once, between two batches, and notes there from which records on. The model that served goes on
    in the shadow. Scorers follow. Needs log.control.

    name NAME: the challenger's name; "model" is the model of [model]
    """
    command.take(config)
    command.add("name")


def rollback(command: Parser) -> None:
    """Let the model serve that served before the present one, as `streamsvm promote` would."""
    command.take(config)
    command.set_defaults(name=None)


def export(command: Parser) -> None:
    """Write a model as a file for other programs: a C99 file, a Java class, a JavaScript module, an ONNX graph, or JSON
    that says in plain values how the model decides; docs/export.md describes them. With libsvm, write LIBSVM's text
    format, and a second file, FILE.json, which says the number and the scale of each feature, and how to compute
    probabilities. The trainer of a state folder may be running: its newest checkpoint is exported.

    --out FILE: the file to write
    --to: what to write
    --name: with c: what the functions begin with; with java: the class, such as com.example.Fraud (default: the file's
        name)
    --double: with onnx: take and compute double precision
    --partition N: with a state folder: the partition whose model is exported
    --key KEY: with a state folder and daemon.per = "key": the key whose model is exported
    --label CLASS: with libsvm and more than two classes: the class whose model is exported
    """
    command.take(_model)
    command.file("--out", required=True)
    command.add("--to", choices=("c", "java", "js", "json", "libsvm", "onnx"), default="libsvm")
    command.add("--name")
    command.flag("--double")
    _add_choice(command)
    command.add("--label")


def explain(command: Parser) -> None:
    """Say why a model answers as it does: which learned events speak most for the answer and against it, and which
    features would change it. The model knows events by 64-bit numbers; an id that is a whole number is its own. The
    trainer of a state folder may be running: its newest checkpoint answers.

    events FILE: JSON lines, each an event or its features: {"id": 7, "x": {"a": 1.5}} (default: standard input)
    -n N: members on each side, and features, to name (default: 3)
    --partition N: with a state folder: the partition whose model answers
    --key KEY: with a state folder and daemon.per = "key": the key whose model answers
    """
    command.take(_model)
    command.file("events", nargs="?")
    command.add("-n", type=count, default=3)
    _add_choice(command)


def merge(command: Parser) -> None:
    """Make one model of several that learned parts of a stream side by side, such as those of the partitions of a
    trainer, and write it to a file. The models must have the same class and the same parameters. The trainer of a state
    folder may be running: its newest checkpoints are read.

    models MODEL|DIR|CONFIG.toml: files that save() wrote, or a trainer's state folder, or its configuration, with the
        models of all its partitions
    --out FILE: the file to write
    --renumber: give the examples new ids; needed if two models use one for two examples
    """
    command.file("models", nargs="+")
    command.file("--out", required=True)
    command.flag("--renumber")


def _run(command: Parser) -> None:
    """The run of a trainer.

    run_of DIR|CONFIG.toml: the trainer's state folder (daemon.state_dir), or the configuration
    """
    command.file("run_of")


def _model(command: Parser) -> None:
    """A model.

    model MODEL|DIR|CONFIG.toml: a file that save() wrote, or the trainer's state folder, or its configuration
    """
    command.file("model")


def _add_choice(command: Parser) -> None:
    """The arguments that choose one of the models in a state folder."""
    command.add("--partition", type=offset)
    command.add("--key")
