"""A project's labelling interface: which of its choices means which class."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

from ...records.classes import ClassLabel
from ...records.formats.base import BadRecord
from ...settings.sections import LabelSettings
from ..oracles import read_label

MODEL = "streamsvm"  # version of the model, as Label Studio shows it

_EXAMPLE = """<View><Table name="record" value="$x"/>
<Choices name="label" toName="record" required="true">{}</Choices></View>"""

_WORDS = {"positive": True, "yes": True, "negative": False, "no": False}


def example(names: Sequence[str]) -> str:
    """A labelling interface with choices of these names."""
    return _EXAMPLE.format("".join(f"<Choice value={quoteattr(name)}/>" for name in names))


class ClassScore(NamedTuple):
    """The predicted one of more than two classes, and its probability; either may be anything, as a task has it."""

    label: Any
    score: Any


class Interface(NamedTuple):
    """The Choices tag in which annotators choose the label."""

    name: str  # of the tag
    target: str  # name of the tag that is labelled
    meanings: dict[str, ClassLabel]  # by the choice's text

    @classmethod
    def read(cls, config: str, labels: LabelSettings) -> "Interface | None":
        """The first Choices tag that has both labels, or all listed classes; None if there is none."""
        try:
            root = ElementTree.fromstring(config)  # noqa: S314 - expat limits the growth of entities
        except (ElementTree.ParseError, ValueError):
            return None
        for tag in root.iter("Choices"):
            texts = [choice.get("alias") or choice.get("value") or "" for choice in tag.iter("Choice")]
            meanings = {text: y for text in texts if (y := _meaning(text, labels)) is not None}
            wanted = {True, False} if labels.vocabulary is None else set(labels.vocabulary.listed)
            if len(meanings) > 1 and wanted <= set(meanings.values()):
                return cls(tag.get("name") or "", tag.get("toName") or "", meanings)
        return None

    def label_of(self, result: Any) -> ClassLabel | None:
        """The label in the result of an annotation; None if there is no label, or more than one."""
        labels = {
            self.meanings.get(choice)
            for item in result or []
            if item.get("from_name") == self.name
            for choice in item.get("value", {}).get("choices", [])
        }
        return labels.pop() if len(labels) == 1 else None

    def prediction(self, said: Any, version: str) -> dict[str, Any]:
        """A prediction as Label Studio takes it; without a result if `said` has no probability, or no known class."""
        score = said.score if isinstance(said, ClassScore) else said
        if not isinstance(score, int | float) or not 0 <= score <= 1:
            return no_prediction(version)
        label = said.label if isinstance(said, ClassScore) else score > 0.5
        choice = next((text for text, y in self.meanings.items() if type(y) is type(label) and y == label), None)
        if choice is None:
            return no_prediction(version)
        value = {"choices": [choice]}
        result = {"from_name": self.name, "to_name": self.target, "type": "choices", "value": value}
        sure = score if isinstance(said, ClassScore) else max(score, 1 - score)
        return {"result": [result], "score": sure, "model_version": version}


def no_prediction(version: str) -> dict[str, Any]:
    """The prediction of a task that cannot be predicted."""
    return {"result": [], "score": 0.0, "model_version": version}


def _meaning(text: str, labels: LabelSettings) -> ClassLabel | None:
    if labels.vocabulary is not None:
        try:
            return labels.vocabulary.read(text)
        except BadRecord:
            return None
    known = read_label(text, labels)
    return _WORDS.get(text.strip().lower()) if known is None else known
