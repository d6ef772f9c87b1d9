"""Parameters that stay as the constructor got them.

What a model has learned rests on its parameters: the kernel, the bounds on the coefficients, the scale.  An attribute
that says otherwise would have no effect, and a snapshot would store it beside what was learned under the old value.  So
setting one changes nothing and warns.
"""

import inspect
import warnings
from typing import Any, TypeVar

from streamsvm.core.stream_warning import StreamWarning

Kind = TypeVar("Kind", bound=type)


class _Fixed:
    """A parameter that is set once.

    There is no `__get__`, so that reading it is a look-up in the object's dict, without a call.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __set__(self, model: Any, value: Any) -> None:
        name, own = self._name, vars(model)
        if name not in own:
            own[name] = value
        elif value is not own[name]:
            kind, now, before = type(model).__name__, f"{value!r:.60}", f"{own[name]!r:.60}"
            warnings.warn(
                f"{name} stays {before}, and {now} is not used: what this {kind} has learned rests on it; make another "
                f"one with clone({{{name!r}: {now}}}), and learn the examples anew",
                StreamWarning,
                stacklevel=2,
            )


def fixed_parameters(kind: Kind) -> Kind:
    """Let the attributes with the names of the constructor's parameters be set once only; a decorator of a class."""
    for name in inspect.signature(kind).parameters:
        setattr(kind, name, _Fixed(name))
    return kind
