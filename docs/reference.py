"""The pages that are made from the code: the command line from its parsers, the configuration from its classes."""

import argparse
import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields
from functools import partial
from typing import Any

from streamsvm.connectors.commands import cli
from streamsvm.connectors.settings.challengers import ChallengerSettings
from streamsvm.connectors.settings.model import ModelSettings
from streamsvm.connectors.settings.sections import SECTIONS
from streamsvm.estimators.learners import ALGORITHMS

WIDTH = 88  # of usages


def commands() -> str:
    """Every command: what it does, its usage, and a table of its arguments."""
    (subcommands,) = (action for action in cli.make_parser()._actions if isinstance(action, argparse._SubParsersAction))
    purpose = {choice.dest: choice.help for choice in subcommands._choices_actions}
    parts = []
    for name, command in subcommands.choices.items():
        command.formatter_class = partial(argparse.HelpFormatter, width=WIDTH)
        usage = re.sub(r"\x1b\[[\d;]*m", "", command.format_usage())  # colours
        parts += [
            f"## {name}",
            f"{_sentence(purpose[name])} {_plain(command.description or '')}",
            f"```text\n{usage}```",
        ]
        parts += [_arguments(group) for group in command._action_groups if group._group_actions]
    return "\n\n".join(parts)


def _arguments(group: argparse._ArgumentGroup) -> str:
    is_own = group.title not in ("positional arguments", "options")
    about = [f"*{_sentence(str(group.title))}* {_plain(group.description or '')}\n"] if is_own else []
    rows = [
        f"| {_form(action)} | {_plain(action.help or '')} |"
        for action in group._group_actions
        if action.help and action.dest != "help"
    ]
    return "\n".join([*about, "| argument | |", "|---|---|", *rows]) if rows else ""


def _form(action: argparse.Action) -> str:
    value = action.metavar or (
        "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()
    )
    if not action.option_strings:
        return f"`{value if action.metavar or action.choices else action.dest}`"
    names = ", ".join(action.option_strings)
    return f"`{names}`" if action.nargs == 0 else f"`{names} {value}`"


def configuration() -> str:
    """Every section: what it is for, and a table of its keys with their defaults and meanings."""
    parts = [_section(name, section) for name, section in SECTIONS.items()]
    return "\n\n".join([*parts, _section("[challenger]", ChallengerSettings)])


def _section(name: str, section: Any) -> str:
    about, meanings = _described(section)
    if section is ModelSettings:
        for algorithm in ALGORITHMS.values():
            meanings = {**_described(algorithm)[1], **meanings}
    unexplained = [key.name for key in fields(section) if key.name not in meanings and key.name != "model"]
    if unexplained:
        raise LookupError(f"the docstring of {section.__name__} does not explain {', '.join(unexplained)}")
    rows = [
        f"| `{key.name}` | {_default({} if key.default is MISSING else key.default)} | {_plain(meanings[key.name])} |"
        for key in fields(section)
        if key.name != "model" or section is not ChallengerSettings  # a section of its own, like [model]
    ]
    return "\n".join([f"## [{name}]", "", about, "", "| key | default | |", "|---|---|---|", *rows])


def _default(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return f"`{list(value)}`"
    return f"`{value}`" if isinstance(value, int | float | dict) else f'`"{value}"`'


def _described(section: Any) -> tuple[str, dict[str, str]]:
    """The text before the parameters of a numpydoc docstring, and the meaning of each."""
    text = inspect.getdoc(section) or ""
    about, _, rest = text.partition("\nParameters\n----------\n")
    parameters = re.split(r"\n\n\w+\n-+\n", rest)[0]
    return about.strip(), dict(_entries(parameters))


def _entries(parameters: str) -> Iterator[tuple[str, str]]:
    for match in re.finditer(r"^(\w+(?:, \w+)*)\n((?:    .*\n?|\n)+)", parameters, re.MULTILINE):
        for name in match[1].split(", "):
            yield name, match[2]


def _plain(text: str) -> str:
    """One line of Markdown; ``code`` of docstrings becomes `code`."""
    text = " ".join(text.split()).replace("``", "`")
    return re.sub(r"(`[^`]*`)|([<|*])", lambda found: found[1] or {"<": "&lt;"}.get(found[2], f"\\{found[2]}"), text)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
