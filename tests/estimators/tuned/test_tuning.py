"""The decisions of the learner that tunes itself, on made-up scores."""

import json
import math

import numpy as np
import pytest

from streamsvm import SnapshotError
from streamsvm.core.saving import snapshot
from streamsvm.estimators.tuned import tuning
from streamsvm.estimators.tuned.tuner import Tuner
from streamsvm.estimators.tuned.tuning import (
    CHECK,
    NO_SCORE,
    STARTS,
    Candidate,
    FreshChallenger,
    Score,
    Setting,
    TuningChallenger,
    Work,
    alarm,
)


class Stream:
    """Records that each learner gets wrong with a probability that depends on its setting and on whether it is fresh.

    All learners share one random number for a record, so the better of two is never wrong alone.
    """

    def __init__(self, error, seed=0, members=100, tuner=None):
        self.error, self.members = error, members
        self.rng = np.random.default_rng(seed)
        self.tuner, self.n_seen = tuner or Tuner(), 0

    def run(self, n_checks, parts=1):
        for _ in range(n_checks):
            chance = self.rng.random(CHECK)
            for part in np.array_split(chance, parts):
                tuner = self.tuner
                wrong = {n: part < self.error(c.setting, n == tuner.fresh.number) for n, c in tuner.candidates.items()}
                self.tuner = tuner.counted(wrong)
            self.n_seen += CHECK
            self.tuner = self.tuner.checked(self.n_seen, dict.fromkeys(self.tuner.candidates, self.members))
            self.check()
        return self.tuner

    def check(self):
        """What always holds."""
        t = self.tuner
        assert {t.champion, t.predicting} <= set(t.candidates)
        if not t.warming_up:
            challengers = [n for n in (t.tuning.number, t.fresh.number) if n is not None]
            assert sorted(t.candidates) == sorted([t.champion, *challengers])
            first = 10 * tuning.work_of_check(self.members)
            assert t.work.tuning <= 0.8 * (t.work.champion + tuning.LONGEST * self.members) + first
        assert Tuner.of_plain(json.loads(json.dumps(t.to_plain()))) == t


def best_at(best):
    """An error that grows with the distance from the best setting."""

    def error(setting, fresh):
        tens = abs(math.log10(setting.C / best.C))
        fours = abs(math.log(setting.gamma / best.gamma, 4))
        return 0.1 + 0.05 * (tens + fours)

    return error


@pytest.mark.parametrize("best", STARTS)
def test_the_best_setting_wins_the_warm_up(best):
    tuner = Stream(best_at(best)).run(20)
    (promotion,) = tuner.history
    assert promotion == (1000, "warm-up", best)
    assert tuner.candidates[tuner.predicting].setting == best
    second = tuner.candidates[tuner.tuning.number].setting
    assert second in STARTS
    assert second != best
    assert tuner.candidates[tuner.fresh.number].setting == best


def test_the_best_setting_predicts_during_the_warm_up():
    stream = Stream(best_at(STARTS[2]))
    assert stream.tuner.predicting == 0
    stream.run(6)
    assert stream.tuner.predicting == 2
    assert stream.tuner.warming_up


def test_the_second_best_challenges_even_if_it_predicted():
    stream = Stream(best_at(STARTS[3]))
    stream.run(19)
    stream.tuner.predicting = stream.tuner.champion = 0
    for number, candidate in stream.tuner.candidates.items():
        candidate.wrong = [{3: 5, 0: 6}.get(number, 9)] * 19
    tuner = stream.run(1)
    assert (tuner.champion, tuner.predicting, tuner.tuning.number) == (3, 3, 0)


@pytest.mark.parametrize("best", [Setting(100.0, 4.0), Setting(0.1, 0.25), Setting(10.0, 64.0)])
def test_a_better_setting_is_found_step_by_step(best):
    tuner = Stream(best_at(best)).run(400)
    assert tuner.history[-1].setting == best
    assert {promotion.way for promotion in tuner.history} == {"warm-up", "tuning"}
    for before, after in zip(tuner.history, tuner.history[1:], strict=False):
        assert after.setting in before.setting.neighbours(drifts=False)


