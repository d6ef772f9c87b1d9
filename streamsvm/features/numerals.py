"""Numbers that are written as strings, perhaps with a sign between thousands."""

import re
from typing import Any

GROUPED = r"[+-]?\d{{1,3}}(?:{0}\d{{2,3}})*{0}\d{{3}}(?:\.\d*)?"  # a number with this sign between thousands


class Numerals:
    """Reads numbers.

    Parameters
    ----------
    thousands
        The sign between thousands, or None.
    """

    def __init__(self, thousands: str | None) -> None:
        if thousands is not None and (
            not isinstance(thousands, str) or len(thousands) != 1 or thousands.isalnum() or thousands in "+-."
        ):
            raise ValueError(f"thousands={thousands!r} must be None or one sign, such as ','; '.' is the decimal point")
        self._thousands = thousands

    def ungrouped(self, v: Any) -> Any:
        """The value without the sign between thousands."""
        sign = self._thousands
        if sign is None or not isinstance(v, str) or sign not in v:
            return v
        return v.replace(sign, "") if re.fullmatch(GROUPED.format(re.escape(sign)), v.strip()) else v
