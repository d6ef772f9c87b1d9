"""Models of ten digits, one against the rest."""

import copy
import time

import numpy as np
from datasets import Data
from lasvm import AS_PRINTED
from shared.clock import cpu_seconds
from sklearn.svm import SVC
from tqdm import tqdm

import streamsvm
from digits.perceptron import AveragedPerceptron

C, GAMMA = 1000.0, 0.005
CACHE_MB = 256.0
DIGITS = range(10)
CACHES = {  # MB; the kernel matrix of 10000 digits has 400, that of the members of one of them 8 at most
    "LASVM": (1, 2, 4, 8, 16, 64, 512),
    "LIBSVM": (64, 512),
}
MOST_EPOCHS = 12
SHARING = {  # parameters, and the share of the digits that it learns: FULL keeps all of them, in every class
    "LASVM": ({"C": C, "gamma": GAMMA}, 1.0),
    "LASVMG": ({"C": C, "gamma": GAMMA}, 0.5),
    "FullSVM": ({"C": C, "gamma": GAMMA}, 0.2),
}


def warm_up(model) -> None:
    """Load the compiled code that a model needs."""
    rng = np.random.default_rng(0)
    X = rng.random((600, 784)) * (rng.random((600, 784)) < 0.2)
    y = np.arange(600) % 2
    several = isinstance(model, streamsvm.OneVsRest)
    small = model.clone() if not several else streamsvm.OneVsRest(model.model)
    small.learn_many(X, y, ids=np.arange(600))
    small.learn_many(X, y, ids=np.arange(600))
    small.finish()
    small.decision_function_many(X)


def scores(data: Data, digits: list[int], values: np.ndarray) -> dict:
    """Errors in percent: of all classes together, if all are there, and of each against the rest."""
    of_digits = (values > 0) != (data.y_test[:, np.newaxis] == np.array(digits))
    whole = 100 * float(np.mean(values.argmax(axis=1) != data.y_test)) if digits == [*DIGITS] else None
    return {"error": whole, "errors": (100 * of_digits.mean(axis=0)).tolist()}


def fit_lasvm(data: Data, digits: list[int], reprocess: str | int) -> dict[str, dict]:
    """One epoch, and two; both finished."""
    how = AS_PRINTED if reprocess == 1 else {"reprocess": reprocess}
    epochs = ("1 epoch", "2 epochs")
    values: dict[str, list] = {name: [] for name in epochs}
    seconds: dict[str, list[float]] = {name: [] for name in epochs}
    support: dict[str, list[np.ndarray]] = {name: [] for name in epochs}
    warm_up(streamsvm.LASVM(C, gamma=GAMMA, **how))
    for digit in tqdm(digits, desc=f"LASVM, reprocess={reprocess}, {len(data.y)} examples"):
        model, learning = streamsvm.LASVM(C, gamma=GAMMA, cache_mb=CACHE_MB, **how), 0.0
        for name in epochs:
            learning += cpu_seconds(model.learn_many, data.X, data.y == digit, ids=np.arange(len(data.y)))
            finished = copy.deepcopy(model)
            seconds[name].append(learning + cpu_seconds(finished.finish))
            support[name].append(finished.support_ids)
            values[name].append(finished.decision_function_many(data.X_test))
    return {name: figures(data, digits, values[name], seconds[name], support[name]) for name in epochs}


def fit_libsvm(data: Data, digits: list[int]) -> dict:
    """One SVC for each digit."""
    values, seconds, support = [], [], []
    for digit in tqdm(digits, desc=f"LIBSVM, {len(data.y)} examples"):
        model = SVC(C=C, gamma=GAMMA, cache_size=CACHE_MB)
        seconds.append(cpu_seconds(model.fit, data.X, data.y == digit))
        support.append(model.support_)
        values.append(model.decision_function(data.X_test))
    return figures(data, digits, values, seconds, support)


def fit_perceptron(data: Data, digits: list[int]) -> dict[str, dict]:
    """The averaged perceptron after one epoch and after ten."""
    epochs = ("1 epoch", "10 epochs")
    values: dict[str, list] = {name: [] for name in epochs}
    seconds: dict[str, list[float]] = {name: [] for name in epochs}
    support: dict[str, list[np.ndarray]] = {name: [] for name in epochs}
    for digit in tqdm(digits, desc=f"averaged perceptron, {len(data.y)} examples"):
        model, learning = AveragedPerceptron(data.X, np.where(data.y == digit, 1, -1), GAMMA), 0.0
        for name, more in zip(epochs, (1, 9), strict=True):
            learning += sum(cpu_seconds(model.learn) for _ in range(more))
            seconds[name].append(learning)
            support[name].append(model.support_ids)
            values[name].append(model.decision_function_many(data.X_test))
    return {name: figures(data, digits, values[name], seconds[name], support[name]) for name in epochs}


