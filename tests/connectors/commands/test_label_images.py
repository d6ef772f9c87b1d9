"""`streamsvm label FOLDER`: a whole labelling job of a folder of images, from one command."""

import base64
import io
import re

import numpy as np
import pytest
from logged import read_json

from streamsvm.connectors.commands import label_images
from streamsvm.connectors.commands.label import answer_questions, oracle
from streamsvm.connectors.labelling.web.images import file_of
from streamsvm.connectors.runtime.folders import FileError
from streamsvm.connectors.settings.loading import load

from .test_label_table import arguments

Image = pytest.importorskip("PIL.Image")


pytestmark = pytest.mark.usefixtures("haste")


def draw(path, size=(40, 30), bright=(0, 0, 0, 0), mode="RGB"):
    """A noisy grey image with a bright part."""
    rng = np.random.default_rng(len(str(path)))
    pixels = rng.integers(60, 120, size[::-1], dtype=np.uint8)
    left, top, right, bottom = bright
    pixels[top:bottom, left:right] = 250
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).convert(mode).save(path)


def test_images_are_features_and_shown(tmp_path):
    draw(tmp_path / "shots" / "b.png", bright=(0, 0, 20, 30))
    draw(tmp_path / "shots" / "sub" / "a.JPG", size=(1000, 500))
    draw(tmp_path / "shots" / "c.gif", mode="P")
    (tmp_path / "shots" / "damaged.png").write_bytes(b"no image")
    (tmp_path / "shots" / "notes.txt").write_text("no image either")
    config = label_images.prepare(arguments(tmp_path / "shots"))
    assert config == tmp_path / "shots-labels" / "app.toml"
    events = read_json(tmp_path / "shots-labels" / "log", "records")
    assert [event["id"] for event in events] == ["b.png", "c.gif", "sub/a.JPG"]
    grey = np.array(events[0]["x"]).reshape(16, 16)
    assert grey[:, :8].min() > 0.9
    assert grey[:, 8:].max() < 0.6
    labelling = load(config, {}).labelling
    for event, size in zip(events, [(40, 30), (40, 30), (384, 192)], strict=True):
        path, media = file_of(event["image"], labelling)
        with Image.open(path) as shown:
            assert (shown.size, f"image/{shown.format.lower()}") == (size, media)
    draw(tmp_path / "shots" / "a.png")
    label_images.prepare(arguments(tmp_path / "shots"))  # the new one is added
    events = read_json(tmp_path / "shots-labels" / "log", "records")
    assert [event["id"] for event in events] == ["b.png", "c.gif", "sub/a.JPG", "a.png"]


def test_a_job_whose_events_hold_the_images_goes_on_so(tmp_path):
    draw(tmp_path / "shots" / "a.png")
    config = label_images.prepare(arguments(tmp_path / "shots"))
    config.write_text(re.sub("image_folder = .*\n", "", config.read_text()))
    draw(tmp_path / "shots" / "b.png")
    label_images.prepare(arguments(tmp_path / "shots"))
    event = read_json(tmp_path / "shots-labels" / "log", "records")[1]
    with Image.open(io.BytesIO(base64.b64decode(event["image"].removeprefix("data:image/png;base64,")))) as shown:
        assert shown.size == (40, 30)


def test_a_folder_without_images_is_refused(tmp_path, call):
    code, _, (err,) = call("label", tmp_path)
    assert (code, "has no image: the names of images end with .bmp, .gif" in err) == (1, True)
    (tmp_path / "a.png").write_bytes(b"no image")
    with pytest.raises(FileError, match="none of its 1 image can be read"):
        label_images.prepare(arguments(tmp_path))
    code, _, (err,) = call("label", tmp_path, "--text", "body")
    assert (code, "--text goes with a table in the place of" in err) == (2, True)


@pytest.mark.long
def test_the_model_finds_most_positives(tmp_path):
    rng = np.random.default_rng(0)
    for i in range(300):
        x, y = rng.integers(0, 20, 2).tolist()
        draw(tmp_path / "shots" / f"{i}.png", bright=(x, y, x + 16, y + 6) if i % 15 == 7 else (x, y, x + 8, y + 9))
    config = label_images.prepare(arguments(tmp_path / "shots"))
    found = []

    def truth(shown):
        found.append(int(shown.event["file"].partition(".")[0]) % 15 == 7)
        return found[-1]

    answers = oracle(truth, "program", delay=0.0, noise=0.0, quota=100)
    answer_questions(load(config, {}, ["labelling.max_labels=100"]), answers, lambda: False, train=True)
    assert (len(found), sum(found) >= 14) == (100, True)
