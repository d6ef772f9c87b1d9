"""`streamsvm.load` reads what `save` wrote, whatever class wrote it."""

import numpy as np
import pytest
from river import compose, feature_extraction

import streamsvm
from streamsvm import LASVM, AutoLASVM, OneVsOne, OneVsRest, SnapshotError, WarmupScaler
from streamsvm.estimators.learners import ALGORITHMS
from streamsvm.validation import StreamingLOO

X = np.random.default_rng(0).normal(size=(40, 2))
MODELS = [
    *(algorithm() for algorithm in ALGORITHMS.values()),
    AutoLASVM(),
    OneVsRest(LASVM()),
    OneVsRest(AutoLASVM()),
    OneVsOne(LASVM()),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_every_model(model, tmp_path):
    model = model.clone()
    model.learn_many(X, X[:, 0] > 0)
    model.save(tmp_path / "model")
    again = streamsvm.load(tmp_path / "model", cache_mb=2.0, device="auto")
    assert type(again) is type(model)
    assert again.digest() == model.digest()
    learner = getattr(again, "model", again)
    assert (learner.cache_mb, learner.device) == (2.0, "auto")


def test_a_scaler(tmp_path):
    scaler = WarmupScaler("minmax", warmup=2)
    scaler.learn_one({"a": 3.0})
    scaler.save(tmp_path / "scaler")
    assert streamsvm.load(str(tmp_path / "scaler")).to_bytes() == scaler.to_bytes()


def test_other_files_are_refused(tmp_path):
    (tmp_path / "estimate").write_bytes(StreamingLOO(LASVM()).to_bytes())
    with pytest.raises(SnapshotError, match=r"estimate: this is a 'StreamingLOO' snapshot; `load` reads what `save`"):
        streamsvm.load(tmp_path / "estimate")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(SnapshotError, match="text"):
        streamsvm.load(tmp_path / "text")
    with pytest.raises(FileNotFoundError):
        streamsvm.load(tmp_path / "nothing")


def test_a_pipeline_is_kept_by_its_learner(tmp_path):
    texts, y = ["win a prize", "meeting at noon", "claim a prize", "lunch at noon"], [True, False, True, False]
    pipeline = feature_extraction.BagOfWords() | LASVM(kernel="linear")
    for text, label in zip(texts, y, strict=True):
        pipeline.learn_one(text, label)
    pipeline[-1].save(tmp_path / "model")
    again = feature_extraction.BagOfWords() | streamsvm.load(tmp_path / "model")
    assert isinstance(again, compose.Pipeline)
    assert [again.predict_proba_one(text) for text in texts] == [pipeline.predict_proba_one(text) for text in texts]
