"""A made stream of raw records, orders of a shop: strings, blanks, times, a text, a nested object."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import numpy as np

RECORDS = 4000

_COUNTRIES = ("DE", "FR", "PL", "IT", "")
_REMARKS = {  # by how much they speak for a return
    2.0: ("please send two sizes, one will come back", "not sure about the colour yet"),
    0.0: ("leave the parcel at the door", "ring twice, the bell is weak", ""),
    -2.0: ("a present for my mother", "the same as last time, it fits well"),
}


def orders() -> Iterator[dict[str, Any]]:
    """The orders in the order of their times; the field ``returned`` is the label."""
    rng, when = np.random.default_rng(38), datetime(2026, 1, 5, 7)
    for number in range(RECORDS):
        when += timedelta(minutes=rng.exponential(40))
        mood = list(_REMARKS)[rng.integers(len(_REMARKS))]
        price, country = float(np.exp(rng.normal(3.5, 0.8))), str(rng.choice(_COUNTRIES))
        is_late = when.hour >= 20 or when.hour < 5
        tendency = mood + 2.0 * is_late - 2.0 * (country == "PL") + (1.0 if price > 40 else -1.5)
        yield {
            "order": f"o{number}",
            "ordered": when.isoformat(sep=" ", timespec="seconds"),
            "price": f"{price:.2f}" if rng.random() > 0.1 else "",
            "customer": {"country": country, "age": int(rng.integers(18, 80)) if rng.random() > 0.3 else None},
            "remark": _remark(rng, mood),
            "shop": "web",
            "returned": "yes" if tendency + rng.normal(0, 0.7) > 0 else "no",
        }


def _remark(rng: np.random.Generator, mood: float) -> str:
    text = rng.choice(_REMARKS[mood])
    return f"{text}, {rng.choice(('thanks', 'regards'))} from house {rng.integers(1000)}" if text else ""
