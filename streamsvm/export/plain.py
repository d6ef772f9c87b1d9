"""The description as JSON."""

import json
import math
from typing import Any

from streamsvm.export.description import Description, describe
from streamsvm.export.fields import plain_records

FORMAT, VERSION = "streamsvm model", 1
OF_FEATURE = ("name", "shift", "factor", "missing")


def to_json(model: Any) -> str:
    """A model as JSON text, which says in plain values how the model decides; docs/export.md specifies it.

    Parameters
    ----------
    model
        The model; see `describe`, which also says what is raised.

    Examples
    --------
    >>> import json
    >>> from streamsvm import LASVM
    >>> model = LASVM(gamma=0.5)
    >>> model.learn_many([{"a": 0.0}, {"a": 1.0}], [False, True])
    >>> written = json.loads(to_json(model))
    >>> written["labels"], written["features"]
    ([False, True], [{'name': 'a', 'shift': 0.0, 'factor': 1.0, 'missing': 0.0}])
    """
    return json.dumps(plain_values(describe(model)), allow_nan=False) + "\n"


def plain_values(found: Description) -> dict[str, Any]:
    """The description as JSON holds it."""
    columns = (found.features, found.shift.tolist(), found.factor.tolist(), found.missing.tolist())
    machines = zip(found.coefficients.tolist(), found.bias.tolist(), found.slopes.tolist(), strict=True)
    members = found.members
    return {
        "format": FORMAT,
        "version": VERSION,
        "features": [dict(zip(OF_FEATURE, own, strict=True)) for own in zip(*columns, strict=True)],
        "limit": found.limit if math.isfinite(found.limit) else None,
        "kernel": {"name": found.kernel, "degree": found.degree, "coef0": found.coef0},
        "members": {
            "starts": members.indptr.tolist(),
            "columns": members.indices.tolist(),
            "values": members.data.tolist(),
            "gamma": found.gamma.tolist(),
        },
        "machines": [
            {"coefficients": coefficients, "bias": bias, "slopes": slopes} for coefficients, bias, slopes in machines
        ],
        "labels": found.labels,
        "decision": found.decision,
        "threshold": found.threshold,
        "guarantee": None if found.guarantee is None else found.guarantee._asdict(),
        "records": None if found.records is None else plain_records(found.records),
    }