def figures(data: Data, digits: list[int], values: list, seconds: list[float], support: list[np.ndarray]) -> dict:
    """Of the models, each of a digit against the rest."""
    return {
        "seconds": sum(seconds),
        "of each": seconds,
        "support": len(np.unique(np.concatenate(support))),
        "each": [len(ids) for ids in support],
        **scores(data, digits, np.column_stack(values)),
    }


def epochs_until_exact(data: Data) -> list[dict]:
    """8 against the rest, epoch after epoch without FINISH, until its violation is at most the tolerance."""
    model = streamsvm.LASVM(C, gamma=GAMMA, cache_mb=CACHE_MB, **AS_PRINTED)
    warm_up(model)
    found: list[dict] = []
    seconds, y = 0.0, data.y == 8
    while len(found) < MOST_EPOCHS and (not found or found[-1]["left"] > 0):
        seconds += cpu_seconds(model.learn_many, data.X, y, ids=np.arange(len(y)))
        finished = copy.deepcopy(model)
        finishing = cpu_seconds(finished.finish)
        error = 100 * float(np.mean(model.predict_many(data.X_test) != (data.y_test == 8)))
        outside = model.decision_function_many(data.X) * np.where(y, 1, -1)
        members = np.zeros(len(y), bool)
        members[model.support_ids] = True
        found.append(
            {
                "seconds": seconds,
                "finishing": finishing,
                "error": error,
                "support": model.n_support,
                "delta": model.delta,
                "left": int((~members & (outside < 1 - 2 * model.tol)).sum()),
            }
        )
    return found


def share(data: Data, algorithm: str) -> dict:
    """The same ten models, together and one by one."""
    parameters, part = SHARING[algorithm]
    n = int(part * len(data.y))
    prototype = getattr(streamsvm, algorithm)(cache_mb=CACHE_MB, **parameters)
    models = {"together": [streamsvm.OneVsRest(prototype, [*DIGITS])], "apart": [prototype.clone() for _ in DIGITS]}
    results, values = {"n": n}, {}
    for how, several in models.items():
        warm_up(several[0])
        start = time.process_time()
        for digit, model in enumerate(several):
            model.learn_many(data.X[:n], data.y[:n] if how == "together" else data.y[:n] == digit)
        learned = time.process_time()
        evaluations = sum(model.kernel_evaluations for model in several)
        values[how] = np.column_stack([model.decision_function_many(data.X_test) for model in several])
        seconds = learned - start, time.process_time() - learned
        results[how] = {"learning": seconds[0], "prediction": seconds[1], "evaluations": evaluations / 1e6}
    one = models["together"][0]
    results["members"] = sum(model.n_members for model in models["apart"]) / one.n_members
    results["difference"] = float(np.abs(values["together"] - values["apart"]).max())
    return results


def fit_cached(data: Data, digits: list[int], engine: str) -> list[dict]:
    """Each digit against the rest, with each size of the row cache: seconds of each, and the mean error in percent."""
    if engine == "LASVM":
        warm_up(streamsvm.LASVM(C, gamma=GAMMA))
    return [cached(data, digits, engine, cache_mb) for cache_mb in tqdm(CACHES[engine], desc=f"row cache, {engine}")]


def cached(data: Data, digits: list[int], engine: str, cache_mb: int) -> dict:
    """With one size of the row cache."""
    seconds, errors = [], []
    for digit in digits:
        y, start = data.y == digit, time.process_time()
        if engine == "LASVM":
            model = streamsvm.LASVM(C, gamma=GAMMA, cache_mb=cache_mb, **AS_PRINTED)
            model.learn_many(data.X, y)
            model.finish()
        else:
            model = SVC(C=C, gamma=GAMMA, cache_size=cache_mb).fit(data.X, y)
        seconds.append(time.process_time() - start)
        predicted = (model.predict_many if engine == "LASVM" else model.predict)(data.X_test)
        errors.append(100 * float(np.mean(predicted != (data.y_test == digit))))
    return {"cache_mb": cache_mb, "seconds": seconds, "error": float(np.mean(errors))}
