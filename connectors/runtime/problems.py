"""Errors of which several may be told at once."""


class Problems(ValueError):  # noqa: N818 - the errors below it are named for what is wrong
    """An error that lists what is wrong; `problems` has a line for each problem."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
