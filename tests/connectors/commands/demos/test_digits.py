"""The digits of ``streamsvm demo --label``, with somebody who knows them in the place of the page."""

import base64
import json
import re
import zlib

import pytest

from streamsvm.connectors.commands import label
from streamsvm.connectors.commands.demos import digits
from streamsvm.connectors.labelling.oracles import answer_with
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.settings.loading import load


@pytest.mark.long
def test_an_event_is_a_digit_and_its_picture():
    events = [json.loads(value) for value in digits.events()]
    truth = digits.truth()
    assert {event["id"] for event in events} == truth.keys()
    assert (len(events), sorted(set(truth.values()))) == (1797, list(range(10)))
    for event in events[:20]:
        kind, data = event["image"].split(",")
        png = base64.b64decode(data)
        assert kind == "data:image/png;base64"
        start = png.index(b"IDAT") + 4
        rows = zlib.decompress(png[start : png.index(b"IEND") - 8])
        assert len(rows) == 8 * 9
        shades = [255 - int(16 * x) * 255 // 16 for x in event["x"].values()]
        assert [rows[9 * row + 1 + column] for row in range(8) for column in range(8)] == shades


@pytest.mark.long
def test_a_few_labels_tell_most_of_the_digits(tmp_path):
    settings = load(digits.prepare(tmp_path), {})
    digits.prepare(tmp_path)  # again, as by a second call
    with LocalLog(settings.log.dir) as log:
        assert log.end_offsets("digits") == {0: 1797}
    truth, asked = digits.truth(), []

    def somebody(shown):
        asked.append(shown.id)
        assert shown.event["image"].startswith("data:")
        return truth[shown.id]

    def front_end(service, stop):
        answer_with(service, somebody, lambda: stop() or len(asked) >= 100, who="somebody")

    states = label.answer_questions(settings, front_end, lambda: False, train=True)
    pattern = r"You gave (\d+) labels of 10 digits. The model knows (\d+) of the (\d+) digits without a label, [\d.]+%."
    n_labels, n_known, n_left = map(int, re.fullmatch(pattern, digits.summary(states[0])).groups())
    assert 90 <= n_labels <= 100
    assert n_labels + n_left == 1797
    assert n_known > 0.8 * n_left