def test_a_champion_without_better_neighbours_stays():
    tuner = Stream(best_at(STARTS[0]), seed=1).run(600)
    assert len(tuner.history) == 1
    assert tuner.tuning.lasts > tuning.SHORTEST


def test_a_fresh_challenger_replaces_a_champion_with_outdated_members():
    changed = [False]
    stream = Stream(lambda setting, fresh: 0.5 if changed[0] and not fresh else 0.1)
    champion = stream.run(60).champion
    changed[0] = True
    while stream.tuner.champion == champion:
        before = stream.tuner
        stream.run(1)
    assert stream.tuner.predicting == stream.tuner.champion == before.fresh.number
    assert stream.n_seen <= 60 * CHECK + 600
    assert stream.tuner.history[-1].way == "fresh"
    assert stream.tuner.fresh.number not in (None, stream.tuner.champion)


def test_a_fresh_challenger_predicts_on_probation_and_leaves():
    """Its lead is enough for that, and not for a champion."""
    stream = Stream(best_at(STARTS[0]))
    tuner, predicting = stream.run(20), []
    tuner.fresh.life = 200
    number = tuner.fresh.number
    for check in range(4):
        wrong = {n: np.arange(CHECK) < (7 if n == number else 10) for n in tuner.candidates}
        tuner = tuner.counted(wrong).checked(stream.n_seen + (check + 1) * CHECK, dict.fromkeys(wrong, 100))
        predicting.append(tuner.predicting)
    assert predicting == [tuner.champion, number, number, tuner.champion]
    assert len(tuner.history) == 1
    assert number not in tuner.candidates
    assert tuner.fresh.life == 400


def test_windows_are_tried_once_the_stream_drifts():
    champion = Setting(10.0, 1.0)
    assert all(setting.window is None for setting in champion.neighbours(drifts=False))
    assert champion.neighbours(drifts=True)[0] == Setting(10.0, 1.0, 500)
    windows = {setting.window for setting in Setting(10.0, 1.0, 500).neighbours(drifts=True)}
    assert windows == {125, 500, 2000}
    assert {setting.window for setting in Setting(10.0, 1.0, 125).neighbours(drifts=False)} == {125, 500}
    assert {setting.window for setting in Setting(10.0, 1.0, 2000).neighbours(drifts=True)} == {500, 2000, None}


def test_settings_stay_within_bounds():
    corner = Setting(1000.0, 64.0)
    assert set(corner.neighbours(drifts=False)) == {Setting(100.0, 64.0), Setting(1000.0, 16.0)}


@pytest.mark.parametrize(
    ("won", "lost", "checks", "wins", "ends"),
    [
        (10, 10, 9, False, False),
        (10, 10, 10, False, True),  # its time is over
        (2, 0, 3, False, False),  # too young
        (4, 1, 5, False, False),  # too young, too
        (4, 1, 6, True, False),
        (12, 10, 10, False, True),
        (14, 10, 10, True, True),
        (3, 8, 6, False, True),  # hopeless
    ],
)
def test_the_verdict_on_a_tuning_challenger(won, lost, checks, wins, ends):
    challenger = Candidate(STARTS[0])
    for _ in range(checks):
        challenger.add(Score(lost, won, lost))
    rule = TuningChallenger(lasts=500)
    assert rule.wins(challenger) is wins
    assert rule.ends(challenger) is ends


def test_the_first_quarter_does_not_count():
    challenger = Candidate(STARTS[0])
    for check in range(8):
        challenger.add(Score(0, 0, 50) if check < 2 else Score(0, 5, 0))
    assert challenger.lead(0.25) == (30, math.sqrt(30))
    assert challenger.lead(0.0) == (-70, math.sqrt(130))


