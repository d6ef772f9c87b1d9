"""Numbers that are written as strings with a sign between thousands."""

import re
from typing import Any

GROUPED = r"[+-]?\d{{1,3}}(?:{0}\d{{2,3}})*{0}\d{{3}}(?:\.\d*)?"  # a number with this sign between thousands


def require_thousands(sign: str | None) -> None:
    """Raise a ValueError unless this is a sign between thousands, or None."""
    if sign is not None and (not isinstance(sign, str) or len(sign) != 1 or sign.isalnum() or sign in "+-."):
        raise ValueError(f"thousands={sign!r} must be None or one sign, such as ','; '.' is the decimal point")


def ungrouped(v: Any, sign: str | None) -> Any:
    """The value without the sign between thousands; None: there is none."""
    if sign is None or not isinstance(v, str) or sign not in v:
        return v
    return v.replace(sign, "") if re.fullmatch(GROUPED.format(re.escape(sign)), v.strip()) else v
