"""Names come from events, so they may be hostile: they must not break out of the code that is written."""

import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import Compiled, java, run

from streamsvm import LASVM, OneVsOne
from streamsvm.export import to_c, to_java, to_javascript, to_json

EVIL = [
    '"',
    '\\"; int broken = 1; //',
    "*/ broken /*",
    "\\u0022 + broken + \\u0022",
    "\n\r broken",
    "</script><script>broken()",
    "??/",
    "@name@",
    "__proto__",
    "\u2028\u2029\x85\x7f",
    "Ünïcödé 漢字 😀",
    "`${broken}`",
    "%s%n",
    "'\\",
    "",
]


def model_with(features, labels):
    rows = [dict.fromkeys(features, 0.0) | {name: 1.0} for name in features]
    model = OneVsOne(LASVM(gamma=1.0))
    model.learn_many(rows, [labels[i % len(labels)] for i in range(len(rows))])
    return model


@pytest.fixture(scope="module")
def evil():
    return model_with(EVIL, [f"{name}!" for name in EVIL[:3]])


def test_c_has_the_names(evil, tmp_path):
    found = Compiled(to_c(evil), tmp_path, "-trigraphs")
    assert found.texts("model_features", len(EVIL)) == evil.feature_names
    assert found.texts("model_labels", 3) == evil.labels


def test_javascript_has_the_names(evil, tmp_path):
    text = to_javascript(evil)
    rows = [{name: 1.0} for name in EVIL]
    features, labels, (values, _, _) = run(text, rows, tmp_path)
    assert (features, labels) == (evil.feature_names, evil.labels)
    assert "</script" not in text
    expected = evil.decision_function_many(rows)
    assert [list(own) for own in values] == [pytest.approx(own, abs=1e-5) for own in expected]


def test_java_has_the_names(evil, tmp_path):
    (tmp_path / "Model.java").write_text(to_java(evil), encoding="utf-8")
    (tmp_path / "Ask.java").write_text(
        "public class Ask { public static void main(String[] none) {"
        "for (String[] texts : new String[][] {Model.FEATURES, Model.LABELS}) for (String text : texts)"
        "System.out.println(new java.math.BigInteger(1, (1 + text).getBytes(java.nio.charset.StandardCharsets.UTF_8)));"
        "} }"
    )
    java(tmp_path, "javac", "Ask.java", "Model.java")
    numbers = map(int, java(tmp_path, "java", "Ask").split())
    told = [number.to_bytes(-(-number.bit_length() // 8), "big").decode()[1:] for number in numbers]
    assert told == [*evil.feature_names, *evil.labels]


TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=12)


@given(st.lists(TEXTS, min_size=2, max_size=5, unique=True))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_code_around_the_names_is_the_same(names):
    """Without its string literals, the code of any names is that of harmless ones."""
    strange, harmless = model_with(names, names), model_with([f"n{i}" for i in range(len(names))], names)
    assert json.loads(to_json(strange))["labels"] == names
    c_literal = r'"(?:[^"\\\n?]|\\[0-7]{3})*"'
    for write, literal in ((to_c, c_literal), (to_javascript, r'"(?:[^"\\\n]|\\(?:["\\/bfnrt]|u[0-9a-f]{4}))*"')):
        skeletons = {shape(re.sub(literal, '""', write(model))) for model in (strange, harmless)}
        assert len(skeletons) == 1
        assert write(strange).isascii()
    assert to_java(strange).isascii()


def shape(text):
    """A program without its numbers, of which those of strange names may differ in their order."""
    return re.sub(r"-?\d[\d.e+-]*", "0", text)


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_what_no_program_holds_is_refused(name):
    model = LASVM(gamma=1.0)
    model.learn_many([{name: 0.0}, {name: 1.0}], [False, True])
    for write in (to_c, to_java, to_javascript):
        with pytest.raises(ValueError, match="no character"):
            write(model)


def test_names_that_are_one_text_are_refused():
    model = LASVM(gamma=1.0)
    model.learn_many([{1: 0.0, "1": 1.0}, {1: 1.0, "1": 1.0}], [False, True])
    with pytest.raises(ValueError, match="1 and '1' are one text in other programs"):
        to_json(model)
