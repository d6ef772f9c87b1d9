"""Which code runs for some arguments: a shorter way to it than numba's.

Numba looks at each array of a named tuple in each call.  For an expansion and a scale that takes 5 microseconds of CPU
time, half of a prediction.  A function `by_class` remembers the code that numba chose, by the classes of the arguments.
That is safe because each of them is

- a number;
- a named tuple of numbers, declared with `of_numbers`: each number has exactly the class that the tuple declares;
- a tuple that is passed by reference, see `_reference`.  When its arrays are handed over, compiled code compares their
  types with those that it was compiled for, and raises a TypeError before it does anything else.  Then numba chooses.
"""

from typing import Any

import numpy as np
from numba.core.registry import CPUDispatcher
from numba.core.typing.typeof import Purpose, typeof

NUMBERS = {bool, int, float, np.bool_, np.int64, np.float64}
OF_NUMBERS: set[type] = set()
BY_REFERENCE: set[type] = set()


def of_numbers(instance_class: Any) -> Any:
    """Declare a named tuple of numbers, each of exactly the class that it declares: no int in the place of a float."""
    OF_NUMBERS.add(instance_class)
    return instance_class


def _is_told_by_class(value: Any) -> bool:
    kind = type(value)
    if kind in OF_NUMBERS:
        return tuple(map(type, value)) == tuple(kind.__annotations__.values())
    return kind in NUMBERS or kind in BY_REFERENCE


class _ByClass(CPUDispatcher):
    """A compiled function that Python calls with the same classes again and again."""

    def __call__(self, *values: Any) -> Any:
        """Call the code for these arguments."""
        classes = tuple(map(type, values))
        code = self._codes.get(classes)
        if code is not None:
            try:
                return code(*values)
            except TypeError:  # The arrays of a tuple are others.
                return super().__call__(*values)
        result = super().__call__(*values)
        chosen = self.overloads.get(tuple(typeof(value, Purpose.argument) for value in values))
        if chosen is not None and all(map(_is_told_by_class, values)):
            self._codes[classes] = chosen.entry_point
        return result


def by_class(function: Any) -> Any:
    """Let a compiled function choose its code by the classes of the arguments, if these tell their types."""
    if isinstance(function, CPUDispatcher):  # With NUMBA_DISABLE_JIT, it is the Python function.
        function.__class__, function._codes = _ByClass, {}
    return function
