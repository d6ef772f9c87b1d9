"""A labelling job of a folder of images, ``streamsvm label FOLDER``: a folder beside it holds all of it.

An event has a small grey copy of the image as its features.  A larger copy for people lies in the folder of the job,
so that the trainer need not hold it.
"""

import argparse
import base64
import hashlib
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..logs.embedded import LocalLog
from ..logs.reading import read_all
from ..runtime.folders import FileError
from ..runtime.libraries import needing
from ..runtime.text import plural
from ..settings.sections import Settings
from .label_table import TOPIC, open_job, tell

logger = logging.getLogger(__name__)

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
SIDE = 16  # pixels of the grey copy, which are the features

_FOLDER = "images"  # of the copies for people, in the folder of the job
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
    with needing("a folder of images needs Pillow", "images"):
        import PIL.Image  # noqa: F401 - `copies` needs it
    config, settings = open_job(folder, folder.name, arguments.set, given=(f"labelling.image_folder={_FOLDER}",))
    with LocalLog(settings.log.dir) as log:
        known = {json.loads(record.value or b"{}").get("id") for record in read_all(log, TOPIC)}
        new = [path for path in images if path.relative_to(folder).as_posix() not in known]
        n = len(known)
        for event in _events(folder, new, _kept_in(config, settings)):
            log.produce(TOPIC, json.dumps(event).encode())
            n += 1
        log.flush()
    if not n:
        raise FileError(f"{folder}: none of its {plural(len(images), 'image')} can be read")
    tell(plural(n, "image"), folder, config)
    return config


def _kept_in(config: Path, settings: Settings) -> Path | None:
    """The folder of the copies for people; None: an older job has them in its events."""
    own = config.parent / _FOLDER
    if settings.labelling.image_folder != own:
        return None
    own.mkdir(exist_ok=True)
    return own


def _events(folder: Path, images: list[Path], kept_in: Path | None) -> Iterator[dict[str, Any]]:
    damaged = []
    for path in images:
        name = path.relative_to(folder).as_posix()
        try:
            grey, copy, kind = copies(path)
        except FileError as error:
            damaged.append(f"{name}: {error}")
            continue
        if kept_in is None:
            address = f"data:image/{kind};base64,{base64.b64encode(copy).decode()}"
        else:
            address = f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.{kind}"
            (kept_in / address).write_bytes(copy)
        yield {"id": name, "x": grey, "image": address, "file": name}
    if damaged:
        logger.warning("%s left out, which cannot be read; the first: %s", plural(len(damaged), "image"), damaged[0])


def copies(path: Path) -> tuple[list[float], bytes, str]:
    """An image as features, and a copy for people.

    Returns
    -------
    list of float
        The grey values of 16 x 16 pixels from 0 to 1, row by row: the image is stretched to a square.
    bytes
        A copy of at most 384 x 384 pixels.
    str
        Its kind: "png", without loss, of a small image, else "jpeg".

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
    kind = "png" if max(image.size) < 64 else "jpeg"
    content = io.BytesIO()
    image.thumbnail((_SHOWN, _SHOWN))
    image.save(content, kind, quality=_QUALITY)
    return [round(value / 255, 3) for value in grey.tobytes()], content.getvalue(), kind
