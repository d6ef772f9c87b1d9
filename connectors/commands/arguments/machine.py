"""The arguments of the commands about this machine: the demonstration, the doctor and the compiler."""

from pathlib import Path

from . import options
from .options import Parser


def demo(command: Parser) -> None:
    """Learn two real streams and a made one of raw records from a local log, let a program label handwritten digits,
    and write pictures and reports. It needs no broker, and takes a minute or two, most of it for compiling the engine
    the first time. Start it again after Ctrl-C or kill -9, and it continues.

    --dir: folder for the log and the results (default: streamsvm-demo)
    --records: how many records of each stream to learn (default: all)
    --label: label handwritten digits on a page instead
    """
    command.file("--dir", default=Path("streamsvm-demo"))
    what = command.add_mutually_exclusive_group()
    command.add("--records", group=what, type=options.count)
    command.flag("--label", group=what)


def doctor(command: Parser) -> None:
    """Check the installation and the compile cache. With a configuration, also check the state folder, the object
    store, the schema registry, the log, the topics and the newest records. Each warning or problem comes with a remedy.
    """
    command.take(options.config, nargs="?")


def warmup(command: Parser) -> None:
    """Compile all of the engine now, so that the next start of any command takes seconds. Compiling takes up to two
    minutes of CPU time, once for each installation and processor.
    """
