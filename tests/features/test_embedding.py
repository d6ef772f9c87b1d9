"""Embedders of texts: their columns, what is refused, and that a snapshot goes on with the same one only."""

import copy
import importlib.util
import math
import pickle
import sys
import types

import numpy as np
import pytest

from streamsvm import LASVM, SnapshotError, StreamWarning, load
from streamsvm.core.saving import snapshot
from streamsvm.core.scaling.state import CLIP
from streamsvm.features import Records
from streamsvm.features.embedding import named
from streamsvm.features.field import JUDGED, LONGEST_TEXT
from tests.helpers.river_checks import hold

NOTES = ["a red apple", "some green pear", None, "xyz", "the blue sky of July"]


class Vowels:
    """Counts vowels."""

    name, size = "vowels 1", 5

    def embed_one(self, text):
        return [text.lower().count(vowel) for vowel in "aeiou"]


class Picky(Vowels):
    """Refuses some texts, each in another way."""

    def embed_one(self, text):
        if text == "odd":
            return [1.0, math.nan, 0.0, 0.0, 0.0]
        return [1.0] if text == "short" else [1.0] * 5 if text != "bad" else 1 // 0


@pytest.fixture
def module(monkeypatch):
    """A module of the user, which has been imported."""
    own = types.ModuleType("of_a_user")
    own.Vowels, own.two = Vowels, type("Two", (Vowels,), {"name": "two"})()
    monkeypatch.setitem(sys.modules, "of_a_user", own)
    named.cache_clear()
    return own


def after(rows, **parameters):
    records = Records(**parameters)
    for x in rows:
        records.learn_one(x)
    return records


def rows(n=60):
    return [{"note": NOTES[t % len(NOTES)], "n": float(t)} for t in range(n)]


def columns(x):
    return [x.get(f"~note:{j}", 0.0) for j in range(5)]


def test_the_numbers_of_the_embedder_join_the_columns_of_the_text_and_have_a_norm():
    plain, records = after(rows(), kinds={"note": "text"}), after(rows(), embed={"note": Vowels()})
    for x in rows(5):
        found, before = records.transform_one(x), plain.transform_one(x)
        assert before.items() <= found.items()
        counts = np.array(Vowels().embed_one(x["note"] or ""), float)
        wanted = counts * CLIP / (np.linalg.norm(counts) or 1.0)
        np.testing.assert_allclose(columns(found), wanted, rtol=1e-14)
        assert len(found) == len(before) + 5 * bool(counts.any())  # a text without a vowel has no column
    assert str(records.summary()).count("given, embedded by vowels 1") == 1


def test_a_field_of_any_texts_is_a_text_if_it_has_an_embedder():
    records = after([{"note": "apple"}] * 2, embed={"note": Vowels()})
    assert records.summary()[0].kind == "text"
    assert after([], kinds={"note": "text"}, embed={"note": Vowels()}).n_fields == 0


def test_an_embedder_is_asked_once_for_a_text_that_is_predicted_and_learned():
    class Counting(Vowels):
        asked = ()

        def embed_one(self, text):
            Counting.asked += (text,)
            return super().embed_one(text)

    model = Records(embed={"note": Counting()}) | LASVM()
    long = "e" * (2 * LONGEST_TEXT)
    for text in "one apple", long:
        model.predict_one({"note": text})
        model.learn_one({"note": text}, True)
    assert Counting.asked == ("one apple", long[:LONGEST_TEXT])


def test_a_meaning_is_learned_from_words_that_were_never_seen():
    """Words of one meaning have one embedding; no word comes twice."""

    class Meanings:
        name, size = "meanings", 2

        def embed_one(self, text):
            return [text.count("q"), text.count("z")]

    rng, hits = np.random.default_rng(0), {True: [], False: []}
    for is_embedded, own in hits.items():
        model = Records({"note": "text"}, embed={"note": Meanings()} if is_embedded else None) | LASVM()
        for t in range(60):
            word = "".join(rng.permutation(list("abcdefghi")))
            y = bool(t % 2)
            x = {"note": f"{word}{'q' if y else 'z'}{word[::-1]}"}
            own.append(model.predict_one(x) == y)
            model.learn_one(x, y)
    assert np.mean(hits[True][10:]) == 1.0
    assert np.mean(hits[False][10:]) < 0.9


