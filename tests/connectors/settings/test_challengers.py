"""The sections [[challenger]]."""

from datetime import UTC, datetime

import pytest

from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.sections import ConfigError


def read(folder, text):
    path = folder / "app.toml"
    path.write_text(text)
    return load(path, {})


def test_a_challenger_takes_over_what_it_leaves_out_if_its_algorithm_has_it(tmp_path):
    settings = read(
        tmp_path,
        """
        [model]
        C = 3.0
        reprocess = 2
        [[challenger]]
        name = "wide"
        [challenger.model]
        gamma = 0.1
        [[challenger]]
        name = "noisy"
        topic = "elsewhere"
        [challenger.model]
        algorithm = "lasvm-i"
        """,
    )
    first, wide, noisy = settings.models().values()
    assert (first.name, first.model) == ("model", settings.model)
    assert (wide.model.C, wide.model.gamma, wide.model.reprocess) == (3.0, 0.1, 2)
    assert (noisy.model.algorithm, noisy.model.C, noisy.model.reprocess) == ("lasvm-i", 3.0, None)
    assert settings.topics_of_challengers() == ["predictions-model", "predictions-wide", "elsewhere"]
    assert settings.serving("wide").model == wide.model
    assert settings.fingerprint() == read(tmp_path, "[model]\nC = 3.0\nreprocess = 2\n").fingerprint()


@pytest.mark.parametrize(
    ("begin", "moment"),
    [
        ('"earliest"', None),
        ("7", 7),
        ('"7"', 7),
        ('"2026-05-31T12:00"', datetime(2026, 5, 31, 12, tzinfo=UTC)),
        ('"2026-05-31T12:00+02:00"', datetime(2026, 5, 31, 10, tzinfo=UTC)),
    ],
)
def test_the_beginning_is_a_moment_of_the_log(tmp_path, begin, moment):
    (own,) = read(tmp_path, f"[[challenger]]\nname = 'a'\nbegin = {begin}\n").challenger
    assert own.beginning == moment


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[challenger]\nname = 'a'", "write [[challenger]] with two brackets"),
        ("[[challenger]]\ntopic = 'a'", "challenger.1 needs a name"),
        ("[[challenger]]\nname = 'model'", "challenger.model.name = 'model' must be 1 to 50 letters"),
        ("[[challenger]]\nname = 'a'\n[[challenger]]\nname = 'a'", "the names of challengers must differ"),
        ("[[challenger]]\nname = 'a'\nC = 2.0", "challenger.a.C belongs to [challenger.model]"),
        ("[[challenger]]\nname = 'a'\nmax_md = 3", "challenger.a.max_md is unknown; did you mean 'max_mb'"),
        ("[[challenger]]\nname = 'a'\n[challenger.model]\nC = -1.0", "challenger.a.model.C"),
        ("[[challenger]]\nname = 'a'\n[challenger.model]\nsteps = 'x'", "challenger.a.model.steps"),
        ("[[challenger]]\nname = 'a'\n[challenger.model]\nmetric = 'gmean'", "'a': model.metric is no setting"),
        (
            "[[challenger]]\nname = 'a'\nbegin = 'soon'",
            'challenger.a.begin = \'soon\' must be "now", "earliest", an offset',
        ),
        ("[[challenger]]\nname = 'a'\nbegin = -1", 'challenger.a.begin = -1 must be "now"'),
        ("[[challenger]]\nname = 'a'\nbegin = 1.5", "challenger.a.begin = 1.5 must be a string or a whole number"),
        ("[[challenger]]\nname = 'a'\nmodel = 3", "challenger.a.model must be a section"),
        ("[daemon]\nper = 'key'\n[[challenger]]\nname = 'a'", '[[challenger]] needs daemon.per = "partition"'),
        ("[log]\nlabels = 'l'\nquestions = 'q'\n[[challenger]]\nname = 'a'", 'needs labelling.selection = "random"'),
        (
            "[log]\nlabels = 'l'\nquestions = 'q'\ncontrol = 'c'\n[labelling]\nselection = 'random'\n"
            "[[challenger]]\nname = 'a'",
            "log.control does not go with log.questions",
        ),
        (
            "[log]\nmodel = 'm'\nmerged = 'n'\ncontrol = 'c'\n[[challenger]]\nname = 'a'",
            "log.control does not go with log.merged",
        ),
        (
            "[log]\nmodel = 'm'\nmerged = 'n'\n[[challenger]]\nname = 'a'\nshare = 0.1",
            "challenger.share does not go with log.merged",
        ),
        ("[comparison]\npromote = 'error'\n[[challenger]]\nname = 'a'", "needs log.control"),
        (
            "[log]\ncontrol = 'c'\n[comparison]\npromote = 'cost'\n[[challenger]]\nname = 'a'",
            "and comparison.miss_cost",
        ),
        (
            "[[challenger]]\nname = 'a'\nshare = 0.7\n[[challenger]]\nname = 'b'\nshare = 0.5",
            "the shares of challengers add up to 1.2",
        ),
        ("[log]\ncontrol = 'c'", "log.control, the topic of promotions, needs a [[challenger]]"),
        ("[[challenger]]\nname = 'a'\ntopic = 'events'", "the topics must differ"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, problem):
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, text)
    assert any(problem in line for line in refused.value.problems), refused.value.problems


@pytest.mark.parametrize(
    "text",
    [
        "[log]\nlabels = 'l'\nquestions = 'q'\n[labelling]\nselection = 'random'\n[[challenger]]\nname = 'a'",
        "[log]\nmodel = 'm'\nmerged = 'n'\n[[challenger]]\nname = 'a'",
    ],
)
def test_what_goes_together(tmp_path, text):
    assert len(read(tmp_path, text).challenger) == 1
