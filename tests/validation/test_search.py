"""The grid: every cell is the cross-validation of its setting, whatever the start along C; and it costs less."""

import threading
import time
from contextlib import contextmanager

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from patience import Patience
from river import metrics
from sklearn import metrics as of_sklearn
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

import streamsvm
from streamsvm import LASVM, OneVsOne
from streamsvm.batch import RowStore, SmoothSVM, SolverOptions, seeding, smo
from streamsvm.core import threads
from streamsvm.core.kernels import RBF
from streamsvm.validation import cross_validate, folds, grid_search
from streamsvm.validation.grids import along_c
from streamsvm.validation.grids.along_c import STOPPED, WARM_STARTS
from streamsvm.validation.grids.grid import Cell, best_of

CS, GAMMAS = [0.1, 1.0, 10.0, 100.0], [0.1, 1.0]
SEEDED = ["none", "skip", "best", "path"]


def noisy(n=120, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, X[:, 0] + X[:, 1] ** 2 + noise * rng.normal(size=n) > 0.7


def separable(n=90):
    """Nothing is at its bound from some C on."""
    X, y = noisy(n, noise=0.0)
    return X[keep := np.abs(X[:, 0] + X[:, 1] ** 2 - 0.7) > 0.3], y[keep]


def same_cells(search, X, y, atol=1e-2, model=None, **parameters):
    """Each cell's decision values are those of a cold cross-validation."""
    model = {} if model is None else model
    assert [(cell.C, cell.gamma) for cell in search.table] == [(C, g) for C in search.Cs for g in search.gammas]
    for cell in search.table:
        cold = cross_validate(LASVM(C=cell.C, gamma=cell.gamma, tol=1e-4, **model), X, y, seeding="none", **parameters)
        np.testing.assert_allclose(cell.result.decision_values, cold.decision_values, rtol=0, atol=atol)
        clear = np.abs(cold.decision_values) > atol
        np.testing.assert_array_equal(cell.result.predictions[clear], cold.predictions[clear])


# ------------------------------------------------------------------------------------------------------------ equality


@pytest.mark.parametrize("warm_start", WARM_STARTS)
@pytest.mark.parametrize("data", [noisy, separable])
def test_every_start_gives_the_same_table(warm_start, data):
    X, y = data()
    search = grid_search(LASVM(tol=1e-4), X, y, Cs=CS, gammas=GAMMAS, warm_start=warm_start, refit=False)
    same_cells(search, X, y, k=3)
    with pytest.raises(ValueError, match="the search has no solution: refit=False"):
        _ = search.solution


@pytest.mark.parametrize("seeding", SEEDED)
def test_folds_may_start_from_the_full_solution(seeding):
    X, y = noisy()
    search = grid_search(LASVM(tol=1e-4), X, y, Cs=CS, gammas=GAMMAS, seeding=seeding, k=6)
    assert search.seeding == seeding
    same_cells(search, X, y, k=6)
    assert all((cell.result.first is None) == (seeding == "none") for cell in search.table)


def test_the_table_is_that_of_scikit_learn():
    X, y = noisy(200)
    made = folds.stratified(y, 3)
    search = grid_search(LASVM(tol=1e-4), X, y, Cs=CS, gammas=GAMMAS, folds=made)
    theirs = GridSearchCV(SVC(tol=1e-4), {"C": CS, "gamma": GAMMAS}, cv=made).fit(X, y)
    np.testing.assert_allclose([c.score for c in search.table], theirs.cv_results_["mean_test_score"], atol=1.01 / 200)
    np.testing.assert_allclose([c.spread for c in search.table], theirs.cv_results_["std_test_score"], atol=0.02)
    assert search.best.score >= theirs.best_score_ - 1.01 / 200
    best = SVC(C=search.best.C, gamma=search.best.gamma, tol=1e-4).fit(X, y)
    np.testing.assert_allclose(search.solution.decision_function(X), best.decision_function(X), atol=1e-2)


def test_weights_and_kernels():
    X, y = noisy()
    w = np.random.default_rng(0).uniform(0.0, 1.5, len(y)) * (np.arange(len(y)) % 5 > 0)
    model, parameters = {"kernel": "poly", "degree": 2, "coef0": 1.0}, {"sample_weight": w, "k": 4}
    search = grid_search(LASVM(tol=1e-4, **model), X, y, Cs=[0.1, 1.0], gammas=[0.5], **parameters)
    same_cells(search, X, y, model=model, **parameters)
    line = grid_search(LASVM(kernel="linear", scaling=None, tol=1e-4), X, y, Cs=[1.0])
    same_cells(line, X, y, model={"kernel": "linear", "scaling": None}, k=3)


@pytest.mark.parametrize("n_jobs", [2, 5])
@pytest.mark.parametrize("seeding", ["none", "best"])
def test_workers_give_the_same_values(n_jobs, seeding):
    from joblib import parallel_config

    X, y = noisy()
    alone = grid_search(LASVM(), X, y, Cs=CS, gammas=GAMMAS, k=6, seeding=seeding)
    with parallel_config(backend="threading"):
        several = grid_search(LASVM(), X, y, Cs=CS, gammas=GAMMAS, k=6, seeding=seeding, n_jobs=n_jobs)
    for one, other in zip(alone.table, several.table, strict=True):
        np.testing.assert_array_equal(one.result.decision_values, other.result.decision_values)
        assert one.result.iterations == other.result.iterations


@pytest.mark.parametrize("seeding", ["none", "best"])
def test_the_number_of_threads_changes_no_bit(seeding, monkeypatch):
    tasks = threads.SHARES if seeding == "none" else len(GAMMAS)
    monkeypatch.setattr(threads, "MIN_WORK", 1.0)
    X, y = noisy()
    found = []
    for n_threads in (1, 2, 3):
        streamsvm.set_num_threads(n_threads)
        n_expected = min(n_threads, tasks)
        with watched_threads(monkeypatch, n_expected) as seen:
            found.append(grid_search(LASVM(), X, y, Cs=CS, gammas=GAMMAS, k=6, seeding=seeding, refit=False))
        assert len(seen) == n_expected
    streamsvm.set_num_threads(None)
    for other in found[1:]:
        for one, two in zip(found[0].table, other.table, strict=True):
            np.testing.assert_array_equal(one.result.decision_values, two.result.decision_values)
            assert one.result.iterations == two.result.iterations


@contextmanager
def watched_threads(monkeypatch, n_expected=1):
    """The threads that tasks are done in; a task waits until so many have one."""
    seen, done, patience = set(), along_c._trainings, Patience(5)

    def watched(task):
        seen.add(threading.current_thread())
        while len(seen) < n_expected and patience.lasts:
            time.sleep(0.01)
        yield from done(task)

    with monkeypatch.context() as patch:
        patch.setattr(along_c, "_trainings", watched)
        yield seen


def test_one_job_is_one_thread(monkeypatch):
    monkeypatch.setattr(threads, "MIN_WORK", 1.0)
    X, y = noisy(60)
    with watched_threads(monkeypatch) as seen:
        grid_search(LASVM(), X, y, Cs=[1.0], gammas=GAMMAS, n_jobs=1)
    assert seen == {threading.current_thread()}


# ------------------------------------------------------------------------------------------------------------ precision


def test_large_coefficients_get_double_precision(monkeypatch):
    """Their sums would be too coarse in single precision, from some C on."""
    X, y = separable()
    X = np.vstack([X, X[:4]])
    y = np.append(y, ~y[:4])  # these stay at their bounds, whatever C
    double, folds_along = [], along_c._folds_along

    def watched(task):
        double.append(task.Cs)
        yield from folds_along(task)

    monkeypatch.setattr(along_c, "_folds_along", watched)
    search = grid_search(LASVM(tol=1e-4), X, y, Cs=[1.0, 1e5], gammas=[1.0], refit=False)
    assert double == [[1e5]] * 3
    same_cells(search, X, y, k=3)


@pytest.mark.parametrize("change", [lambda X: X + 1e4, sp.csr_matrix])
def test_examples_far_from_the_origin_and_sparse_ones(change):
    X, y = noisy()
    X = change(X)
    search = grid_search(LASVM(tol=1e-4), X, y, Cs=CS, gammas=GAMMAS, refit=False)
    same_cells(search, X, y, k=3)


def test_a_matrix_too_large_for_the_cache_is_not_made(monkeypatch):
    X, y = noisy()
    monkeypatch.setattr(along_c, "_on_matrix", None)
    search = grid_search(LASVM(cache_mb=0.05, tol=1e-4), X, y, Cs=CS, gammas=GAMMAS, refit=False)
    same_cells(search, X, y, k=3)


# ---------------------------------------------------------------------------------------------------------------- cost


def test_nothing_is_trained_once_no_coefficient_is_at_its_bound():
    X, y = separable()
    search = grid_search(LASVM(tol=1e-5), X, y, Cs=[1.0, 1e3, 1e5, 1e6], gammas=[1.0])
    last = search.table[-1].result
    assert [part.start for part in last.per_fold] == [STOPPED] * 3
    assert last.iterations == last.kernel_evaluations == 0
    before = search.table[-2].result
    np.testing.assert_array_equal(last.decision_values, before.decision_values)
    first = search.table[0].result
    assert [part.start for part in first.per_fold] == ["cold"] * 3


def test_what_was_given_up_stops_nothing():
    """It may have no coefficient at its bound only because it has hardly begun."""
    X, y = noisy()
    with pytest.warns(RuntimeWarning, match="gave up on 6 of 6 trainings"):
        search = grid_search(LASVM(), X, y, Cs=[1.0, 10.0], refit=False, options=SolverOptions(max_iterations=0))
    assert dict(search.status) == {"max_iterations": 6}
    assert all(part.start != STOPPED for cell in search.table for part in cell.result.per_fold)


def test_rows_and_solutions_are_shared_along_c():
    X, y = noisy(300)
    doubled = [2.0**i for i in range(-2, 8)]
    search = grid_search(LASVM(), X, y, Cs=doubled, gammas=GAMMAS, warm_start="best")
    cold = grid_search(LASVM(), X, y, Cs=doubled, gammas=GAMMAS, warm_start="none")
    assert search.iterations < 0.8 * cold.iterations
    assert search.kernel_evaluations <= 2 * 300 * 300
    assert grid_search(LASVM(), X, y, Cs=doubled, gammas=GAMMAS).kernel_evaluations == 2 * 300 * 300
    alone = [cross_validate(LASVM(C=C, gamma=g), X, y, k=3, seeding="none") for C in doubled for g in GAMMAS]
    assert cold.iterations == sum(result.iterations for result in alone)
    assert cold.kernel_evaluations < 0.6 * sum(result.kernel_evaluations for result in alone)


def test_auto_scales_where_most_support_vectors_are_bounded():
    X, y = noisy(300)
    few = {
        part.start for c in grid_search(LASVM(), X, y, Cs=[1e3, 2e3], gammas=[3.0]).table for part in c.result.per_fold
    }
    most = {part.start for c in grid_search(LASVM(), X, y, Cs=[1.0, 2.0]).table for part in c.result.per_fold}
    assert most == {"cold", "scaled"}
    assert few <= {"cold", "direct", "scaled"}
    assert "direct" in few


def test_many_small_folds_start_from_the_full_solution():
    X, y = noisy(100)
    every = folds.leave_one_out(100)
    search = grid_search(LASVM(tol=1e-4), X, y, Cs=CS, folds=every)
    assert search.seeding == "auto"
    by_themselves = grid_search(LASVM(tol=1e-4), X, y, Cs=CS, folds=every, seeding="none")
    assert search.iterations < 0.3 * by_themselves.iterations
    for one, other in zip(search.table, by_themselves.table, strict=True):
        np.testing.assert_allclose(one.result.decision_values, other.result.decision_values, rtol=0, atol=1e-2)
    assert grid_search(LASVM(), X, y, Cs=[1.0]).seeding == "none"


# --------------------------------------------------------------------------------------------------------------- choice


def test_the_best_cell():
    cells = [Cell(1.0, 0.1, 0.8, 0.0, None), Cell(1.0, 1.0, 0.9, 0.0, None), Cell(2.0, 0.1, 0.9, 0.0, None)]
    nothing = Cell(0.5, 1.0, np.nan, 0.0, None)
    assert best_of([nothing, *cells], True) is cells[1]
    assert best_of([nothing, *cells], False) is cells[0]


@pytest.mark.parametrize("greater", [True, False])
def test_rounding_decides_on_no_best_cell(greater):
    """The scores of the folds are the same, in another order."""
    means = [float(np.mean(scores)) for scores in ([0.80, 0.83, 0.82], [0.81, 0.80, 0.84])]
    assert 0 < abs(means[1] - means[0]) < 1e-15
    for scores in (means, means[::-1]):
        cells = [Cell(C, 0.1, score, 0.0, None) for C, score in zip([1.0, 2.0], scores, strict=True)]
        assert best_of(cells, greater) is cells[0]


def test_it_may_be_chosen_by_any_metric():
    X, y = noisy()
    by_area = grid_search(LASVM(), X, y, Cs=CS, gammas=GAMMAS, metric=of_sklearn.roc_auc_score)
    assert by_area.best.score == by_area.scores.max()
    assert by_area.scores.shape == (4, 2)
    assert by_area.scores[2, 1] == by_area.table[5].score
    np.testing.assert_array_equal(by_area.best.result.scores(of_sklearn.roc_auc_score).mean(), by_area.best.score)
    by_loss = grid_search(LASVM(), X, y, Cs=CS, gammas=GAMMAS, metric=of_sklearn.zero_one_loss)
    by_accuracy = grid_search(LASVM(), X, y, Cs=CS, gammas=GAMMAS)
    np.testing.assert_allclose(by_loss.scores, 1.0 - by_accuracy.scores)
    assert by_loss.best.score == by_loss.scores.min()
    assert (by_loss.best.C, by_loss.best.gamma) == (by_accuracy.best.C, by_accuracy.best.gamma)
    assert grid_search(LASVM(), X, y, Cs=CS, metric=metrics.F1).greater_is_better
    assert not grid_search(LASVM(), X, y, Cs=CS, metric=lambda y, p: 0.0, greater=False).greater_is_better


def test_values_are_tried_in_ascending_order():
    X, y = noisy()
    search = grid_search(LASVM(), X, y, Cs=iter([10.0, 0.1]), gammas=np.array([2, 1]))
    assert (search.Cs, search.gammas) == ([0.1, 10.0], [1.0, 2.0])
    assert (search.warm_start, search.seeding) == ("auto", "none")
    assert search.seconds > 0


def test_a_finer_grid_follows_around_the_best_setting():
    X, y = noisy()
    found = grid_search(LASVM(tol=1e-4), X, y, Cs=[1.0, 16.0], gammas=[0.5, 2.0], fine=2)
    coarse = grid_search(LASVM(tol=1e-4), X, y, Cs=[1.0, 16.0], gammas=[0.5, 2.0], refit=False)
    np.testing.assert_array_equal(found.coarse.scores, coarse.scores)
    best = coarse.best
    assert found.Cs == pytest.approx([best.C / 4.0, best.C, best.C * 4.0])
    assert found.gammas == pytest.approx([best.gamma / 2.0, best.gamma, best.gamma * 2.0])
    assert found.scores[1, 1] == best.score
    same_cells(found, X, y, k=3)
    assert found.solution.store.kernel.gamma == found.best.gamma


def test_degree_and_coef0_are_axes():
    X, y = noisy()
    model = LASVM(kernel="poly", gamma=0.5, scaling=None, tol=1e-4)
    found = grid_search(model, X, y, Cs=[1.0, 5.0], degrees=[3, 2], coef0s=[1.0])
    assert found.scores.shape == (2, 1, 2, 1)
    assert (found.degrees, found.coef0s) == ([2, 3], [1.0])
    for cell in found.table:
        alone = model.clone({"degree": cell.degree, "coef0": cell.coef0, "C": cell.C})
        assert cross_validate(alone, X, y, k=3).scores("accuracy").mean() == pytest.approx(cell.score)
    kernel = found.solution.store.kernel
    assert (kernel.degree, kernel.coef0) == (found.best.degree, 1.0)
    columns = "C gamma degree coef0 score spread iterations kernel_evaluations seconds"
    assert list(found.to_frame()) == columns.split()
    assert "degree=" in repr(found.best)


@pytest.mark.parametrize("kind", [SmoothSVM, OneVsOne])
def test_other_models_have_these_axes_too(kind):
    X, y = noisy(60)
    model = SmoothSVM(kernel="poly") if kind is SmoothSVM else OneVsOne(LASVM(kernel="poly", gamma=0.5, scaling=None))
    found = grid_search(model, X, y, Cs=[1.0, 4.0], degrees=[1, 2], fine=2, refit=False)
    assert found.coarse.scores.shape == (2, 2, 1)
    assert found.degrees == [found.coarse.best.degree]
    assert len(found.Cs) == 3


def test_a_bar_is_for_terminals_only(capfd):
    X, y = noisy(40)
    grid_search(LASVM(), X, y, Cs=[1.0], progress=True)
    assert capfd.readouterr() == ("", "")


# ------------------------------------------------------------------------------------------------------------ arguments


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"Cs": []}, "Cs is empty"),
        ({"gammas": []}, "gammas is empty"),
        ({"Cs": [1.0, 0.0]}, "a value of Cs=0.0"),
        ({"gammas": ["scale"]}, "a value of gammas='scale'"),
        ({"Cs": [1.0, 1]}, "has a value twice"),
        ({"warm_start": "luke"}, "warm_start='luke' is unknown"),
        ({"seeding": "lucky"}, "seeding='lucky' is unknown"),
        ({"seeding": "sir"}, "seeding='sir' leads from fold to fold"),
        ({"metric": "auc"}, "metric='auc' is unknown"),
        ({"fine": 1}, "fine=1 leaves the grid as it is"),
        ({"degrees": [2]}, "the rbf kernel has no degree"),
        ({"coef0s": []}, "coef0s is empty"),
        ({"k": 4}, "k=4 folds of 3 examples of the smallest class"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"sample_weight": [1.0]}, "sample_weight has shape"),
    ],
    ids=str,
)
def test_bad_arguments_are_named(bad, message):
    X, y = np.arange(16.0).reshape(8, 2), [True] * 3 + [False] * 5
    with pytest.raises(ValueError, match=message):
        grid_search(LASVM(), X, y, **{"Cs": [1.0], "k": 2} | bad)