@pytest.mark.parametrize("text", ["odd", "short", "bad"])
def test_a_text_that_the_embedder_cannot_take_counts_as_missing_with_a_warning(text):
    records = Records(embed={"note": Picky()}, indicators=True)
    records.learn_one({"note": "good"})
    with pytest.warns(StreamWarning, match=f"embedder 'vowels 1' cannot take '{text}' of field 'note': it (must|rais)"):
        records.learn_many([{"note": text}] * 3)
    assert records.summary()[0][2:5] == (1, 0, 3)
    assert records.transform_one({"note": text}) == records.transform_one({}) != records.transform_one({"note": "x"})


def test_what_is_no_text_is_named_as_such():
    records = after([{"note": "good"}], embed={"note": Picky()})
    with pytest.warns(StreamWarning, match="field 'note' is a text as given, and 5 cannot be read as one"):
        records.learn_one({"note": 5})


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:kinds or embed names 'x'")
def test_every_check_of_river_passes(module):
    hold(Records(embed={"x": "of_a_user:Vowels"}), 26)


# ------------------------------------------------------------------------------------------------------------ snapshots


@pytest.mark.parametrize("kinds", [None, {"note": "text"}, {"n": "number", "note": "text"}, {}])
def test_a_snapshot_of_any_moment_goes_on_bit_for_bit(tmp_path, module, kinds):
    given = {"embed": {"note": "of_a_user:Vowels"}, "kinds": kinds}
    records, other = Records(**given), after(rows(), **given)
    for t, x in enumerate(rows()):
        if t in (0, 1, 20, 51):
            records = Records.from_bytes(records.to_bytes())
        records.learn_one(x)
    assert records.digest() == other.digest()
    records.save(tmp_path / "records")
    for again in (Records.load(tmp_path / "records"), load(tmp_path / "records"), pickle.loads(pickle.dumps(records))):  # noqa: S301 - our own
        assert again.to_bytes() == records.to_bytes()
        assert [again.transform_one(x) for x in rows(5)] == [other.transform_one(x) for x in rows(5)]


def test_an_object_is_given_again(tmp_path):
    records = after(rows(), embed={"note": Vowels()})
    records.save(tmp_path / "records")
    with pytest.raises(SnapshotError, match=r"needs an embedder of yours, 'vowels 1': give it, as in Records.load\("):
        Records.load(tmp_path / "records")
    again = Records.load(tmp_path / "records", embed={"note": Vowels()})
    assert again.digest() == records.digest()
    assert again.transform_one(rows()[0]) == records.transform_one(rows()[0])


def test_another_embedder_is_refused(module):
    data = after(rows(), embed={"note": "of_a_user:Vowels"}).to_bytes()
    with pytest.raises(SnapshotError, match=r"by 'vowels 1' \(5 numbers\), and this embedder is 'two' \(5 numbers\)"):
        Records.from_bytes(data, embed={"note": "of_a_user:two"})
    other = Vowels()
    other.size = 4
    with pytest.raises(SnapshotError, match=r"this embedder is 'vowels 1' \(4 numbers\)"):
        Records.from_bytes(data, embed={"note": other})
    for data_of in (data, Records().to_bytes(), Records({"note": "text"}).to_bytes()):
        with pytest.raises(SnapshotError, match=r"were given|no embedders"):
            Records.from_bytes(data_of, embed={"note": Vowels(), "body": Vowels()})


