"""The labelling page's address: the token that guards it, the file that leads to it, and the server behind it.

`server` describes the requests. The page gets the token from the fragment of its address, ``/#token=...``, which
browsers send to no server. The token stays the same when the server is started again, so that open pages continue.
"""

import html
import logging
import secrets
import socket
from pathlib import Path

from ...runtime.folders import make_private, write_private
from ...settings.sections import Settings
from ..service import LabellingService
from .server import PageServer

logger = logging.getLogger(__name__)

_WILDCARDS = ("", "0.0.0.0", "::")  # noqa: S104 - recognised, not chosen
_TOKEN_FILE = "page-key"  # noqa: S105 - a file's name; version 0.1.0 had "page-token", which images may have leaked
_DOOR_FILE = "open-page.html"


class LabellingPage(PageServer):
    """The page, at an address that a person can open; it serves inside a ``with`` block.

    Parameters
    ----------
    service
        Has the questions and takes the answers; inside its own ``with`` block.
    settings
        The configuration: labelling.host and labelling.port, the fields to show, the names of the labels. The token
        is in daemon.state_dir, readable by its owner only.

    Raises
    ------
    OSError
        If the port is taken, or if the token can neither be read nor written.
    """

    def __init__(self, service: LabellingService, settings: Settings) -> None:
        token = _token(settings.daemon.state_dir)
        super().__init__(service, settings, token)
        host = settings.labelling.host
        shown = _own_address(self.address_family) if host in _WILDCARDS else host
        shown = f"[{shown}]" if ":" in shown else shown
        self.url = f"http://{shown}:{self.port}/#token={token}"
        self._door = settings.daemon.state_dir / _DOOR_FILE

    def door(self) -> str:
        """The address of a private file that leads to the page: other users can see a browser's arguments."""
        target = html.escape(self.url)
        write_private(self._door, f'<!doctype html><meta http-equiv="refresh" content="0; url={target}">\n'.encode())
        return self._door.resolve().as_uri()

    def start(self) -> None:
        """Start serving, on another thread."""
        super().start()
        logger.info("serving the labelling page on %s, port %d", *self.server_address[:2])

    def close(self) -> None:
        """Stop serving; every acknowledged answer is durable."""
        self._door.unlink(missing_ok=True)
        self.closing.set()
        super().close()


def _own_address(family: int) -> str:
    """This machine's address on its network, for a server that listens on all addresses; without a network, loopback.

    Connecting a datagram socket sends nothing; it only selects a route, here to an address kept for documentation.
    """
    there, loopback = ("2001:db8::1", "::1") if family == socket.AF_INET6 else ("192.0.2.1", "127.0.0.1")
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((there, 9))
        except OSError:
            return loopback
        return str(probe.getsockname()[0])


def _token(folder: Path) -> str:
    """The token of this folder, which the first call creates."""
    path = folder / _TOKEN_FILE
    if path.exists():
        token = path.read_text(encoding="ascii").strip()
        if len(token) >= 32:
            return token
    token = secrets.token_urlsafe(24)
    make_private(folder)
    write_private(path, f"{token}\n".encode())
    return token