def test_the_linear_kernel_has_no_gamma():
    X, y = noisy(20)
    for model in (LASVM(kernel="linear"), SmoothSVM()):
        with pytest.raises(ValueError, match="the linear kernel has no gamma"):
            grid_search(model, X, y, Cs=[1.0], gammas=[0.1, 1.0])


def test_gamma_is_the_models_unless_values_are_given():
    X, y = noisy()
    search = grid_search(LASVM(gamma=0.25), X, y, Cs=[1.0, 5.0])
    assert search.gammas == [0.25]
    same_cells(grid_search(LASVM(gamma=0.25, tol=1e-4), X, y, Cs=[1.0, 5.0]), X, y, k=3)


def test_a_row_store_has_one_gamma_only():
    X, y = noisy(20)
    with pytest.raises(TypeError, match="rows are those of one gamma"):
        grid_search(LASVM(gamma=1.0), RowStore(X, RBF(1.0)), y, Cs=[1.0])


def test_all_starts_along_c_are_known():
    assert set(seeding.C_SEEDS) <= set(WARM_STARTS)


@pytest.mark.parametrize("model", [LASVM(), OneVsOne(LASVM())], ids=["two classes", "three classes"])
def test_a_metric_without_a_value_is_said(model):
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 3
    y = y if isinstance(model, OneVsOne) else y == 0
    with pytest.warns(RuntimeWarning, match="no setting has a score"):
        search = grid_search(
            model, X, y, Cs=[1.0, 2.0], folds=folds.leave_one_out(20), metric=lambda y, f: float("nan")
        )
    assert "best=None" in repr(search)
    for what in ("solution", "best"):
        with pytest.raises(ValueError, match="no setting has a score"):
            getattr(search, what)


