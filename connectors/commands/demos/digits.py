"""The demonstration of labelling, ``streamsvm demo --label``: a person says which digits the handwritten ones are.

The digits are the Optical Recognition of Handwritten Digits data (E. Alpaydin and C. Kaynak, UCI Machine Learning
Repository, 1998, CC BY 4.0, test set): 1797 images of 8 x 8 pixels in 17 shades, 174 to 183 of each digit.
"""

import base64
import json
import struct
import zlib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import numpy as np

from ...logs.transport import Record
from ...records.codec import Codec
from ...report import page
from ...runtime.libraries import LibraryMissing
from ...runtime.process import Stop
from ...runtime.text import plural
from ...settings.loading import load
from ...settings.sections import Settings
from ...trainer.state.state import State
from .. import label
from ..shared.log_access import fill

SIDE, SHADES = 8, 16  # pixels of a side; the shade that is black
ANSWERS = 250  # that the demonstration without a person gives

CONFIG = """\
[log]
dir = "log"
topic = "digits"
labels = "digit-labels"
predictions = "digit-predictions"
dlq = "digit-dlq"
questions = "digit-questions"

[model]
C = 10.0
gamma = 0.1
scaling = "none"  # all pixels have the same scale

[label]
classes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]

[labelling]
port = 0  # any free port
instructions = "**Which digit is this?** If you cannot tell, skip it."

[daemon]
state_dir = "digit-state"
checkpoint_seconds = 1.0
"""


def label_digits(folder: Path, stop: Stop) -> None:
    """Ask for labels on a page until `stop`, and print what the model learned; continue where an earlier call ended.

    Parameters
    ----------
    folder
        For the log, the configuration and the state.
    stop
        Called a few times a second; True ends the demonstration.
    """
    settings = load(prepare(folder), {})
    print(
        "Here are 1797 handwritten digits without labels. The page asks you which digits they are. The model learns "
        "from each answer, and soon asks most about digits that it is unsure of. Ctrl-C ends it.",
        flush=True,
    )
    _answered(settings, label.page(settings, browse=True), stop, "You", folder / "digits.html")


def label_by_itself(folder: Path, stop: Stop) -> None:
    """Answer questions about the digits without a person, by the known truth, and print where the report is.

    Parameters
    ----------
    folder
        For the log, the configuration, the state and the report.
    stop
        Called a few times a second; True ends the demonstration.
    """
    # A third of the questions is random, so that the report can tell early how often the model is right.
    wanted = {"max_labels": ANSWERS, "audit": 0.3}
    settings = load(prepare(folder), {}, [f"labelling.{name}={value}" for name, value in wanted.items()])
    print(f"Labelling: a program answers {ANSWERS} questions about handwritten digits: which one is it?", flush=True)
    known = truth()
    answers = label.oracle(lambda shown: known[str(shown.id)], "program", delay=0.0, noise=0.0, quota=ANSWERS)
    _answered(settings, answers, stop, "It", folder / "report.html")


def _answered(settings: Settings, front_end: label.FrontEnd, stop: Stop, who: str, report: Path) -> None:
    """Let a front end answer, and say what the model has learned."""
    if states := label.answer_questions(settings, front_end, stop, train=True):
        print(summary(states[0], who))
        show_report(settings, report, "of the labelling")


def summary(state: State, who: str = "You") -> str:
    """How well the model knows the digits that have no label."""
    assert state.labelling
    known, codec = truth(), Codec()
    seen = [codec.decode(Record("", 0, 0, 0, None, value, ())) for value in events()]
    rest = [event for event in seen if state.join.awaiting(event.key) is not None]
    said = state.model.predict_many([event.x for event in rest]).tolist()
    n_known = sum(label == known[str(event.id)] for event, label in zip(rest, said, strict=True))
    counts = state.labelling.loop.counts
    return (
        f"{who} gave {plural(counts.n_labels, 'label')} of {plural(len(counts.of_classes), 'digit')}. The model knows "
        f"{n_known} of the {len(rest)} digits without a label, {n_known / max(1, len(rest)):.1%}."
    )


def show_report(settings: Settings, path: Path, what: str) -> None:
    """Write the report about a run, and print how to open it; without matplotlib, print what to install."""
    try:
        page.write_report(settings.daemon.state_dir, path, settings)
    except LibraryMissing as error:
        print(f"report {what}: none ({error})")
    else:
        print(f"report {what}, for your browser: {path.resolve().as_uri()}")


def prepare(folder: Path) -> Path:
    """Write the configuration and the stream into a folder, unless it has them; return the configuration's path."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "digits.toml"
    if not config.exists():
        config.write_text(CONFIG, encoding="utf-8")
    fill(folder / "log", "digits", events())
    return config


def events() -> Iterator[bytes]:
    """The digits in random order, as events without a label; each holds its image."""
    images = np.load(str(files(__package__) / "digits.npz"))["X"]
    for number in np.random.default_rng(4).permutation(len(images)).tolist():
        pixels = images[number].reshape(SIDE, SIDE)
        x = {f"r{row}c{column}": float(shade) / SHADES for (row, column), shade in np.ndenumerate(pixels)}
        yield json.dumps({"id": f"digit-{number}", "x": x, "image": _data_url(pixels)}).encode()


def truth() -> dict[str, int]:
    """Which digit each one is, by id."""
    y = np.load(str(files(__package__) / "digits.npz"))["y"]
    return {f"digit-{number}": int(digit) for number, digit in enumerate(y)}


def _data_url(pixels: np.ndarray) -> str:
    """A picture in PNG (ISO/IEC 15948), 8-bit greyscale, dark strokes on white."""
    shades = (255 - pixels.astype(np.uint16) * 255 // SHADES).astype(np.uint8)
    rows = b"".join(b"\0" + row.tobytes() for row in shades)
    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"
