"""Which images the page may load: those inside the event, and those from the hosts in ``labelling.image_hosts``.

An image's address is part of an event, so a stranger may have written it. Loading it tells its server who looks at
which event, and when.
"""

from collections.abc import Iterable
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}


def sources(hosts: Iterable[str]) -> str:
    """The hosts as a Content-Security-Policy names them; the browser then also checks redirections."""
    return " ".join(["data:", *("http: https:" if host == "*" else host for host in hosts)])


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