def test_a_solution_for_scaled_features_is_not_handed_out():
    X, y = noisy()
    with pytest.raises(ValueError, match=r"the search scaled the features.* let an LASVM with the best C learn X"):
        _ = grid_search(LASVM(), X * [1.0, 1000.0], y, Cs=[1.0, 10.0], k=3).solution
    with pytest.raises(TypeError, match=r"Cs=1.0 must be a list of numbers"):
        grid_search(LASVM(), X, y, Cs=1.0)


def test_a_cell_says_how_its_folds_started():
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 3 == 0
    search = grid_search(LASVM(), X, y, Cs=[1.0, 50.0], folds=folds.leave_one_out(40))
    for cell in search.table:
        assert cell.result.seeding in ("path", "best", "skip")
        assert "seconds a fold" in cell.result.reason
        assert "along C" in cell.result.reason


def test_a_result_fits_on_a_screen_and_becomes_a_frame():
    X, y = noisy()
    search = grid_search(LASVM(), X, y, Cs=np.logspace(-2, 2, 9), gammas=np.logspace(-2, 2, 8), k=3, metric="roc_auc")
    assert repr(search.best).startswith(f"Cell(C={search.best.C:g}, gamma={search.best.gamma:g}, score=")
    assert "\n" not in repr(search.best)
    for shown in (repr(search), repr(search.table), repr(search.best.result.per_fold)):
        assert len(shown.splitlines()) < 40
    frame = search.to_frame()
    assert list(frame) == ["C", "gamma", "score", "spread", "iterations", "kernel_evaluations", "seconds"]
    assert len(frame) == 72
    assert frame.loc[frame.score.idxmax(), "score"] == search.best.score
    assert frame.iterations.sum() == search.iterations


