"""`ConformalClassifier` around models of all kinds."""

import copy
from collections import deque

import numpy as np
import pandas as pd
import pytest
from river import datasets, linear_model

import streamsvm
from streamsvm import LASVM, LASVMG, AutoLASVM, OneVsOne, OneVsRest, SnapshotError
from streamsvm.conformal import ConformalClassifier
from streamsvm.conformal.left_out import left_out_scores

BANANAS = list(datasets.Bananas().take(1500))
SEGMENTS = list(datasets.ImageSegments().take(700))
MODELS = {
    "LASVM": (LASVM, BANANAS[:400]),
    "LASVM-G": (LASVMG, BANANAS[:400]),
    "AutoLASVM": (AutoLASVM, BANANAS[:400]),
    "OneVsRest": (lambda: OneVsRest(LASVM()), SEGMENTS[:250]),
    "OneVsOne": (lambda: OneVsOne(LASVM()), SEGMENTS[:250]),
}


def play(model, stream, late=0, ids=True):
    said, waiting = [], deque()
    for i, (x, y) in enumerate(stream):
        decision = model.decide_one(x)
        said.append(decision)
        waiting.append((x, y, decision, i))
        if len(waiting) > late:
            x, y, decision, i = waiting.popleft()
            given = {"said": decision} if late else {}
            model.learn_one(x, y, **given, **({"id": i} if ids else {}))
    return said


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("late", [0, 60])
def test_stored_and_read_it_goes_on_bit_for_bit(name, late):
    make, stream = MODELS[name]
    whole, half = ConformalClassifier(make(), 0.1), ConformalClassifier(make(), 0.1)
    middle = len(stream) // 2
    play(whole, stream[:middle], late)
    play(half, stream[:middle], late)
    half = ConformalClassifier.from_bytes(half.to_bytes())
    assert half.digest() == whole.digest()
    said = play(whole, stream[middle:], late), play(half, stream[middle:], late)
    assert [each.labels for each in said[0]] == [each.labels for each in said[1]]
    assert half.digest() == whole.digest()
    for model in (whole, half):
        model.forget([middle - 1])
        model.relabel(middle - 2, stream[0][1])
    assert half.digest() == whole.digest()


@pytest.mark.parametrize("name", MODELS)
def test_many_rows_are_a_loop(name):
    make, stream = MODELS[name]
    model, batch = ConformalClassifier(make(), 0.1), ConformalClassifier(make(), 0.1)
    play(model, stream, ids=False)
    xs, ys = [x for x, _ in stream], [y for _, y in stream]
    batch.learn_many(xs, ys)
    assert batch.digest() == model.digest()
    assert model.predict_set_many(xs[:20]) == [model.predict_set_one(x) for x in xs[:20]]
    assert model.predict_many(xs[:20]).tolist() == [model.predict_one(x) for x in xs[:20]]
    frame = pd.DataFrame(xs[:20])
    assert list(model.predict_proba_many(frame).columns) == list(model.predict_proba_one(xs[0]))


def test_a_frame_with_sparse_columns_names_no_zeros():
    X = np.random.default_rng(0).normal(size=(60, 4)) * (np.random.default_rng(1).random((60, 4)) < 0.4)
    frame, y = pd.DataFrame(X, columns=list("abcd")), (X[:, 0] > X[:, 1]).tolist()
    sparse, loop = ConformalClassifier(LASVM()), ConformalClassifier(LASVM())
    sparse.learn_many(frame.astype(pd.SparseDtype(float, 0.0)), y)
    for x, label in zip(frame.to_dict("records"), y, strict=True):
        loop.learn_one({name: value for name, value in x.items() if value}, label)
    assert sparse.digest() == loop.digest()


def test_it_keeps_its_promise_and_decides():
    model = ConformalClassifier(LASVM(), error=0.1)
    said = play(model, BANANAS)
    for tally in model.tallies.values():
        assert tally.wrong <= model.promised(tally.n)
    assert np.mean([each.decided for each in said[500:]]) > 0.8
    wrong = [each.is_wrong(y) for each, (_, y) in zip(said, BANANAS, strict=True)]
    assert sum(wrong) == sum(tally.wrong for tally in model.tallies.values())


