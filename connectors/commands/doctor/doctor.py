"""The command ``streamsvm doctor``: what is wrong with an installation, its configuration, its state and its log."""

import argparse

from ...runtime import exit_codes
from ...runtime.findings import PROBLEM
from ...settings.opening import backend_of
from ...settings.sections import ConfigError, Settings
from ..shared.configuration import read_config
from . import machine
from .decisions import check_decisions
from .log import check_log
from .services import check_objects, check_registry
from .state import check_state


def run(arguments: argparse.Namespace) -> int:
    try:
        settings = read_config(arguments, log_must_exist=False) if arguments.config else None
    except ConfigError:
        examine(None)
        raise
    return exit_codes.OK if examine(settings) else exit_codes.FAILED


def examine(settings: Settings | None) -> bool:
    """Run and print all checks, or those that need no configuration; return whether they found no problem."""
    checks = {"python": machine.python(), "compile cache": machine.compile_cache(settings)}
    if settings is not None:
        checks |= {
            "packages": backend_of(settings).installed(),
            "state": check_state(settings),
            "objects": check_objects(settings),
            "registry": check_registry(settings),
            "log": check_log(settings),
            "decisions": check_decisions(settings),
        }
    n_problems = 0
    for name, findings in checks.items():
        for finding in findings:  # Each check runs while its findings are taken.
            n_problems += finding.level == PROBLEM
            print(f"{finding.level:8} {name}: {finding.text}" + (f"\n{'':9}{finding.remedy}" if finding.remedy else ""))
    return n_problems == 0
