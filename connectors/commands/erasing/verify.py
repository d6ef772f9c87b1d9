"""The command ``streamsvm verify``: replay the log of a receipt without the erased records, and compare the digests."""

import argparse
import tempfile
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ...logs.transport import Transport
from ...runtime.exit_codes import BAD_DATA
from ...runtime.process import Stop
from ...runtime.text import plural
from ...settings.opening import open_once
from ...settings.sections import Settings
from ...trainer.rerun import Rerun, Stage
from ...trainer.state.digests import digests
from ..shared.configuration import read_config
from ..shared.long_running import replaying, shown
from . import receipts


def run(arguments: argparse.Namespace) -> int | None:
    settings = read_config(arguments)
    receipt = receipts.load(arguments.receipt, receipts.read_key(arguments.key))
    problems = list(_other_settings(receipt["settings"], receipts.settings_of(settings)))
    salted = receipts.Salted(bytes.fromhex(receipt["salt"]))
    if not problems:
        with open_once(settings) as log:
            problems = list(_shorter_log(log, settings, receipt))
            for number, part in () if problems else _partitions(receipt):
                is_erased = salted.among(part["erased"])
                found = receipts.log_digests(log, settings, number, Stage(*part["place"]), is_erased)
                problems += _other_log(number, part["log"], found)
    if not problems:
        with replaying(settings) as stop:
            problems = list(_replayed(settings, receipt, salted, stop))
        problems += _other_machine(receipt["machine"]) if problems else ()
    for problem in problems:
        print(problem)
    if problems:
        print(f"{arguments.receipt} does not hold")
        return BAD_DATA
    n_erased = sum(len(part["erased"]) for _, part in _partitions(receipt))
    erased = plural(n_erased, "erased record")
    print(f"{arguments.receipt} holds: without its {erased}, this log gives the same state, bit for bit")
    return None


def _partitions(receipt: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, part in receipt["partitions"].items():
        yield int(number), part


def _replayed(settings: Settings, receipt: dict[str, Any], salted: receipts.Salted, stop: Stop) -> Iterator[str]:
    """Replay every partition; what differs, in words."""
    with tempfile.TemporaryDirectory(prefix="streamsvm-verify-") as folder:
        for number, part in _partitions(receipt):
            rerun = Rerun(settings, number, Path(folder), salted.among(part["erased"]))
            for stage in [*part["stages"], part["place"]]:
                state = shown(rerun, Stage(*stage), f"replaying partition {number}", stop)
            served = [] if state is None else [[term.name, term.offset] for term in state.challengers.terms]
            if state is not None and served != part.get("served", served):
                yield (
                    f"partition {number}: here {_terms(served)}, and in the receipt {_terms(part['served'])}. The copy "
                    "needs the topics of log.control, too"
                )
            found = {} if state is None else digests(state)
            for name, digest in part["after"].items():
                if found.get(name) != digest:
                    yield f"partition {number}, {name}: the digest of this replay is {found.get(name)}, not {digest}"


def _terms(served: list[list[Any]]) -> str:
    return ", then ".join(f"{name!r} serves from offset {offset}" for name, offset in served)


def _other_settings(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            yield f"the receipt was made with {name} = {old.get(name)!r}, the configuration says {new.get(name)!r}"


def _other_log(number: int, old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """The first block of each topic that is not the receipt's."""
    for topic, blocks in old.items():
        begin = 0
        for block, other in zip_longest(blocks, new.get(topic, [])):
            if block != other:
                end = (block or other)[0]
                yield f"the log is another one: records of {topic}-{number} from offset {begin} to {end} differ"
                break
            begin = block[0]


def _shorter_log(log: Transport, settings: Settings, receipt: dict[str, Any]) -> Iterator[str]:
    """The topics that end before the place of the receipt, for whose records a replay would wait."""
    for topic, place in zip(settings.log.inputs, Stage._fields, strict=False):
        ends = log.end_offsets(topic)
        for number, part in _partitions(receipt):
            end, wanted = ends.get(number, 0), Stage(*part["place"])._asdict()[place]
            if end < wanted:
                yield f"the log is another one: {topic}-{number} ends at offset {end}, and the receipt's at {wanted}"


def _other_machine(old: dict[str, str]) -> Iterator[str]:
    for name, value in receipts.machine().items():
        if old.get(name) != value:
            yield (
                f"the receipt was made with {name} {old.get(name)}, and this is {value}: that may be why. Processors "
                "of one level, which STREAMSVM_CPU names, give the same bits"
            )