def test_a_late_label_gives_the_model_the_margin_of_the_prediction():
    late, plain = ConformalClassifier(LASVM()), LASVM()
    play(late, BANANAS[:200], late=30)
    waiting = deque()
    for i, (x, y) in enumerate(BANANAS[:200]):
        waiting.append((x, y, plain.decision_function_one(x), i))
        if len(waiting) > 30:
            x, y, f, i = waiting.popleft()
            plain.learn_one(x, y, id=i, margin=f)
    assert late.model.digest() == plain.digest()


def test_a_classifier_of_river_can_be_wrapped():
    model = ConformalClassifier(linear_model.LogisticRegression(), error=0.2)
    said = [(model.decide_one(x), model.learn_one(x, y))[0] for x, y in datasets.Phishing()]
    assert np.mean([each.decided for each in said[300:]]) > 0.5
    with pytest.raises(SnapshotError, match="cannot be saved"):
        model.to_bytes()


def test_load_reads_it(tmp_path):
    model = ConformalClassifier(LASVM(), error=0.05)
    play(model, BANANAS[:100])
    model.save(tmp_path / "model.svm")
    again = streamsvm.load(tmp_path / "model.svm")
    assert (type(again), again.error, again.digest()) == (ConformalClassifier, 0.05, model.digest())


def test_bad_arguments_are_refused():
    for error in (0, 0.6, -1, "x", True, np.nan):
        with pytest.raises(ValueError, match="error="):
            ConformalClassifier(LASVM(), error=error)
    with pytest.raises(ValueError, match="audit="):
        ConformalClassifier(LASVM(), audit=0)
    with pytest.raises(TypeError, match="model="):
        ConformalClassifier(3)
    model = ConformalClassifier(LASVM())
    rows = [{"a": 1.0}, {"a": 2.0}]
    with pytest.raises(ValueError, match="y has 1 labels for 2 rows"):
        model.learn_many(rows, [True])
    with pytest.raises(ValueError, match="said has 1 entries for 2 rows"):
        model.learn_many(rows, [True, False], said=[None])
    with pytest.raises(TypeError, match="y=True must be a sequence"):
        model.learn_many(rows, True)
    with pytest.raises(TypeError, match="y is a dict"):
        model.learn_many(rows, {True: 1, False: 2})
    with pytest.raises(ValueError, match=r"X has shape \(2,\)"):
        model.learn_many(np.zeros(2), [True, False])
    before = model.digest()
    with pytest.raises(ValueError, match="feature 'a'"):
        model.learn_one({"a": np.inf}, True)
    assert model.digest() == before


def test_leaving_a_member_out_is_learning_without_it():
    model = LASVMG()  # without a bias: with few examples, several may be as good
    for i, (x, y) in enumerate(BANANAS[:40]):
        model.learn_one(x, y, id=i)
    model.finish()
    found = {False: [], True: []}
    for i in model.leave_out([], [], ids=[])[0].ids.tolist():
        other = copy.deepcopy(model)
        other.forget([i])
        other.finish()
        x, y = BANANAS[i]
        p = model.probability_one(other.decision_function_one(x))
        found[y].append(p if y else 1.0 - p)
    for y, scores in left_out_scores(model).items():
        assert scores == pytest.approx(sorted(found[y]), abs=0.01)


def test_from_few_labels_more_is_decided_by_leave_one_out():
    model, plain = ConformalClassifier(LASVM()), ConformalClassifier(LASVM())
    plain._look_at_few = lambda is_late: None
    n_decided = [sum(said.decided for said in play(each, BANANAS[:60])) for each in (model, plain)]
    assert n_decided[0] > n_decided[1]
    play(model, BANANAS[60:90])
    assert not model._guard.left_out  # each class has scores enough


