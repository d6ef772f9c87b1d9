"""The processor that code is compiled for: this very one, or a level that many processors have in common.

A wheel carries code for levels, under the names that compilers have for them.  ``STREAMSVM_CPU`` names the level of all
code of a process: processes of one level compute the same bits, whatever their processors are.  ``native`` is a choice,
too: this processor, without the wheel's code.
"""

import os
from typing import NamedTuple

from llvmlite import binding
from numba import config
from numba.core.registry import cpu_target

CHOSEN = os.environ.get("STREAMSVM_CPU", "")
NATIVE = "native"

_V2 = "+cx16,+popcnt,+sahf,+sse3,+sse4.1,+sse4.2,+ssse3"
_V3 = f"{_V2},+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave"
_V4 = f"{_V3},+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512vl"
_LEVELS = {  # of each architecture, from the lowest to the highest
    "x86_64": {"x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4},
    "aarch64": {"generic": ""},
}


class LevelError(ValueError):
    """The level that ``STREAMSVM_CPU`` names cannot be had."""


class Target(NamedTuple):
    """What code is compiled for, as numba's code generator describes it."""

    triple: str
    processor: str
    features: str

    def has(self) -> set[str]:
        """The names of its features."""
        return {name[1:] for name in self.features.split(",") if name.startswith("+")}


def current() -> Target:
    """What this process compiles for."""
    return Target(*cpu_target.target_context.codegen().magic_tuple())


def levels() -> list[Target]:
    """The levels that this processor has, the best one first."""
    triple = binding.get_process_triple()
    has = {name for name, is_there in binding.get_host_cpu_features().items() if is_there}
    every = [Target(triple, *level) for level in _LEVELS.get(triple.split("-")[0], {}).items()]
    return [level for level in reversed(every) if level.has() <= has]


def accepted() -> list[Target]:
    """The targets whose code this process runs without compiling it, the first choice first.

    A level must have fused multiplication if the process compiles for it: of two functions, the level may have one and
    the compiler make the other, and both must round alike.
    """
    own = current()
    if CHOSEN or config.CPU_NAME is not None or config.CPU_FEATURES is not None:
        return [own]
    return [own, *(level for level in levels() if ("fma" in level.has()) == ("fma" in own.has()))]


def _compile_for(name: str) -> None:
    """Make numba compile for a level from now on."""
    possible = {level.processor: level for level in levels()}
    if name not in possible:
        raise LevelError(f"STREAMSVM_CPU={name} is none of this processor's levels: {', '.join(possible)} or {NATIVE}")
    level = possible[name]
    config.CPU_NAME, config.CPU_FEATURES = level.processor, level.features
    if current() != level:
        raise LevelError(f"STREAMSVM_CPU={name} comes too late: import streamsvm before numba compiles anything else")


if CHOSEN and CHOSEN != NATIVE:  # before any other file of this folder asks numba what it compiles for
    _compile_for(CHOSEN)
