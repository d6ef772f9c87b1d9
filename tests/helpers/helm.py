"""Renders the chart as Helm would: only what its templates use of Helm's language."""

import hashlib
import json
import re

import yaml

TOKEN = re.compile(r"(?P<before>\s*)\{\{(?P<left>-?)\s*(?P<action>.*?)\s*(?P<right>-?)\}\}(?P<after>\s*)", re.DOTALL)


class Chart:
    """A chart's templates, with values.

    Parameters
    ----------
    folder
        Of the chart.
    values
        Instead of those of values.yaml, by dotted name.
    """

    def __init__(self, folder, **values):
        self.values = yaml.safe_load((folder / "values.yaml").read_text())
        for name, value in values.items():
            *path, last = name.split("__")
            place = self.values
            for key in path:
                place = place[key]
            place[last] = value
        chart = yaml.safe_load((folder / "Chart.yaml").read_text())
        self._objects = {
            "Values": self.values,
            "Chart": {"AppVersion": chart["appVersion"]},
            "Release": {"Name": "fraud", "Service": "Helm"},
        }
        self._texts = {path.stem: path.read_text() for path in folder.glob("templates/*.yaml")}
        self._defined = {}
        for path in folder.glob("templates/*.tpl"):
            blocks = re.split(r'\{\{- define "([^"]+)" -\}\}\n', path.read_text())
            self._defined |= {
                name: text.rstrip().removesuffix("{{- end }}").rstrip()
                for name, text in zip(blocks[1::2], blocks[2::2], strict=True)
            }

    def render(self, name):
        """An object of Kubernetes; None if the values leave it out."""
        return yaml.safe_load(self._filled(self._texts[name]))

    def _filled(self, text):
        """Text with all actions done; a dash takes away the white space on its side."""
        out, shown, at = [], [True], 0
        for found in TOKEN.finditer(text):
            before = "" if found["left"] else found["before"]
            if all(shown):
                out += [text[at : found.start()], before]
            at = found.end()
            words = found["action"].split()
            if words[0] == "if":
                shown.append(bool(self._value(words[1])))
            elif words[0] == "else":
                shown[-1] = not shown[-1]
            elif words[0] == "end":
                shown.pop()
            elif all(shown):
                out.append(self._evaluated(found["action"]))
            if all(shown) and not found["right"]:
                at -= len(found["after"])
        return "".join([*out, text[at:]])

    def _evaluated(self, action):
        first, *filters = (part.split() for part in action.split("|"))
        if first[0] == "include":
            value = self._filled(self._defined[first[1].strip('"')])
        elif first[0] == "toYaml":
            value = yaml.safe_dump(self._value(first[1])).rstrip()
        else:
            value = self._value(first[0])
        for name, *arguments in filters:
            value = FILTERS[name](value, *arguments)
        return str(value)

    def _value(self, name):
        value = self._objects
        for key in name.removeprefix(".").split("."):
            value = value[key]
        return value


def nindent(text, n):
    return "\n" + "\n".join(" " * int(n) + line if line else "" for line in str(text).split("\n"))


FILTERS = {
    "nindent": nindent,
    "quote": json.dumps,
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
}