def test_smooth_models_are_searched_too():
    X, y = noisy()
    w = np.random.default_rng(0).uniform(0.5, 1.5, len(y))
    search = grid_search(SmoothSVM(kernel="rbf", seed=3), X, y, Cs=[10.0, 0.1], gammas=GAMMAS, k=4, sample_weight=w)
    assert [(cell.C, cell.gamma) for cell in search.table] == [(C, g) for C in (0.1, 10.0) for g in GAMMAS]
    for cell in search.table:
        model = SmoothSVM(C=cell.C, kernel="rbf", gamma=cell.gamma)
        alone = cross_validate(model, X, y, k=4, sample_weight=w)
        np.testing.assert_array_equal(cell.result.decision_values, alone.decision_values)
    assert search.solution.get_params() == SmoothSVM(search.best.C, "rbf", gamma=search.best.gamma, seed=3).get_params()
    assert search.solution.score(X, y) > 0.8
    assert dict(search.status) == {"converged": 16}
    with pytest.raises(ValueError, match=r"warm_start='best': the solver= of a SmoothSVM"):
        grid_search(SmoothSVM(), X, y, Cs=[1.0], warm_start="best")


def test_a_search_without_scores_is_shown_all_the_same():
    X, y = noisy()
    with pytest.warns(RuntimeWarning, match="no setting has a score"):
        search = grid_search(LASVM(), X, y, Cs=[1.0], folds=[([*range(1, len(y))], [0])], metric="roc_auc")
    assert "best=None" in repr(search)