def test_a_snapshot_imports_nothing(tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text("class MADE:\n    name, size, embed_one = 'made', 1, len\n")
    monkeypatch.syspath_prepend(tmp_path)
    data = Records(embed={"note": "only_here:MADE"}).to_bytes()
    monkeypatch.delitem(sys.modules, "only_here")
    with pytest.raises(SnapshotError, match="needs 'only_here:MADE', whose module is not imported: import it first"):
        Records.from_bytes(data)
    assert "only_here" not in sys.modules
    assert Records.from_bytes(data, embed={"note": "only_here:MADE"}).embed == {"note": "only_here:MADE"}


@pytest.mark.parametrize("own", [[], [None, "a"], ["of_a_user:two", "two", True], [5, "two", 5], ["sys:exit", "a", 1]])
def test_damaged_snapshots_are_refused(module, own):
    meta, arrays = snapshot.unpack(Records().to_bytes(), "Records")
    data = snapshot.pack("Records", meta | {"kinds": [["note", own]]}, arrays)
    with pytest.raises(SnapshotError):
        Records.from_bytes(data)


def test_copies_share_what_is_named(module):
    records = after(rows(), embed={"note": "of_a_user:two"})
    for other in (copy.copy(records), copy.deepcopy(records), records.clone()):
        assert other._embeddings["note"].embedder is module.two
    assert copy.copy(records).digest() == records.digest()


def test_records_without_embedders_are_stored_as_before():
    assert b"embed" not in after(rows(), kinds={"n": "number"}).to_bytes()


@pytest.mark.parametrize(
    ("embed", "error", "match"),
    [
        (["note"], TypeError, "embed=.'note'. must be a dict"),
        ({"note": 3}, TypeError, "embed.'note'.=3 is no embedder: it must be 'wordllama', 'package.module:NAME'"),
        ({"note": object()}, TypeError, "no embedder"),
        ({"note": type("Large", (Vowels,), {"size": 5000})()}, TypeError, "an int of 1 to 4096.* its size 5000"),
        ({"note": "math:pi"}, TypeError, "embed.'note'.='math:pi' is no embedder"),
        ({"note": "math:no"}, ValueError, "the embedder 'math:no' cannot be made: AttributeError"),
        ({"note": "wordlama"}, TypeError, "embed.'note'.='wordlama' is no embedder: it must be 'wordllama', "),
        ({"note": "no_such_module"}, TypeError, "no embedder"),
        ({"note": ""}, TypeError, "no embedder"),
        ({"note": "no_such_module:it"}, ImportError, "no_such_module"),
    ],
)
def test_what_is_no_embedder_is_named(embed, error, match):
    with pytest.raises(error, match=match):
        Records(embed=embed)


def test_an_embedder_takes_a_text():
    with pytest.raises(ValueError, match="embed names 'note', which is a number in kinds"):
        Records({"note": "number"}, embed={"note": Vowels()})
    with pytest.warns(StreamWarning, match="kinds or embed names 'Note', which the first"):
        after([{"n": 1.0}] * JUDGED, embed={"Note": Vowels()})


# ------------------------------------------------------------------------------------------------------------ wordllama


def test_wordllama_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    named.cache_clear()
    with pytest.raises(ImportError, match=r"pip install 'streamsvm\[embed\]'"):
        Records(embed={"note": "wordllama"})


def test_wordllama_knows_meanings_and_uses_no_network(monkeypatch):
    pytest.importorskip("tokenizers")
    if importlib.util.find_spec("wordllama") is None:
        pytest.skip("it needs wordllama")
    monkeypatch.setattr("socket.socket.connect", None)
    records = Records(embed={"note": "wordllama"})
    records.learn_one({"note": "car"})

    def near(a, b):
        one, other = ([x[f"~note:{j}"] for j in range(256)] for x in map(records.transform_one, (a, b)))
        return float(np.dot(one, other))

    assert near({"note": "my car is broken"}, {"note": "the automobile needs a repair"}) > 2 * near(
        {"note": "my car is broken"}, {"note": "strawberry cake with cream"}
    )
    assert near({"note": "half a \ud800 pair"}, {"note": "half a \ud800 pair"}) == pytest.approx(CLIP**2)
    assert Records.from_bytes(records.to_bytes()).digest() == records.digest()