def test_challengers_of_the_first_champion_have_longer():
    rule = TuningChallenger()
    assert rule.lasts == tuning.FIRST
    rule.begin_again([], None)
    assert rule.lasts == tuning.SHORTEST


def test_a_tuning_challenger_rests_when_all_is_tried_and_then_has_longer():
    rule = TuningChallenger(lasts=500, tried=STARTS[0].neighbours(drifts=False))
    assert rule.next_setting(STARTS[0], False, 5000) is None
    assert rule.rests_until == 7000
    assert rule.next_setting(STARTS[0], False, 6950) is None
    assert rule.next_setting(STARTS[0], False, 7000) is None
    assert rule.next_setting(STARTS[0], False, 7050) == Setting(10.0, 4.0)
    assert rule.lasts == 1000


def test_the_direction_of_the_last_winner_comes_first():
    rule = TuningChallenger(step=(0.1, 1.0))
    assert rule.next_setting(Setting(1.0, 1.0), False, 0) == Setting(0.1, 1.0)


def test_a_fresh_challenger_needs_a_larger_lead_until_the_stream_drifts():
    challenger = Candidate(STARTS[0])
    for _ in range(4):
        challenger.add(Score(0, 3, 0))
    assert FreshChallenger().predicts(challenger)
    assert not FreshChallenger().replaces(challenger)
    assert FreshChallenger(promotions=2).replaces(challenger)


def test_the_alarm_needs_a_jump_and_a_past():
    assert alarm([5] * 30 + [20] * 3)
    assert not alarm([5] * 20 + [20] * 3)
    assert not alarm([5] * 33)
    assert not alarm([0] * 30)


def test_a_wrong_record_counts_once_and_against_the_champion():
    wrong = {0: np.array([True, True, False, False]), 1: np.array([True, False, True, False])}
    tuner = Tuner().counted(wrong).counted({n: np.zeros(2, bool) for n in wrong})
    assert tuner.scores == {0: Score(2, 0, 0), 1: Score(2, 1, 1)}
    assert Tuner().scores == {}
    assert NO_SCORE.plus(wrong[1], wrong[0]) == Score(2, 1, 1)


def test_decisions_do_not_depend_on_the_parts():
    def error(setting, fresh):
        return best_at(Setting(100.0, 4.0))(setting, fresh) + 0.02 * (not fresh)

    assert Stream(error).run(150, parts=1) == Stream(error).run(150, parts=7)


def test_challengers_wait_when_they_have_worked_too_much():
    work = Work(champion=1000, tuning=600, fresh=300)
    assert work.allows_tuning(200)
    assert not work.allows_tuning(201)
    assert work.allows_fresh
    assert not Work(champion=1000, fresh=301).allows_fresh


@pytest.mark.parametrize("members", [10, 300, 3000])
def test_all_challengers_together_do_about_the_work_of_the_champion(members):
    work = Stream(best_at(STARTS[0]), members=members).run(600).work
    last = tuning.SHORT_LIFE * 2**5 // CHECK * tuning.work_of_check(members)
    assert 0.5 * work.champion < work.tuning + work.fresh <= 1.1 * work.champion + last


def test_a_spoiled_state_is_refused():
    plain = json.loads(json.dumps(Stream(best_at(STARTS[0])).run(30).to_plain()))
    with snapshot.reading("AutoLASVM"):
        Tuner.of_plain(plain)
    spoiled = [
        {"champion": 99},
        {"champion": None},
        {"champion": True},
        {"predicting": 99},
        {"next_number": 0},
        {"work": {}},
        {"work": {"champion": -1, "tuning": 0, "fresh": 0}},
        {"work": {"champion": 1e300, "tuning": 0, "fresh": 0}},
        {"candidates": plain["candidates"] * 2},
        {"candidates": plain["candidates"][:1]},
        {"history": [[1, "warm-up"]]},
        {"unknown": 1},
    ]
    for change in spoiled:
        with pytest.raises(SnapshotError), snapshot.reading("AutoLASVM"):
            Tuner.of_plain(plain | change)
