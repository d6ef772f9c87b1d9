"""The model of docs/live.md, and the records that the page scores."""

import json
from pathlib import Path

from river import datasets

from streamsvm import LASVM
from streamsvm.conformal import ConformalClassifier
from streamsvm.export import to_javascript

N_LEARNED = 4300


def demo() -> str:
    """The page's canvas, and its script: the exported model, the records, and what draws them."""
    model = ConformalClassifier(LASVM(), error=0.05)
    stream = [(list(x.values()), y) for x, y in datasets.Bananas()]
    for x, y in stream[:N_LEARNED]:
        model.learn_one({"a": x[0], "b": x[1]}, y)
    records = [[*(round(value, 3) for value in x), int(y)] for x, y in stream[N_LEARNED:]]
    module = to_javascript(model).replace("\nexport ", "\n")
    code = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
    return (
        '<div id="live"><canvas width="600" height="600" style="max-width: 100%"></canvas><p></p></div>\n'
        f'<script type="module">\n{module}\nconst records = {json.dumps(records)};\n{code}</script>'
    )
