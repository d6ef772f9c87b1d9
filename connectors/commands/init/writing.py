"""The configuration that `streamsvm init` writes, with comments, and the table that it prints."""

import json
import re
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from streamsvm.features.values import CATEGORY, NUMBER, TEXT

from ...runtime.text import aligned, counted, printable
from .fields import Field
from .roles import MOST_GUESSED, RARE, Roles

DAY = 86_400
LONGEST = 60  # characters of a comment's examples
FEW = 20  # values that differ by chance
CODES = re.compile(r"(_id|zip|postal|plz|code|_no|_nr|number)$", re.IGNORECASE).search  # of numbers that may be names


class Origin(NamedTuple):
    """Where the records come from.

    Attributes
    ----------
    name
        The file or the topic, for people.
    topic
        The topic of the events.
    log
        The lines of the configuration that name the log.
    is_flat
        Whether the fields are the record's own; otherwise they are those of its x.
    ends
        Whether the trainer stops at the end of the log.
    """

    name: str
    topic: str
    log: str
    is_flat: bool
    ends: bool


def configuration(origin: Origin, fields: Mapping[str, Field], roles: Roles, n_records: int) -> str:
    """The text of the configuration."""
    own = re.sub(r"[^A-Za-z0-9._-]", "-", origin.topic)
    parts = [
        f"# Written by `streamsvm init` after a look at {n_records:,} records of {printable(origin.name)}.\n",
        f"{origin.log}topic = {_quoted(origin.topic)}\npredictions = {_quoted(f'{own}-predictions')}\n"
        f"dlq = {_quoted(f'{own}-dlq')} # records that the trainer refuses, with the reason\n",
        _features(origin, fields, roles, n_records),
        _label(roles),
        _model(roles),
        f"[daemon]\nstate_dir = {_quoted(f'state/{own}')}\n"
        f"follow = {str(not origin.ends).lower()} # true: wait for more records at the end of the log\n",
    ]
    if roles.time is not None and origin.ends:
        parts.append(_join(fields[roles.time].newest))
    return "\n".join(filter(None, parts))


def _features(origin: Origin, fields: Mapping[str, Field], roles: Roles, n_records: int) -> str:
    lines = ["[features]", "raw = true # texts, blanks, times, nested objects: the trainer makes numbers of them"]
    if origin.is_flat:
        for role in ("id", "label", "time"):
            name, why = getattr(roles, role), roles.why[role]
            if name is not None:
                lines.append(f"{role} = {_quoted(name)} # {why}")
            else:
                lines.append(f"# {role} = ... # {why}")
    if any(fields[name].has_groups for name in roles.kinds):
        lines.append('thousands = "," # the sign between thousands, as in 1,234.5')
    texts = [f'{_key(name)} = "wordllama"' for name, kind in roles.kinds.items() if kind == TEXT]
    if texts:
        lines.append(f"# embed = {{ {', '.join(texts)} }} # what texts mean, in English; needs streamsvm[embed]")
    lines += ["", "[features.kinds] # remove a line, and the first 50 values decide; docs/records.md lists the kinds"]
    for name, kind in roles.kinds.items():
        lines.append(f"{_key(name)} = {_quoted(kind)} # {_about(name, fields[name], roles, n_records)}")
    return "\n".join(lines) + "\n"


def _about(name: str, of: Field, roles: Roles, n_records: int) -> str:
    parts = [f"left out: {roles.left_out[name]}"] if name in roles.left_out else []
    if of.kind in (CATEGORY, NUMBER) and 1 <= len(of.classes) <= 10:
        parts.append(values(of))
    elif of.classes or of.values is None:
        parts.append(f"{len(of.classes) or 'more than 1000'} different values")
    if of.n_present < n_records:
        parts.append(f"{1 - of.n_present / n_records:.0%} missing" if of.n_present else "always missing")
    if of.kind == NUMBER and name not in roles.left_out and CODES(name):
        parts.append('if these numbers are names or codes, write "category"')
    elif of.kind == NUMBER and name not in roles.left_out and of.all_differ and of.n_present > FEW:
        parts.append('all differ: if they number the records, write "ignore"')
    if of.kind == TEXT:
        parts.append('if it names people, write "ignore"')
    if of.is_of_digits:
        parts.append("mostly digits: codes, numbers or times?")
    return printable("; ".join(parts))


def values(of: Field) -> str:
    """The values of a field with how often they came."""
    shown = ", ".join(f"{_quoted(v) if isinstance(v, str) else v} {n}x" for v, n in of.classes.items())
    if len(shown) > LONGEST:
        whole = shown[:LONGEST].rpartition(", ")[0]
        shown = f"{whole}, ..." if whole else f"{shown[:LONGEST]}..."
    return printable(shown)


def _label(roles: Roles) -> str:
    if not roles.classes:
        return ""
    counts = counted(roles.classes, MOST_GUESSED)
    if len(roles.classes) > 2:
        listed = ", ".join(_quoted(v) if isinstance(v, str) else str(v) for v in roles.classes)
        return f"[label]\nclasses = [{listed}] # {printable(counts)}\n"
    names = f"# {roles.positive} is the positive class"
    if roles.is_named:
        positive, negative = _quoted(roles.positive), _quoted(roles.negative)
        names = f"positive = {positive} # {roles.why['positive']}\nnegative = {negative}"
    return f"[label] # {printable(counts)}\n{names}\n"


def _model(roles: Roles) -> str:
    lines = ["[model]", 'algorithm = "auto" # chooses C, gamma and the window itself; "lasvm" is up to 4 times as fast']
    if roles.classes:
        is_rare, mark = roles.rarest < RARE, "" if roles.rarest < RARE else "# "
        why = f"the rarest class has {roles.rarest:.1%} of the labels"
        if is_rare or roles.rarest < 0.3:
            lines.append(f'{mark}pos_weight = "balanced" # {why}')
            if len(roles.classes) == 2:
                lines.append(f'{mark}metric = "gmean" # finds more of them, with more false alarms')
    return "\n".join(lines) + "\n"


def _join(newest: int | None) -> str:
    """Old times are moved to the present unless this says how old they may be."""
    age = time.time() - (newest or 0) / 1000
    if abs(age) < DAY:
        return ""
    return "[join]\nmax_skew_seconds = 1e9 # the times in the file count, however old they are\n"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _quoted(value: Any) -> str:
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def table(fields: Mapping[str, Field], roles: Roles, n_records: int) -> str:
    """The fields: what they are, and what becomes of them."""
    used = {name: role for role in ("id", "label", "time") if (name := getattr(roles, role)) is not None}
    lines: list[tuple[str, ...]] = [("field", "kind", "becomes", "present", "missing", "different")]
    for name, of in fields.items():
        role = used.get(name)
        becomes = "left out" if name in roles.left_out else "features" if role is None else f"the {role}"
        if role == "time":
            becomes += ", features"
        different = f"{len(of.classes):,}" if of.values is not None else "many"
        missing = n_records - of.n_present
        lines.append((printable(name)[:40], of.kind or "-", becomes, f"{of.n_present:,}", f"{missing:,}", different))
    return aligned(lines, left=3)
