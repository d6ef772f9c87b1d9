"""A model as one JavaScript module."""

import json
from typing import Any

import numpy as np

from streamsvm.export.description import describe
from streamsvm.export.fields import plain_records
from streamsvm.export.writing import filled, in_base64, squared_norms, texts_of
from streamsvm.features import Records


def to_javascript(model: Any) -> str:
    """A model as the text of one JavaScript module, for browsers and for Node.

    The head of the file says how to call it.

    Parameters
    ----------
    model
        The model; see `describe`, which also says what is raised.

    Examples
    --------
    >>> from streamsvm import LASVM
    >>> model = LASVM(gamma=0.5)
    >>> model.learn_many([{"a": 0.0}, {"a": 1.0}], [False, True])
    >>> "export function predict(x)" in to_javascript(model)
    True
    """
    found = describe(model)
    texts_of([*found.features, *found.labels])
    doubles = {
        "shift": found.shift,
        "factor": found.factor,
        "bias": found.bias,
        "slopes": found.slopes,
        "coefficients": found.coefficients,
        "entries": found.members.data,
        "norms": squared_norms(found),
        "gamma": found.gamma,
    }
    integers = {"starts": found.members.indptr, "columns": found.members.indices}
    return filled(
        "scorer.mjs",
        {
            **_conversion(found.records),
            "features": _literal(found.features),
            "labels": _literal(found.labels),
            "kernel": found.kernel,
            "decision": found.decision,
            "degree": found.degree,
            "coef0": found.coef0,
            "limit": found.limit if np.isfinite(found.limit) else "Infinity",
            "threshold": found.threshold,
            **{name: in_base64(array, "<f8") for name, array in doubles.items()},
            **{name: in_base64(array, "<i4") for name, array in integers.items()},
        },
    )


def _conversion(records: Records | None) -> dict[str, str]:
    """What makes numbers of raw records, if the model takes these."""
    if records is None:
        return {"usage": "", "entries_of_x": "Object.entries(x)", "records": ""}
    plain = plain_records(records)
    texts_of([field["name"] for field in plain["fields"]])
    return {
        "usage": "\n\n   An object is a raw record: numbersOf(record) makes numbers of strings and nested objects.",
        "entries_of_x": "given ? Object.entries(x) : numbersOf(x)",
        "records": filled("records.mjs", {"records": _literal(plain)}),
    }


def _literal(names: Any) -> str:
    """Plain values as JSON in ASCII, which is JavaScript; without <, it may stand in a page, too."""
    return json.dumps(names).replace("<", "\\u003c")
