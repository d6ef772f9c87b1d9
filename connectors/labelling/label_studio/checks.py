"""Whether a project of Label Studio fits the configuration, and whether Label Studio is willing to call us."""

import logging
from collections.abc import Iterator

from ...logs.transport import AccessDenied
from ...settings.sections import ConfigError, Settings, refuse
from ..choices import Choices
from .api import Api, Gone, RequestRefused, member
from .interface import Interface, example

logger = logging.getLogger(__name__)

_BLOCKED = "network address"  # in what Label Studio says about addresses that its protection blocks
_ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - compared with labelling.host


def check_project(api: Api, number: int, settings: Settings) -> tuple[Interface, int | None]:
    """The labelling interface of a project, and how many annotations of a task Label Studio asks for, if it says so.

    Raises
    ------
    ConfigError
        If there is no such project, or its interface does not offer both labels.
    """
    try:
        project = api.call("GET", f"/api/projects/{number}/")
    except Gone:
        problem = "Label Studio has no such project, or the token's user may not see it"
        raise ConfigError(f"--project {number}: {problem}") from None
    interface = Interface.read(member(project, "label_config", str), settings.label)
    if interface is None:
        names = [*Choices(settings.label).known] or ["cat", "dog"]
        raise ConfigError(
            f"--project {number}: its labelling interface has no Choices with "
            f"{' and '.join(map(repr, names))}; for example:\n{example(names)}"
        )
    n_asked = project.get("maximum_annotations")
    return interface, n_asked if isinstance(n_asked, int) else None


def too_few(number: int, n_asked: int | None, settings: Settings) -> str:
    """A sentence if a question wants more answers than Label Studio asks for; else an empty string."""
    wanted = settings.labelling.answers_per_question
    if n_asked is None or n_asked >= wanted:
        return ""
    return (
        f"project {number} shows a task until it has {n_asked} annotation(s), but labelling.answers_per_question = "
        f"{wanted}: set maximum_annotations ('Annotations per task') of the project to {wanted}, or questions wait for "
        "answers that Label Studio does not ask for"
    )


def check(api: Api, number: int, settings: Settings) -> None:
    """Check a project, and ask Label Studio to call us, in ways that make neither a model nor a webhook.

    Raises
    ------
    ConfigError
        Also if Label Studio does not call an address such as ours.
    """
    _, n_asked = check_project(api, number, settings)
    if few := too_few(number, n_asked, settings):
        logger.warning("%s", few)
    host = settings.labelling.host
    if host in _ANY_ADDRESS:  # which of the addresses Label Studio will call is not known
        return
    address = f"http://[{host}]" if ":" in host else f"http://{host}"
    refuse(_refusals(api, number, f"{address}:{settings.labelling.port}"))


def _refusals(api: Api, number: int, address: str) -> Iterator[str]:
    model = {"project": number, "url": f"{address}/nothing-is-here"}
    webhook = {"project": number, "url": f"{address}/webhook", "actions": ["NO_ACTION"]}
    for path, body, what, variable in (
        ("/api/ml/", model, "a model", "ML_BLOCK_LOCAL_IP"),
        ("/api/webhooks/", webhook, "webhooks", "SSRF_PROTECTION_ENABLED"),
    ):
        try:
            api.call("POST", path, body)
        except (RequestRefused, Gone):  # it would call the address; or it is too old to have this route
            pass
        except AccessDenied as error:
            if _BLOCKED not in str(error):
                raise
            yield (
                f"Label Studio's protection does not let it call {what} at {address}: start Label Studio with "
                f"{variable}=false in its environment"
            )
