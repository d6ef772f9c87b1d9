"""Run scikit-learn's own tests of SVC against `LASVMClassifier`.

    python tests/sklearn_api/svm_of_sklearn.py [OPTION of pytest ...]

The file is sklearn/svm/tests/test_svm.py, as installed.  `sklearn.svm.SVC` is replaced before it is imported.  Tests
that do not use SVC are left out, and so are those in `DESELECTED`, each with its reason.  Those whose reason is in
`NO_CLASSIFICATION` are about SVC's inner arrays and old names, and not about classification: they are counted apart.
"""

import inspect
import sys
from typing import Any

import pytest
import sklearn.svm

from streamsvm.sklearn_api import LASVMClassifier

SVC_ITSELF = sklearn.svm.SVC
PRIVATE = "changes private arrays of SVC, which the model does not have"
DEPRECATED = "tests the parameter `probability`, or attributes, which SVC will lose in version 1.11"
NO_CLASSIFICATION = (PRIVATE, DEPRECATED)
DESELECTED = {
    "test_libsvm_convergence_warnings": "`max_iter` counts passes, and two passes reach the optimum",
    "test_tweak_params": PRIVATE,
    "test_svc_raises_error_internal_representation": PRIVATE,
    "test_hasattr_predict_proba": DEPRECATED,
    "test_probability_raises_futurewarning": DEPRECATED,
    "test_svc_nusvc_probA_probB_deprecated": DEPRECATED,
    "test_bad_input": "asks for an error, but a model that has learned from dense arrays predicts sparse ones, too",
}


class SVC(LASVMClassifier):
    """`LASVMClassifier` with two parameters of SVC that it does not need, and SVC's private name of `gamma_`.

    It has probabilities anyway, and draws no random numbers.
    """

    algorithm, ramp_s, cache_mb, device = "lasvm", -1.0, 256.0, "cpu"

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        class_weight: dict | str | None = None,
        tol: float = 1e-3,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        max_iter: int = 100,
        probability: bool = True,
        random_state: Any = None,
    ) -> None:
        given = {name: value for name, value in locals().items() if name != "self" and not name.startswith("_")}
        self.__dict__.update(given)

    @property
    def _gamma(self) -> float:
        return self.gamma_


def uses_svc(item: pytest.Item) -> bool:
    """Whether a test is about SVC: it names it, or gets it as a parameter."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    given = [value for value in parameters.values() if _is_estimator(value)]
    if given:
        return any(value is SVC or type(value) is SVC for value in given)
    return "svm.SVC" in inspect.getsource(item.function)


def _is_estimator(value: Any) -> bool:
    return hasattr(value if isinstance(value, type) else type(value), "fit")


class InPlaceOfSVC:
    """The plugin for pytest."""

    def __init__(self) -> None:
        self.counts = {"deselected": 0, "passed": 0, "failed": 0, "skipped": 0}
        self.n_others = 0

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out what is not about SVC, and what is deselected."""
        about_svc = [item for item in items if uses_svc(item)]
        reasons = [DESELECTED.get(item.name) or DESELECTED.get(item.originalname) for item in about_svc]
        kept = [item for item, reason in zip(about_svc, reasons, strict=True) if reason is None]
        self.n_others = sum(reason in NO_CLASSIFICATION for reason in reasons)
        self.counts["deselected"] = len(about_svc) - len(kept) - self.n_others
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count outcomes."""
        if report.when == "call" or report.outcome == "skipped":
            self.counts[report.outcome] += 1


def main(options: list[str]) -> int:
    """Run the tests; return pytest's exit status."""
    sklearn.svm.SVC = SVC
    try:
        plugin = InPlaceOfSVC()
        source = ["--pyargs", "sklearn.svm.tests.test_svm", "-p", "no:cacheprovider", "-c", "/dev/null"]
        status = pytest.main([*source, *options], plugins=[plugin])
    finally:
        sklearn.svm.SVC = SVC_ITSELF
    counts, total = plugin.counts, sum(plugin.counts.values())
    if total:
        share = (
            f"of {total} tests of classification, {counts['passed']} pass ({counts['passed'] / total:.0%}); {counts}"
        )
        print(f"{share}; {plugin.n_others} tests of private arrays and deprecated names are left out")
    return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
