"""The arguments of the commands about this machine: the demonstration, the doctor and the compiler."""

from pathlib import Path

from . import options
from .options import Parser, add_config


def demo(command: Parser) -> None:
    """Learn two real streams and a made one of raw records from a local log, let a program label handwritten digits,
    and write pictures and reports. It needs no broker, and takes a minute or two, most of it for compiling the engine
    the first time. Start it again after Ctrl-C or kill -9, and it continues.
    """
    command.add(
        "--dir",
        type=Path,
        default=Path("streamsvm-demo"),
        help="folder for the log and the results (default: streamsvm-demo)",
    )
    what = command.add_mutually_exclusive_group()
    what.add_argument("--records", type=options.count, help="how many records of each stream to learn (default: all)")
    what.add_argument("--label", action="store_true", help="label handwritten digits on a page instead")


def doctor(command: Parser) -> None:
    """Check the installation and the compile cache. With a configuration, also check the state folder, the object
    store, the schema registry, the log, the topics and the newest records. Each warning or problem comes with a remedy.
    """
    add_config(command, nargs="?")


def warmup(command: Parser) -> None:
    """Compile all of the engine now, so that the next start of any command takes seconds. Compiling takes up to two
    minutes of CPU time, once for each installation and processor.
    """
