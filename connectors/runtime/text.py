"""Texts for people."""


def plural(count: int, noun: str) -> str:
    """A count with its noun, such as "1 record" or "2 records"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
