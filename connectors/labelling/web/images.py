"""Which images the page may load: those inside the event, those of ``labelling.image_folder``, and those from the hosts
in ``labelling.image_hosts``.

An image's address is part of an event, so a stranger may have written it. Loading it tells its server who looks at
which event, and when. The name of a file must not lead out of the folder.
"""

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote, urlsplit

from ...settings.labelling import LabellingSettings

FILES = "/api/image"  # where the page finds the files of the folder

_PORTS = {"http": 80, "https": 443}
_KINDS = ("avif", "bmp", "gif", "jpeg", "png", "webp")  # those that browsers show, and that hold no scripts
_LONGEST_NAME = 1000  # characters
_MOST_BYTES = 32 << 20  # of a file


def sources(labelling: LabellingSettings) -> str:
    """The hosts as a Content-Security-Policy names them; the browser then also checks redirections."""
    files = [] if labelling.image_folder is None else ["blob:"]
    return " ".join(["data:", *files, *("http: https:" if host == "*" else host for host in labelling.image_hosts)])


def shown_at(address: str, labelling: LabellingSettings) -> str | None:
    """Where the page loads an image from; None: it must not.

    Parameters
    ----------
    address
        Its address, or the name of a file in the folder, from an event.
    labelling
        The hosts and the folder.
    """
    if may_show(address, labelling.image_hosts):
        return address
    return None if file_of(address, labelling) is None else f"{FILES}?name={quote(address, safe='')}"


def file_of(name: str, labelling: LabellingSettings) -> tuple[Path, str] | None:
    """A file of the folder, and its media type; None: the page must not show it, or there is no such image.

    The name has no part that begins with a dot, and links do not lead out of the folder.
    """
    folder, parts = labelling.image_folder, name.split("/")
    kind = Path(parts[-1]).suffix[1:].lower().replace("jpg", "jpeg")
    is_plain = len(name) <= _LONGEST_NAME and name.isprintable() and "\\" not in name
    if folder is None or kind not in _KINDS or not is_plain or any(not part or part.startswith(".") for part in parts):
        return None
    try:
        path = (folder / name).resolve(strict=True)
        is_right = path.is_relative_to(folder.resolve()) and path.is_file() and path.stat().st_size <= _MOST_BYTES
    except (OSError, ValueError):
        return None
    return (path, f"image/{kind}") if is_right else None


def may_show(address: str, hosts: Iterable[str]) -> bool:
    """Whether the page may load an image.

    Parameters
    ----------
    address
        Its address, from an event.
    hosts
        As in ``labelling.image_hosts``.
    """
    if address[:11].lower() == "data:image/":
        return True
    try:
        parts = urlsplit(address)
        scheme, host, port = parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return False
    if scheme not in _PORTS or not host or parts.username is not None:
        return False
    return any(_is_at(entry, scheme, host, port) for entry in hosts)


def _is_at(entry: str, scheme: str, host: str, port: int | None) -> bool:
    if entry == "*":
        return True
    wanted, _, rest = entry.rpartition("://")
    name, _, number = rest.partition(":")
    if wanted not in ("", scheme) or port != (int(number) if number else _PORTS[scheme]):
        return False
    name = name.lower()
    return host.endswith(name[1:]) if name.startswith("*.") else host == name
