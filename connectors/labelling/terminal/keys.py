"""Keys: single ones from a terminal, whole lines from anything else, so that a word is not read as its letters."""

import os
import re
import select
import termios
import tty
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

_TYPED_BYTES = 4096  # a terminal hands over no more at once
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|.)?")  # sent by keys such as Home or an arrow


class Keys:
    """The keys that were pressed, or the lines that were read."""

    def __init__(self, descriptor: int, *, is_terminal: bool) -> None:
        self.is_terminal = is_terminal
        self._descriptor = descriptor
        self._rest = b""
        self._pending: deque[str] = deque()
        self._has_ended = False

    @classmethod
    @contextmanager
    def of(cls, source: TextIO) -> Iterator["Keys"]:
        descriptor, is_terminal = source.fileno(), source.isatty()
        before = termios.tcgetattr(descriptor) if is_terminal else None
        try:
            if is_terminal:
                tty.setcbreak(descriptor, termios.TCSANOW)
            yield cls(descriptor, is_terminal=is_terminal)
        finally:
            if before is not None:
                termios.tcsetattr(descriptor, termios.TCSADRAIN, before)

    @contextmanager
    def lines(self) -> Iterator[None]:
        """Let a terminal hand over whole lines, which it shows and lets people edit."""
        if not self.is_terminal:
            yield
            return
        before = termios.tcgetattr(self._descriptor)
        after = [*before[:3], before[3] | termios.ICANON | termios.ECHO, *before[4:]]
        self.forget()
        termios.tcsetattr(self._descriptor, termios.TCSADRAIN, after)
        try:
            yield
        finally:
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, before)

    def take_line(self, seconds: float) -> str | None:
        """The next line as it was typed, or None if none comes in time."""
        if not self.is_terminal:
            self._fill(seconds)
            return self._pending.popleft() if self._pending else None
        if not select.select([self._descriptor], [], [], seconds)[0]:
            return None
        return os.read(self._descriptor, _TYPED_BYTES).decode(errors="ignore").strip()

    def first(self, seconds: float) -> str | None:
        """The next key, or None if none comes in time; it stays the next one."""
        self._fill(seconds)
        return self._pending[0].lower() if self._pending else None

    @property
    def is_ended(self) -> bool:
        """Whether the input has ended."""
        self._fill(0)
        return self._has_ended and not self._pending

    def take(self, seconds: float) -> str | None:
        """The next key, or None if none comes in time."""
        self._fill(seconds)
        return self._pending.popleft().lower() if self._pending else None

    def forget(self) -> None:
        """Drop the keys that were pressed before the question was shown."""
        if self.is_terminal:
            termios.tcflush(self._descriptor, termios.TCIFLUSH)
            self._pending.clear()

    def _fill(self, seconds: float) -> None:
        if self._pending or self._has_ended or not select.select([self._descriptor], [], [], seconds)[0]:
            return
        data = os.read(self._descriptor, _TYPED_BYTES)
        self._has_ended = not data
        if self.is_terminal:
            keys = list(_SEQUENCE.sub("", data.decode(errors="ignore")))
        else:
            *lines, self._rest = (self._rest + data).split(b"\n")
            if self._has_ended:
                lines.append(self._rest)
            keys = [line.decode(errors="replace") for line in lines]
        self._pending.extend(key.strip() for key in keys if key.strip())
