"""The page's own files, and the policy under which a browser shows them."""

import importlib.resources

from ...settings.labelling import LabellingSettings
from .images import sources

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
}


def page_files() -> dict[str, tuple[bytes, str]]:
    """The contents and the types of the files in static/, by their paths on the server."""
    folder = importlib.resources.files(__package__).joinpath("static")
    files = {
        f"/{file.name}": (file.read_bytes(), _TYPES[ending])
        for file in folder.iterdir()
        if (ending := file.name.rpartition(".")[2]) in _TYPES
    }
    return {"/": files.pop("/page.html"), **files}


def policy(labelling: LabellingSettings) -> str:
    """A Content-Security-Policy: the page runs only its own scripts, and loads only images from elsewhere."""
    rules = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": sources(labelling),
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())
