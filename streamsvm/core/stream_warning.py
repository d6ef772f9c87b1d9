"""The warning of everything from which a model cannot learn well, and how a warning finds the line of the user."""

import sys
import warnings

PACKAGE = __name__.partition(".")[0]


class StreamWarning(UserWarning):
    """A stream from which the model cannot learn well: its features, its labels, or the model's parameters."""


def warn(message: str, kind: type[Warning] = StreamWarning) -> None:
    """Warn of the line that called this package, however many of its functions lie in between."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, kind, stacklevel=level)
