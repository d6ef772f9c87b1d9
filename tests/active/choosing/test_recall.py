"""Bounds on the missed positives: by their definition, and by how often they hold."""

import numpy as np
import pytest
from scipy.stats import hypergeom

from streamsvm.active import RecallProof, answers_for_recall, missed_after_audit, missed_at_most


@pytest.mark.parametrize(("n", "drawn", "found"), [(2700, 120, 2), (300, 60, 0), (50, 20, 5), (40, 40, 3), (9, 0, 0)])
def test_the_bound_is_the_largest_number_that_is_not_improbable(n, drawn, found):
    most = missed_after_audit(n, drawn, found) + found
    assert hypergeom.cdf(found, n, most, drawn) > 0.05
    assert most == n - drawn + found or hypergeom.cdf(found, n, most + 1, drawn) <= 0.05


def test_nothing_found_cannot_mean_less_than_about_three_in_as_many_as_were_drawn():
    for n, drawn in ((2700, 30), (2700, 120), (600, 120)):
        assert 0.75 * 3 * n / drawn < missed_after_audit(n, drawn, 0) + 1 < 3 * n / drawn
    assert missed_after_audit(600, 300, 2) < 0.75 * missed_at_most(600, 300, 2)


@pytest.mark.parametrize("positives", [0, 3, 20, 90, 300])
def test_it_holds_with_a_probability_of_95_percent(positives):
    found = np.arange(101)
    held = [positives - k <= missed_after_audit(900, 100, int(k)) for k in found]
    assert hypergeom.pmf(found[held], 900, positives, 100).sum() >= 0.95


def naive_stake(left, found, said, R):
    """The product, one answer after the other."""
    stakes = []
    for bet in (0.0, 0.15, 0.4):
        stake = 1.0
        for n, k, y in zip(left, found, said, strict=True):
            p = (R - k) / n
            stake *= bet if y else (1 - bet * p) / (1 - p)
        stakes.append(stake)
    return np.mean(stakes)


def test_the_proof_rejects_what_the_bets_reject():
    rng = np.random.default_rng(0)
    proof, left, found, said = RecallProof(0.5), [], [], []
    proof.begin(n_left=400, n_known=10)
    for _ in range(150):
        y = bool(rng.random() < 0.02)
        left.append(proof.n_left)
        found.append(sum(said))
        said.append(y)
        proof.random(y)
    most = proof.missed_at_most()
    assert naive_stake(left, found, said, sum(said) + most) < 20 <= naive_stake(left, found, said, sum(said) + most + 1)
    assert (proof.n_left, proof.n_known) == (250, 10 + sum(said))


def test_looking_after_each_answer_keeps_the_promise():
    """The true number is rejected at any time in at most 5 of 100 runs, also with a hunt after each hit."""
    n_rejected, n_runs, n_positive = 0, 300, 8
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        left, proof, n_left = rng.permutation(80).tolist(), RecallProof(0.5), n_positive  # rows below 8 are positive
        proof.begin(n_left=80, n_known=0)
        is_rejected = False
        while left and not is_rejected:
            row = left.pop()
            proof.random(row < n_positive)
            n_left -= row < n_positive
            if row < n_positive and left:
                hunted = min(left) if rng.random() < 0.7 else left[0]
                left.remove(hunted)
                proof.chosen(hunted < n_positive)
                n_left -= hunted < n_positive
            is_rejected = proof._stake(n_left) >= 20.0
        n_rejected += is_rejected
    assert 0 < n_rejected <= n_runs * (0.05 + 2 * np.sqrt(0.05 * 0.95 / n_runs))


def test_the_cost_is_what_it_takes_if_nothing_is_found():
    assert [answers_for_recall(3000, 300, recall) for recall in (0.7, 0.8, 0.9)] == [69, 116, 254]
    n, known = 600, 30
    cost = answers_for_recall(n, known, 0.8)
    allowed = known // 4
    assert (1 - (cost - 1) / n) ** (allowed + 1) > 0.05 >= (1 - cost / n) ** (allowed + 1)
    proof = RecallProof(0.8)
    proof.begin(n, known)
    assert proof.cost() == cost
    n_answers = 0
    while not proof.holds():
        proof.random(False)
        n_answers += 1
    assert 0.7 * cost < n_answers < 2 * cost


def test_an_answer_that_is_no_label_may_be_a_positive():
    bounds = []
    for answer in (False, None, True):
        proof = RecallProof(0.5)
        proof.begin(500, 10)
        for _ in range(100):
            proof.random(False)
        proof.random(answer)
        bounds.append((proof.missed_at_most(), proof.n_known))
    assert bounds[1] == (bounds[2][0] + 1, 10)
    assert bounds[0][0] < bounds[2][0]


def test_what_is_out_of_range_is_named():
    with pytest.raises(ValueError, match="recall=1"):
        RecallProof(1.5)
    with pytest.raises(ValueError, match="n_found=3 must be at most n_audited=2"):
        missed_after_audit(9, 2, 3)
    with pytest.raises(ValueError, match="n_audited=10 must be at most n=9"):
        missed_after_audit(9, 10, 3)
