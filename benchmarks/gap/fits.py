"""One pass of the gap family, or the fit of a batch solver, and the test figures of both."""

import numpy as np
from datasets import Data, Task
from lasvm import peak_mb
from shared.clock import cpu_seconds

import streamsvm
from streamsvm.core import expansion, storage
from streamsvm.metrics import prbep_score

CACHE_MB = 256.0
FAMILY = {"FULL": streamsvm.FullSVM, "G": streamsvm.LASVMG, "NC": streamsvm.LASVMNC, "I": streamsvm.LASVMI}
BATCH = ("SVC", "intelex")


def fit(data: Data, task: Task, engine: str, n: int | None = None, **parameters) -> dict:
    """One pass without FINISH, over the first n examples if given; or the fit of a batch solver."""
    if engine in BATCH:
        return fit_batch(data, task, engine)
    model = new_model(task, engine, **parameters)
    seconds = cpu_seconds(model.learn_many, data.X[:n], data.y[:n])
    figures = {"K values M": model.kernel_evaluations / 1e6, "reprocess": model.n_reprocess, "seconds": seconds}
    return figures | quality(model, data)


def new_model(task: Task, engine: str, cache_mb: float = CACHE_MB, **parameters):
    """A model with the task's hyper-parameters; compiled code is loaded."""
    streamsvm.warmup(FAMILY[engine])
    return FAMILY[engine](C=task.C, gamma=task.gamma, cache_mb=cache_mb, **parameters)


def quality(model, data: Data) -> dict:
    """Support vectors, and the test figures of a model of the family."""
    return {"support": model.n_support} | scores(model.decision_function_many(data.X_test), data.y_test > 0)


def scores(f: np.ndarray, positive: np.ndarray) -> dict:
    """Test figures of the decision values f, in percent but for the AUC."""
    recalls = (f[positive] > 0).mean(), (f[~positive] <= 0).mean()
    return {
        "accuracy": 100 * float(((f > 0) == positive).mean()),
        "PRBEP": 100 * prbep_score(positive, f),
        "AUC": area_under_roc(f, positive),
        "g-means": 100 * float(np.sqrt(recalls[0] * recalls[1])),
    }


def area_under_roc(f: np.ndarray, positive: np.ndarray) -> float:
    """Share of pairs in the right order; from mean ranks, so that half of the equal pairs count."""
    _, group, size = np.unique(f, return_inverse=True, return_counts=True)
    ranks, p = (np.cumsum(size) - (size - 1) / 2)[group], int(positive.sum())
    return float((ranks[positive].sum() - p * (p + 1) / 2) / (p * (len(f) - p)))


def fit_batch(data: Data, task: Task, engine: str) -> dict:
    """scikit-learn's SVC with its default cache of 200 MB; or scikit-learn-intelex's, on dense float32."""
    if engine == "SVC":
        from sklearn.svm import SVC

        X, X_test = data.X, data.X_test
    else:
        from sklearnex.svm import SVC

        X, X_test = dense(data.X), dense(data.X_test)
    model = SVC(C=task.C, gamma=task.gamma)
    seconds = cpu_seconds(model.fit, X, data.y)
    figures = {"support": int(model.n_support_.sum()), "seconds": seconds}
    return figures | scores(model.decision_function(X_test), data.y_test > 0)


def dense(X) -> np.ndarray:
    """The matrix as an array of float32."""
    return np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), np.float32)


def polish(data: Data, task: Task, engine: str) -> dict:
    """A model after one pass, and after `sparsify`."""
    model = new_model(task, engine)
    learning = cpu_seconds(model.learn_many, data.X, data.y)
    before = quality(model, data)
    polishing = cpu_seconds(model.sparsify)
    return {"before": before, "after": quality(model, data), "learning": learning, "polishing": polishing}


FORMS = ("sparse, compressed when wide", "sparse, compressed from the start", "sparse, never compressed", "dense array")


def fit_form(data: Data, task: Task, engine: str, form: str) -> dict:
    """One pass over sparse data in one of the forms; what it takes beyond the data and an empty model."""
    storage.members.WIDE_BYTES = {FORMS[0]: storage.members.WIDE_BYTES, FORMS[1]: 0}.get(form, 1 << 60)
    X, model = dense(data.X) if form == FORMS[3] else data.X, new_model(task, engine)
    before = peak_mb()
    seconds = cpu_seconds(model.learn_many, X, data.y)
    kind = ("bytes", "dense", "compressed")[model._state.expansion.counts[expansion.STORAGE]]
    return {"seconds": seconds, "MB": peak_mb() - before, "data MB": before, "kind": kind} | quality(model, data)
