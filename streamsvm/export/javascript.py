"""A model as one JavaScript module: a program that reads the description, and the description."""

import json
from typing import Any

from streamsvm.export.description import describe
from streamsvm.export.plain import plain_values
from streamsvm.export.writing import filled, texts_of

ALWAYS = ("features", "labels", "predict", "values", "probabilities")


def to_javascript(model: Any) -> str:
    """A model as the text of one JavaScript module, for browsers and for Node.

    The head of the file says how to call it.  Its function ``scorer`` reads what `to_json` writes, of any model.

    Parameters
    ----------
    model
        The model; see `describe`, which also says what is raised.

    Examples
    --------
    >>> from streamsvm import LASVM
    >>> model = LASVM(gamma=0.5)
    >>> model.learn_many([{"a": 0.0}, {"a": 1.0}], [False, True])
    >>> "predict, values, probabilities } = scorer({" in to_javascript(model)
    True
    """
    found = describe(model)
    texts_of([*found.features, *found.labels])
    told = plain_values(found)
    fields = told["records"]["fields"] if found.records else []
    texts_of([field["name"] for field in fields])
    has = {"predictSet": found.guarantee, "numbersOf": found.records}
    names = ", ".join((*ALWAYS, *(name for name, own in has.items() if own is not None)))
    # JSON in ASCII is JavaScript; without <, it may stand in a page, too.
    literal = json.dumps(told, allow_nan=False).replace("<", "\\u003c")
    return f"{javascript_reader()}\nexport const {{ {names} }} = scorer({literal});\n"


def javascript_reader() -> str:
    """The text of a module without a model: its function ``scorer`` reads what `to_json` writes.

    Examples
    --------
    >>> "export function scorer(model)" in javascript_reader()
    True
    """
    return filled("scorer.mjs") + filled("records.mjs")