# --------------------------------------------------------------------------------------------------------------- refit


def refit_of(X, y, Cs, **parameters):
    """A search on one gamma, and its solution's violation, computed anew."""
    model = LASVM(tol=1e-4, gamma=0.5, **parameters)
    splits = folds.repeated(lambda seed: folds.stratified(y, 3, seed=seed), 2)
    found = grid_search(model, X, y, Cs=Cs, folds=splits).solution
    g = naive.gradient(found.dual_coef, found.y, naive.gram(found.store.kernel, X, X))
    assert found.converged
    return found, naive.violation(found.dual_coef, g, found.lo, found.hi)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_the_solution_starts_from_the_coefficients_of_the_folds(kernel):
    X, y = noisy(400)
    found, violation = refit_of(X, y, [1.0], kernel=kernel)
    assert violation <= 1.1e-4
    alone = smo.solve(X, y, 1.0, kernel, gamma=0.5, options=SolverOptions(tol=1e-4))
    assert found.objective == pytest.approx(alone.objective, rel=1e-5)
    if kernel == "rbf":  # others have larger values, whose rounding may take steps in double precision
        assert found.rows_computed == 0  # the matrix was at hand
        assert found.iterations < alone.iterations


@pytest.mark.parametrize("parameters", [{"kernel": "sigmoid"}, {"kernel": "rbf"}])
def test_without_a_start_from_the_folds_the_solution_is_that_of_smo(parameters):
    """A sigmoid kernel has several optima; a large C asks for double precision."""
    X, y = noisy(60)
    C = 1.0 if parameters["kernel"] == "sigmoid" else 1e6
    found, _ = refit_of(X, y, [C], **parameters)
    alone = smo.solve(X, y, C, gamma=0.5, options=SolverOptions(tol=1e-4), **parameters)
    np.testing.assert_array_equal(found.dual_coef, alone.dual_coef)


def test_an_example_of_weight_0_gets_no_coefficient_in_the_solution():
    X, y = noisy(200)
    weights = np.where(np.arange(200) % 5, 1.5, 0.0)
    found = grid_search(LASVM(tol=1e-4), X, y, Cs=[1.0], gammas=GAMMAS, sample_weight=weights).solution
    assert not found.dual_coef[weights == 0.0].any()
    assert np.abs(found.dual_coef).max() <= 1.5
    assert abs(found.dual_coef.sum()) < 1e-9
