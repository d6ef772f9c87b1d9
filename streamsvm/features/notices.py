"""What `Records` warns of."""

import reprlib
import warnings
from collections.abc import Collection, Hashable, Iterable
from typing import Any

from streamsvm.core.stream_warning import StreamWarning
from streamsvm.features.field import JUDGED, Field
from streamsvm.features.given import unknown_names
from streamsvm.features.nesting import order_of
from streamsvm.features.values import EPOCHS, LIST, LONGEST_BITS, READERS, TEXT

LONGEST_NAME = 200  # characters of a field's name


def warn_of_unfit(f: Field, v: Any) -> None:
    """Tell of the first value that is not of its field's kind."""
    is_huge = isinstance(v, int) and v.bit_length() > LONGEST_BITS  # Python refuses to write it
    value = f"an integer of {v.bit_length()} bits" if is_huge else " ".join(reprlib.repr(v).split())
    if f.kind is None:
        text = f"field {f.name!r} is left out so far: {value} ({type(v).__name__}) is of no kind; convert it before"
    elif f.embedding is not None and isinstance(READERS[TEXT](v), str):
        text = (
            f"the embedder {f.embedding.embedder.name!r} cannot take {value} of field {f.name!r}: "
            f"{f.embedding.problem}; such values count as missing; `summary` tells how many there are"
        )
    else:
        kind = f"list of length {f.length}" if f.kind == LIST else f"time ({f.kind})" if f.kind in EPOCHS else f.kind
        text = (
            f"field {f.name!r} is a {kind} {'as given' if f.is_given else 'by its first values'}, and {value} cannot "
            f"be read as one: such values count as missing; `summary` tells how many there are, and "
            f"kinds={{{f.name!r}: ...}} gives the field another kind"
        )
    warnings.warn(text, StreamWarning, stacklevel=5)


def warn_of_unknown(fields: Iterable[Hashable], kinds: Iterable[Hashable], embedded: Collection[Hashable]) -> None:
    """Tell of names that the user gave to no field."""
    names, where = unknown_names(fields, kinds, embedded), "kinds or embed" if embedded else "kinds"
    if not names:
        return
    unknown, known = (", ".join(map(repr, sorted(of, key=order_of)[:5])) for of in (names, fields))
    warnings.warn(
        f"{where} names {unknown}, which the first {JUDGED} records lack; their fields begin with {known}",
        StreamWarning,
        stacklevel=4,
    )


def warn_of_fields(name: Hashable, most: int) -> None:
    """Tell of the first field that is left out for lack of room."""
    warnings.warn(
        f"field {str(name)[:60]!r} is left out, and so are others: there are at most {most} fields (max_fields), with "
        f"names of at most {LONGEST_NAME} characters",
        StreamWarning,
        stacklevel=4,
    )
