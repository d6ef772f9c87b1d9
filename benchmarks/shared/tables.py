"""Tables for the terminal that are Markdown as well."""


def table(titles: str, rows: list[list[str]]) -> str:
    """Markdown, with columns of even width; text to the left and figures to the right."""
    heads = titles.split("|")
    cells = [heads, *rows]
    widths = [max(2, *(len(row[i]) for row in cells)) for i in range(len(heads))]  # Markdown wants "-:" at least
    rule = ["-" * width if i == 0 else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    lines = [heads, rule, *rows]
    return "\n".join(
        "| "
        + " | ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        )
        + " |"
        for line in lines
    )


def shown(value: float | None, form: str = "{:.0f}", before: str = "") -> str:
    """A figure, or a dash."""
    return "-" if value is None else before + form.format(value)


def say(aim: str, found: str, met: bool) -> None:
    """Print one aim."""
    print(f"- {'met' if met else 'NOT MET'}: {aim}: {found}")
