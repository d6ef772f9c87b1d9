"""The command ``streamsvm erase``: make every model forget a person's records at once."""

import argparse
from collections.abc import Collection, Mapping

from ...runtime.exit_codes import BAD_DATA
from ...runtime.text import plural
from ...settings import topics
from ...settings.opening import open_once
from ..shared.configuration import read_config
from ..shared.trainers import ask, behind, tell_behind
from .subjects import ID, Found, Subjects

NEEDS = {
    "log.erasures": 'there is no topic of requests to forget. Set log.erasures to its name, such as "erasures", and '
    "restart the trainers"
}
NOT_REACHED = (
    "not reached: the log itself and its copies, predictions and dead letters, backups of the state folder, exported "
    "and merged models, and the traces that docs/erase.md lists"
)


def run(arguments: argparse.Namespace) -> int | None:
    settings = read_config(arguments, NEEDS)
    subjects = Subjects(settings, arguments.subject, arguments.by)
    topics.create(settings, names=[settings.log.erasures])
    with open_once(settings) as log:
        found = subjects.find(log)
        models = subjects.models()
        _tell_unknown(subjects.unknown, arguments.by)
        if not (models or any(here.examples for here in found.values())):
            print("nothing is erased")
            return BAD_DATA
        requests = {number: here.erasure(models).to_values() for number, here in found.items()}
        ends = ask(log, settings.log.erasures, requests)
    _tell(found, len(subjects.values), len(subjects.unknown))
    asked = {number: ends[number] for number, here in found.items() if here.examples or models}
    if waiting := behind(settings, "erasures", asked):
        tell_behind(waiting)
    else:
        print("the trainers have forgotten them, and the newest checkpoints are without them")
    print(NOT_REACHED)
    return None


def _tell_unknown(unknown: Collection[str], by: str) -> None:
    kept = ", and only a model that has kept it forgets it" if by == ID else ""
    for value in sorted(unknown):
        print(f"no event of the log has {by} = {value!r}{kept}; --by says where a subject's name stands")


def _tell(found: Mapping[int, Found], n_subjects: int, n_unknown: int) -> None:
    n_events, n_labels = (sum(len(getattr(here, name)) for here in found.values()) for name in ("events", "labels"))
    known = f"{n_subjects - n_unknown} of " if n_unknown else ""
    print(
        f"{known}{plural(n_subjects, 'subject')}: {plural(n_events, 'event')} and {plural(n_labels, 'label')} are "
        "erased: no model keeps them, no later run learns them"
    )
