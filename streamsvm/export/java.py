"""A model as one Java class."""

import struct
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import numpy as np

from streamsvm.export.description import Description, describe
from streamsvm.export.fields import plain_records
from streamsvm.export.writing import filled, require_identifier, squared_norms, texts_of

PART = np.iinfo(np.uint16).max - 1  # characters of a constant: 16 bits count its bytes, and javac refuses 65535


def to_java(model: Any, name: str = "Model") -> str:
    """A model as the text of one Java class, which needs no other class.

    The head of the file says how to call it.

    Parameters
    ----------
    model
        The model; see `describe`, which also says what is raised.
    name
        The class, with its package if it has one, such as ``com.example.Model``.  The file must have its name.

    Examples
    --------
    >>> from streamsvm import LASVM
    >>> model = LASVM(gamma=0.5)
    >>> model.learn_many([{"a": 0.0}, {"a": 1.0}], [False, True])
    >>> "public final class Scorer {" in to_java(model, "com.example.Scorer")
    True
    """
    require_identifier(name, r"([A-Za-z][A-Za-z0-9_]*\.)*[A-Za-z][A-Za-z0-9_]*")
    package, _, own = name.rpartition(".")
    found = describe(model)
    data = b64encode(b"".join(_data(found))).decode("ascii")
    parts = (data[first : first + PART] for first in range(0, len(data), PART))
    return filled(
        "Scorer.java",
        {
            "package": f"package {package};\n" if package else "",
            "name": own,
            "data": ",\n            ".join(f'"{part}"' for part in parts),
            "kernel": found.kernel,
            "decision": found.decision,
            "degree": found.degree,
            "coef0": found.coef0,
            "limit": found.limit if np.isfinite(found.limit) else "Double.POSITIVE_INFINITY",
            "threshold": found.threshold,
            **_optional(found),
        },
    )


IMPORTS = (
    *("java.math.BigDecimal", "java.time.DateTimeException", "java.time.LocalDateTime", "java.time.ZoneOffset"),
    *("java.util.LinkedHashMap", "java.util.List", "java.util.Locale", "java.util.Set", "java.util.StringJoiner"),
    *("java.util.regex.Matcher", "java.util.regex.Pattern", "java.util.zip.CRC32"),
)
USAGE = """
 *
 * <p>A map is a raw record: String, Number, Boolean, List, nested Map or null."""


def _optional(found: Description) -> dict[str, str]:
    """What makes numbers of raw records, if the model takes these, and what says which labels cannot be excluded."""
    imports: tuple[str, ...] = ()
    values = {"usage": "", "value": "? extends Number", "numbers_of_x": "x", "records": "", "predict_set": ""}
    if found.records is not None:
        plain = plain_records(found.records)
        own = {name: plain[name] for name in ("width", "own_values", "shared")}
        made = filled("Records.java", own | {"indicators": str(found.records.indicators).lower()})
        values |= {"usage": USAGE, "value": "?", "numbers_of_x": "Records.numbersOf(x)", "records": made.rstrip("\n")}
        imports += IMPORTS
    if found.guarantee is not None:
        values["predict_set"] = filled("PredictSet.java", values)
        imports += ("java.util.Comparator", "java.util.stream.IntStream")
    return values | {"imports": "".join(f"import {name};\n" for name in imports)}


def _data(found: Description) -> Iterator[bytes]:
    """The arrays in the order in which the class reads them, each with its length before it."""
    yield from map(_texts, (found.features, found.labels))
    yield from map(_doubles, (found.shift, found.factor, found.missing))
    yield from map(_doubles, _guarantee(found))
    yield from map(_doubles, (found.bias, found.slopes, found.coefficients))
    yield from map(_integers, (found.members.indptr, found.members.indices))
    yield from map(_doubles, (found.members.data, squared_norms(found), found.gamma))
    if found.records is not None:
        yield from _fields(plain_records(found.records))


def _guarantee(found: Description) -> list[np.ndarray]:
    """The thresholds of the labels, and the correction of probabilities; empty without them."""
    own = found.guarantee
    return [np.array([] if own is None else own.thresholds), np.array((own and own.correction) or [])]


def _fields(records: dict[str, Any]) -> Iterator[bytes]:
    yield _texts([records["thousands"] or ""])
    yield _integers(np.array([len(records["fields"])]))
    for field in records["fields"]:
        yield _texts([field["name"], field["kind"]])
        yield _texts(field["values"])
        yield _doubles(np.array(field["guesses"] or [], np.float64))
        yield _integers(np.array([field["has_clock"], field["length"], field["is_rare"]]))


def _doubles(array: np.ndarray) -> bytes:
    return struct.pack("<i", array.size) + np.ascontiguousarray(array, "<f8").tobytes()


def _integers(array: np.ndarray) -> bytes:
    return struct.pack("<i", array.size) + np.ascontiguousarray(array, "<i4").tobytes()


def _texts(names: list) -> bytes:
    texts = [text.encode() for text in texts_of(names)]
    return struct.pack("<i", len(texts)) + b"".join(struct.pack("<i", len(text)) + text for text in texts)
