"""The algorithms as a scikit-learn classifier.

The estimators do the work.  This room checks the input, turns labels into numbers, and adds what users of `fit` expect:
the optimum over all examples, and a result that does not depend on their order.

`classifier` learns, and `fitted` predicts and tells what was learned.  `optimum` solves over a whole training set.
"""

try:
    import sklearn  # noqa: F401 - asks whether it is installed
except ImportError as error:
    raise ImportError('streamsvm.sklearn_api needs scikit-learn: pip install "streamsvm[sklearn]"') from error

from streamsvm.sklearn_api.classifier import LASVMClassifier

__all__ = ["LASVMClassifier"]