def test_scores_by_leave_one_out_follow_what_is_forgotten_and_corrected():
    model = ConformalClassifier(LASVM())
    play(model, BANANAS[:40])
    again = ConformalClassifier.from_bytes(model.to_bytes())
    assert again._guard.left_out == model._guard.left_out != {}
    for each in (model, again):
        each.forget([30])
        assert each._guard.left_out == left_out_scores(each.model)
        each.relabel([31], not BANANAS[31][1])
        assert each._guard.left_out == left_out_scores(each.model)
    assert play(again, BANANAS[40:50], ids=False) == play(model, BANANAS[40:50], ids=False)
    assert again.digest() == model.digest()


@pytest.mark.parametrize(
    ("model", "late"), [(LASVM(), 1), (LASVM(window=30), 0), (LASVM(budget=30), 0), (AutoLASVM(), 0)]
)
def test_nothing_is_left_out_of_late_labels_or_of_a_model_that_had_to_drop_some(model, late):
    model = ConformalClassifier(model)
    play(model, BANANAS[:40], late)
    assert not model._guard.left_out


@pytest.mark.parametrize("limit", [{"window": 40}, {"budget": 40}])
def test_members_are_left_out_until_a_window_or_a_budget_is_full(limit):
    model, plain = ConformalClassifier(LASVM(**limit)), ConformalClassifier(LASVM())
    assert play(model, BANANAS[:40]) == play(plain, BANANAS[:40])
    assert model._guard.left_out == plain._guard.left_out != {}
    play(model, BANANAS[40:80])
    assert not model._guard.left_out
    assert all(tally.wrong <= model.promised(tally.n) for tally in model.tallies.values())


def test_what_was_said_is_a_decision_and_not_its_labels():
    model = ConformalClassifier(LASVM())
    with pytest.raises(TypeError, match=r"said=\(False,\) must be what `decide_one` returned"):
        model.learn_one(*BANANAS[0], said=model.predict_set_one(BANANAS[0][0])[:1])
    assert model.model.next_id == 0  # nothing is learned


@pytest.mark.parametrize("name", ["LASVM", "OneVsRest"])
def test_many_late_labels_are_a_loop(name):
    make, stream = MODELS[name]
    model, batch, stream = ConformalClassifier(make()), ConformalClassifier(make()), stream[:120]
    for begin in range(0, len(stream), 40):
        xs, ys = zip(*stream[begin : begin + 40], strict=True)
        saids = model.decide_many(xs)
        for x, y, said in zip(xs, ys, saids, strict=True):
            model.learn_one(x, y, said=said)
        batch.learn_many(xs, ys, said=batch.decide_many(xs))
    assert batch.digest() == model.digest()
    assert [model.decide_one(x) for x, _ in stream[:5]] == [batch.decide_one(x) for x, _ in stream[:5]]


def test_with_several_classes_corrections_move_what_a_label_said():
    model = ConformalClassifier(OneVsRest(LASVM()))
    play(model, SEGMENTS[:150])
    before, (was, new) = model.tallies, (SEGMENTS[140][1], SEGMENTS[141][1])
    assert was != new
    model.relabel([140], [new])
    assert model.tallies[was].n == before[was].n - 1
    assert model.tallies[new].n == before[new].n + 1
    model.relabel(142, "never seen")
    assert model.tallies["never seen"].n == 1
    model.forget([140, 142])
    assert sum(tally.n for tally in model.tallies.values()) == 148
    assert model.tallies["never seen"].n == 0
    play(model, SEGMENTS[150:160])


def test_what_left_the_window_is_still_taken_back_from_the_decisions():
    model = ConformalClassifier(LASVM(window=50))
    play(model, BANANAS[:150])
    before, y = model.tallies, BANANAS[10][1]
    assert model.forget([10]) == 0  # the model has dropped it
    assert model.tallies[y].n == before[y].n - 1
    model.relabel([11], [not BANANAS[11][1]])
    assert sum(tally.n for tally in model.tallies.values()) == 149
    assert all(tally.wrong <= model.promised(tally.n) for tally in model.tallies.values())
