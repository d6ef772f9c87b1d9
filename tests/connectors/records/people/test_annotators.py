"""Agreement and speed of annotators."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from streamsvm.connectors.records.people.annotators import Answer, agreement, annotators, krippendorff, person


def naive_alpha(events: list[list[bool]]) -> float:
    """Krippendorff's alpha from its coincidence matrix."""
    coincidences = np.zeros((2, 2))
    for labels in events:
        for i, one in enumerate(labels):
            for j, other in enumerate(labels):
                if i != j:
                    coincidences[int(one), int(other)] += 1 / (len(labels) - 1)
    per_class = coincidences.sum(axis=1)
    n = per_class.sum()
    expected = 2 * per_class[0] * per_class[1] / (n * (n - 1))
    return 1 - (coincidences[0, 1] + coincidences[1, 0]) / n / expected


def test_two_people_are_measured_by_cohens_kappa():
    rng = np.random.default_rng(3)
    ann, bob = rng.random(200) < 0.3, rng.random(200) < 0.4
    answers = [Answer(i, who, bool(y[i]), i) for i in range(200) for who, y in (("ann", ann), ("bob", bob))]
    found = agreement([*answers, Answer(200, "ann", True, 0)])  # a label of one person says nothing
    assert (found.n_shared, found.measure) == (200, "Cohen's kappa")
    assert found.share == pytest.approx((ann == bob).mean())
    assert found.kappa == pytest.approx(cohen_kappa_score(ann, bob))


def test_more_people_are_measured_by_krippendorffs_alpha():
    rng = np.random.default_rng(4)
    events = [(rng.random(n) < 0.4).tolist() for n in rng.integers(2, 5, 100)]
    answers = [Answer(i, f"p{j}", y, 0) for i, labels in enumerate(events) for j, y in enumerate(labels)]
    found = agreement(answers)
    assert found.measure == "Krippendorff's alpha"
    assert found.kappa == pytest.approx(naive_alpha(events))
    assert krippendorff([[True, True, True], [False, False]]) == 1


def test_kappa_of_a_single_class_and_of_no_shared_event_is_not_defined():
    one_class = [Answer(i, who, False, i) for i in range(9) for who in ("ann", "bob")]
    assert agreement(one_class)[:3] == (9, 1.0, None)
    assert agreement([Answer(1, "ann", True, 0)])[:3] == (0, None, None)
    assert agreement([])[:3] == (0, None, None)
    assert krippendorff([[True, True]]) is None


def test_the_last_answer_of_a_person_counts_in_whichever_tab_it_was_given():
    answers = [
        Answer("q", "page:ann#aaaa", True, 1),
        Answer("q", "page:bob#bbbb", False, 2),
        Answer("q", "page:ann#cccc", False, 3),
    ]
    assert agreement(answers)[:2] == (1, 1.0)
    ann, bob = annotators(answers)
    assert (ann.name, ann.n_labels, ann.n_changed, ann.agreement) == ("ann", 1, 1, 1.0)
    assert (bob.name, bob.n_labels, bob.n_positive) == ("bob", 1, 0)


def test_a_label_taken_back_by_a_skip_is_compared_with_no_other():
    answers = [Answer("q", "ann", True, 1), Answer("q", "bob", False, 2), Answer("q", "bob", None, 3)]
    assert agreement(answers).n_shared == 0
    assert annotators(answers)[1][1:5] == (0, 0, 1, 0)


def test_labels_per_hour_leave_out_pauses_and_count_the_time_of_skips():
    minutes = [0, 1, 2, 60, 61]
    given = [Answer(i, "ann", None if i == 2 else True, 60_000 * at) for i, at in enumerate(minutes)]
    (ann,) = annotators(given)
    assert ann.per_hour == pytest.approx(40)  # two labels and a skip in three minutes
    assert annotators(given[:1])[0].per_hour is None


def test_a_person_is_a_name_and_a_tab_without_a_name_is_a_person():
    assert person("page:ann#f00d") == person("terminal:ann") == "ann"
    assert person("page:#f00d") == "#f00d"
    assert person("page:a#b#f00d") == "a#b"
    assert person("label-studio:3") == "label-studio:3"
    assert person("") == ""
