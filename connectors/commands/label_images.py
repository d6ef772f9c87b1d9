"""A labelling job of a folder of images, ``streamsvm label FOLDER``: a folder beside it holds all of it.

An event has a small grey copy of the image as its features, and a larger copy inside it for people.
"""

import argparse
import base64
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..logs.embedded import LocalLog
from ..logs.reading import read_all
from ..runtime.folders import FileError
from ..runtime.libraries import LibraryMissing
from ..runtime.text import plural
from .label_table import TOPIC, open_job, tell

logger = logging.getLogger(__name__)

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
SIDE = 16  # pixels of the grey copy, which are the features

_SHOWN = 384  # pixels of the copy for people, at most
_QUALITY = 80  # of its JPEG: about 20 kB


def prepare(arguments: argparse.Namespace) -> Path:
    """Make the folder of the job, or go on with the one that is there; return its configuration.

    Images that came since an earlier call are added.

    Raises
    ------
    LibraryMissing
        If Pillow is not installed.
    FileError, OSError
        If the folder has no image that can be read.
    """
    folder: Path = arguments.config.resolve()
    images = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    if not images:
        raise FileError(f"{folder} has no image: the names of images end with {', '.join(SUFFIXES)}")
    _require_pillow()
    config, settings = open_job(folder, folder.name, arguments.set)
    with LocalLog(settings.log.dir) as log:
        known = {json.loads(record.value or b"{}").get("id") for record in read_all(log, TOPIC)}
        new = [path for path in images if path.relative_to(folder).as_posix() not in known]
        n = len(known)
        for event in _events(folder, new):
            log.produce(TOPIC, json.dumps(event).encode())
            n += 1
        log.flush()
    if not n:
        raise FileError(f"{folder}: none of its {plural(len(images), 'image')} can be read")
    tell(plural(n, "image"), folder, config)
    return config


def _require_pillow() -> None:
    try:
        import PIL.Image  # noqa: F401 - only a folder of images needs it
    except ImportError:
        raise LibraryMissing("a folder of images needs Pillow", "images") from None


def _events(folder: Path, images: list[Path]) -> Iterator[dict[str, Any]]:
    damaged = []
    for path in images:
        name = path.relative_to(folder).as_posix()
        try:
            grey, address = copies(path)
        except FileError as error:
            damaged.append(f"{name}: {error}")
            continue
        yield {"id": name, "x": grey, "image": address, "file": name}
    if damaged:
        logger.warning("%s left out, which cannot be read; the first: %s", plural(len(damaged), "image"), damaged[0])


def copies(path: Path) -> tuple[list[float], str]:
    """An image as features, and as an address that holds it.

    Returns
    -------
    list of float
        The grey values of 16 x 16 pixels from 0 to 1, row by row: the image is stretched to a square.
    str
        A ``data:`` address of a copy of at most 384 x 384 pixels.

    Raises
    ------
    FileError
        If the file is no image that Pillow reads.
    """
    from PIL import Image, ImageOps

    try:
        with Image.open(path) as opened:
            image = ImageOps.exif_transpose(opened).convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise FileError(str(error)) from None
    grey = image.convert("L").resize((SIDE, SIDE), Image.Resampling.BOX)
    return [round(value / 255, 3) for value in grey.tobytes()], _address(image)


def _address(image: Any) -> str:
    """An image of Pillow as part of an event; a small one without loss."""
    content = io.BytesIO()
    is_small = max(image.size) < 64
    image.thumbnail((_SHOWN, _SHOWN))
    image.save(content, "PNG" if is_small else "JPEG", quality=_QUALITY)
    return f"data:image/{'png' if is_small else 'jpeg'};base64,{base64.b64encode(content.getvalue()).decode()}"
