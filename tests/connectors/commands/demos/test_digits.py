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
    assert (len(events), sum(truth.values())) == (1797, 174)
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
def test_a_few_labels_find_most_of_the_eights(tmp_path):
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
        answer_with(service, somebody, lambda: stop() or len(asked) >= 60, who="somebody")

    states = label.answer_questions(settings, front_end, lambda: False, train=True)
    pattern = (
        r"You gave (\d+) labels, (\d+) of them an 8. Among the digits without a label, the model finds (\d+) of the "
        r"(\d+) that are an 8, and takes (\d+) of the (\d+) others for one."
    )
    numbers = re.fullmatch(pattern, digits.summary(states[0]))
    n_labels, n_eights, n_found, n_left, n_wrong, n_others = map(int, numbers.groups())
    assert 55 <= n_labels <= 60
    assert n_eights + n_left == 174
    assert n_labels + n_left + n_others == 1797
    assert n_found > 0.7 * n_left
    assert n_wrong < 0.1 * n_others
