"""The parts of numba that it does not document and `core/compiling` uses: the list, and which test notices a change.

numba's upper bound in pyproject.toml stands for these.  Before it is raised, the tests named here must pass.
"""

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).parents[3]
DOCUMENTED = ("numba", "numba.extending")
KEEPS_CODE = "test_jit.test_the_second_process_compiles_nothing"
REFERENCES = "test_jit.test_another_array_gets_code_of_its_own"
PARTS = {
    # parts and entries, and what is stored of them
    "numba.core.codegen": KEEPS_CODE,
    "numba.core.compiler": KEEPS_CODE,
    "numba.core.environment.lookup_environment": KEEPS_CODE,
    "numba.core.serialize.dumps": KEEPS_CODE,
    "numba.core.targetconfig.TargetConfig": "test_jit.test_the_values_of_options_are_those_of_numba",
    # the processor
    "numba.core.registry.cpu_target": "test_jit.test_a_level_that_cannot_be_is_refused",
    # the choice of code by the classes of the arguments
    "numba.core.registry.CPUDispatcher": "test_jit.test_the_classes_find_the_code",
    "numba.core.typing.typeof.Purpose": "test_jit.test_the_classes_find_the_code",
    "numba.core.typing.typeof.typeof": "test_jit.test_the_classes_find_the_code",
    # named tuples by reference
    "numba.core.cgutils": REFERENCES,
    "numba.core.datamodel.models": REFERENCES,
    "numba.core.typing.templates.AttributeTemplate": REFERENCES,
    "numba.core.typing.typeof.typeof_impl": REFERENCES,
    "numba.np.arrayobj.populate_array": REFERENCES,
    "numba.np.numpy_support.as_dtype": REFERENCES,
    "numba.np.arrayobj.make_array": REFERENCES,
    # what a person sees who waits
    "numba.core.event.Event": "test_wheel.test_a_wheel_with_code_compiles_nothing",
    "numba.core.event.Listener": "test_wheel.test_a_wheel_with_code_compiles_nothing",
    "numba.core.event.install_listener": "test_wheel.test_a_wheel_with_code_compiles_nothing",
}


def imported():
    for path in (ROOT / "streamsvm" / "core" / "compiling").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "numba":
                yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module not in DOCUMENTED)


@functools.cache
def named_in(name):
    (path,) = (ROOT / "tests").rglob(f"{name}.py")
    return {node.name for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)}


def test_the_list_has_every_part_of_numba_that_is_not_documented():
    assert set(imported()) == set(PARTS)


def test_a_test_notices_a_change_of_each():
    for test in PARTS.values():
        file, _, name = test.partition(".")
        assert name in named_in(file)
