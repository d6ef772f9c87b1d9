"""The compile policy: cached on disk, never stale, and usable where nothing can be written."""

import base64
import hashlib
import os
import pty
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numba.core.compiler import Flags

from streamsvm.core.compiling._cache import DAY, KEPT_DAYS, KEPT_FOLDERS, CodeFolder, remove_old, user_folder
from streamsvm.core.compiling._dispatch import by_class, of_numbers
from streamsvm.core.compiling._jit import _values, compiled
from streamsvm.core.compiling._reference import by_reference
from streamsvm.core.compiling._target import accepted, current, levels
from streamsvm.core.expansion import Expansion
from streamsvm.core.storage import empty
from streamsvm.online.gap_steps import rescan

CORE = Path(__file__).parents[3] / "streamsvm" / "core" / "compiling"

CALLEE = """
from ._jit import compiled

@compiled
def number():
    return 1
"""
CALLER = """
from ._jit import compiled
from .callee import number

@compiled
def ten_times():
    return 10 * number()
"""
SCRIPT = """
import gc
from mini.core.compiling.caller import ten_times
from mini.core.compiling._jit import cache_state
state = cache_state()
print(ten_times(), sum(ten_times.stats.cache_hits.values()), state[1])
assert gc.isenabled()  # it is off while numba compiles
"""


@pytest.fixture
def package(tmp_path):
    """A package of two compiled functions in two files, one calling the other."""
    folder = tmp_path / "mini" / "core" / "compiling"
    folder.mkdir(parents=True)
    (folder.parents[1] / "_version.py").write_text('__version__ = "1.2"\n')
    for name in ("_jit.py", "_cache.py", "_target.py", "_archive.py"):
        (folder / name).write_text((CORE / name).read_text().replace("streamsvm.", "mini."))
    (folder / "__init__.py").touch()
    (folder / "callee.py").write_text(CALLEE)
    (folder / "caller.py").write_text(CALLER)
    return folder


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "home" / "cache" / "streamsvm"


def run(package, *options, script=SCRIPT, **environment):
    """Run the caller in a new process."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "STREAMSVM_"))}
    home = package.parents[2] / "home"
    variables |= {"PYTHONPATH": str(package.parents[2]), "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    return subprocess.run(
        [sys.executable, "-W", "error", *options, "-c", script],
        capture_output=True,
        text=True,
        cwd=package.parents[2],
        env=variables | environment,
        check=False,
    )


def call(package, **environment):
    """The caller's result, how often the cache served it, and whether there was code before."""
    answer = run(package, **environment)
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""
    result, hits, was_warm = answer.stdout.split()
    return int(result), int(hits), was_warm == "True"


def files(folder):
    return sorted(folder.rglob("*.code"))


@pytest.mark.long
def test_the_second_process_compiles_nothing(package, cache):
    assert call(package) == (10, 0, False)
    stored = files(cache)
    assert len(stored) == 2  # the caller, and the callee as a part
    assert call(package) == (10, 1, True)
    assert files(cache) == stored
    assert not list(package.rglob("*.nbi"))


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the folder's place differs")
def test_the_cache_is_a_private_folder_of_the_user(package, cache):
    call(package)
    (folder,) = cache.iterdir()
    assert folder.name.startswith("streamsvm-1.2-")
    assert folder.stat().st_mode & 0o777 == 0o700
    shutil.rmtree(cache)
    assert call(package, XDG_CACHE_HOME="relative") == (10, 0, False)
    assert len(files(package.parents[2] / "home" / ".cache" / "streamsvm")) == 2


@pytest.mark.long
def test_an_edited_callee_is_not_stale_in_its_cached_caller(package):
    assert call(package)[0] == 10
    (package / "callee.py").write_text(CALLEE.replace("return 1", "return 7"))
    assert call(package) == (70, 0, False)
    assert call(package) == (70, 1, True)


@pytest.mark.long
def test_another_version_has_another_folder(package, cache):
    call(package)
    (package.parents[1] / "_version.py").write_text('__version__ = "1.3"\n')
    assert call(package) == (10, 0, False)
    assert len(list(cache.iterdir())) == 2


@pytest.mark.long
def test_the_cache_can_be_switched_off(package, cache):
    assert call(package, STREAMSVM_CACHE="0") == (10, 0, False)
    assert not cache.exists()


@pytest.mark.long
def test_without_a_place_for_the_cache_functions_still_compile(package, tmp_path):
    """A file where the folder would be stands for a system without any writable place, for every user."""
    blocked = tmp_path / "blocked"
    blocked.touch()
    assert call(package, HOME=str(blocked), XDG_CACHE_HOME=str(blocked)) == (10, 0, False)
    assert call(package, NUMBA_CACHE_DIR=str(blocked)) == (10, 0, False)


@pytest.mark.long
def test_code_without_bounds_checks_is_never_taken_for_code_with_them(package):
    """Nor the other way round, in one cache: `make bounds-test` would test nothing, or users pay for its checks."""
    assert call(package)[:2] == (10, 0)
    assert call(package, NUMBA_BOUNDSCHECK="1")[:2] == (10, 0)
    assert call(package, NUMBA_BOUNDSCHECK="1")[:2] == (10, 1)
    assert call(package)[:2] == (10, 1)


@pytest.mark.long
def test_the_cache_may_lie_elsewhere_and_holds_code_for_each_processor(package, tmp_path, cache):
    folder = {"NUMBA_CACHE_DIR": str(tmp_path / "chosen")}
    for processor in ({}, {"NUMBA_CPU_NAME": "generic"}):
        assert call(package, **folder, **processor)[:2] == (10, 0)
        assert call(package, **folder, **processor)[:2] == (10, 1)
    assert call(package, **folder)[:2] == (10, 1)
    assert len(list((tmp_path / "chosen").iterdir())) == 2
    assert not cache.exists()


# --- what is not to be trusted ----------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("damage", ["empty", "cut", "changed", "a class that has gone"])
def test_code_that_cannot_be_read_is_compiled_anew(package, cache, damage):
    call(package)
    for path in files(cache):
        content = path.read_bytes()
        if damage == "a class that has gone":  # a pickle that refers to a module that no longer exists
            code = b"cmodule_that_has_gone\nKind\n."
            path.write_bytes(hashlib.sha256(code).digest() + code)
        else:
            path.write_bytes({"empty": b"", "cut": content[:-9], "changed": content[:-1] + b"\0"}[damage])
    assert call(package) == (10, 0, True)
    assert call(package) == (10, 1, True)


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="no modes")
@pytest.mark.parametrize("mode", [0o770, 0o702])
def test_a_folder_that_others_may_write_to_is_not_read(package, cache, mode):
    call(package)
    (folder,) = cache.iterdir()
    folder.chmod(mode)
    assert call(package) == (10, 0, False)
    folder.chmod(0o700)
    assert call(package) == (10, 1, True)


@pytest.mark.skipif(sys.platform == "win32", reason="no owners")
def test_a_folder_of_another_user_is_not_read(tmp_path, monkeypatch):
    folder = CodeFolder(tmp_path, "1", "state")
    folder.write("f", b"code")
    assert CodeFolder(tmp_path, "1", "state").read("f") == b"code"
    if os.geteuid() == 0:
        os.chown(folder.path, 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: folder.path.stat().st_uid + 1)
    assert CodeFolder(tmp_path, "1", "state").read("f") is None


def test_a_link_is_not_the_folder(tmp_path):
    folder = CodeFolder(tmp_path, "1", "state")
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.path.symlink_to(tmp_path / "elsewhere")
    assert not folder.is_usable


def test_code_that_cannot_be_stored_is_no_error(tmp_path):
    folder = CodeFolder(tmp_path, "1", "state")
    assert folder.is_usable
    shutil.rmtree(folder.path)  # as another process does with a folder that is old
    folder.write("f", b"code")
    assert folder.read("f") is None
    assert not folder.has_code()


def test_the_values_of_options_are_those_of_numba():
    options = Flags()
    options.nrt = True
    assert list(_values(options).items()) == list(options.values().items())


# --- functions that entries share -------------------------------------------------------------------------------------


@pytest.fixture
def sharing(package):
    """The package with a callee that has code of its own."""
    (package / "callee.py").write_text(CALLEE.replace("compiled", "shared"))
    return package


@pytest.mark.long
def test_a_shared_function_is_called_and_not_taken_in(sharing, cache):
    assert call(sharing) == (10, 0, False)
    (callee,) = cache.rglob("callee.number-*.code")
    assert call(sharing) == (10, 1, True)
    callee.unlink()  # What calls it needs the new code of it.
    assert call(sharing) == (10, 0, True)
    assert callee.exists()
    assert call(sharing) == (10, 1, True)


@pytest.mark.long
def test_a_function_that_numba_alone_compiles_calls_a_shared_one(sharing):
    script = "import numba\nfrom mini.core.compiling.callee import number\nprint(numba.njit(lambda: 10 * number())())"
    for _ in range(2):  # compiled, and from the cache
        assert run(sharing, script=script).stdout.split() == ["10"]


@pytest.mark.long
def test_two_processes_that_compile_at_once_leave_no_caller_without_its_callee(sharing, cache):
    """The one stores the caller, and the other the callee, under another symbol."""
    elsewhere = str(sharing.parents[2] / "elsewhere")
    script = f"import numba; numba.njit(lambda: 1)()\n{SCRIPT}"  # Numba numbers the functions of a process.
    assert run(sharing, script=script, NUMBA_CACHE_DIR=elsewhere).returncode == 0
    assert call(sharing) == (10, 0, False)
    (callee,), (other,) = cache.rglob("callee.number-*.code"), Path(elsewhere).rglob("callee.number-*.code")
    assert callee.name == other.name
    assert callee.read_bytes() != other.read_bytes()
    shutil.copy(other, callee)
    assert call(sharing) == (10, 0, True)
    assert call(sharing) == (10, 1, True)


@pytest.mark.long
def test_a_wheel_brings_what_its_entries_share(sharing, cache):
    assert call(installed(sharing)) == (10, 1, True)
    assert not files(cache)


# --- what a wheel brings ----------------------------------------------------------------------------------------------

BEST = levels()[0].processor if levels() else "native"
PACK = """
from pathlib import Path
from mini.core.compiling import _jit
from mini.core.compiling.caller import ten_times
ten_times()
print(*_jit.pack(Path(_jit.__file__).parent))
"""


@pytest.fixture
def wheel(package):
    return installed(package)


def installed(package):
    """The package as a wheel would have installed it, with code; and nothing in the user's folder."""
    assert run(package, script=PACK, STREAMSVM_CPU=BEST).stdout.split()[1] == "1"  # no part, only the caller
    shutil.rmtree(package.parents[2] / "home")
    write_record(package)
    return package


def write_record(package):
    (archive,) = package.glob("code-*.zip")
    digest = base64.urlsafe_b64encode(hashlib.sha256(archive.read_bytes()).digest()).rstrip(b"=").decode()
    record = package.parents[2] / "streamsvm-1.2.dist-info"
    record.mkdir(exist_ok=True)
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: streamsvm\nVersion: 1.2\n")
    name = archive.relative_to(package.parents[2]).as_posix()
    (record / "RECORD").write_text(f"{name},sha256={digest},{archive.stat().st_size}\n")
    return archive


@pytest.mark.long
def test_the_code_of_a_wheel_is_not_compiled(wheel, cache):
    for chosen in ({}, {"STREAMSVM_CPU": BEST}, {"STREAMSVM_CACHE": "0"}):
        assert call(wheel, **chosen) == (10, 1, True)
        assert not files(cache)


@pytest.mark.long
@pytest.mark.parametrize("spoiled", ["changed", "no record", "open to all", "a link", "edited source"])
def test_code_that_is_not_as_the_wheel_brought_it_is_compiled_anew(wheel, spoiled):
    (archive,) = wheel.glob("code-*.zip")
    result = 10
    if spoiled == "changed":
        archive.write_bytes(archive.read_bytes() + b" ")
    elif spoiled == "no record":
        (wheel.parents[2] / "streamsvm-1.2.dist-info" / "RECORD").unlink()
    elif spoiled == "open to all":
        archive.chmod(0o666)
    elif spoiled == "a link":
        archive.symlink_to(archive.rename(archive.with_suffix(".moved")))
    else:
        result = 70
        (wheel / "callee.py").write_text(CALLEE.replace("return 1", "return 7"))
    assert call(wheel) == (result, 0, False)
    assert call(wheel) == (result, 1, True)


@pytest.mark.long
def test_an_archive_that_is_broken_is_compiled_anew(wheel):
    """Its digest is right: it was broken before the wheel was made."""
    (archive,) = wheel.glob("code-*.zip")
    archive.write_bytes(archive.read_bytes()[:-30])
    write_record(wheel)
    assert call(wheel)[:2] == (10, 0)


@pytest.mark.long
@pytest.mark.parametrize("chosen", [{"STREAMSVM_CPU": "native"}, {"NUMBA_CPU_NAME": "generic"}])
def test_another_choice_of_processor_does_without_the_code_of_a_wheel(wheel, chosen):
    assert call(wheel, **chosen) == (10, 0, False)


@pytest.mark.long
def test_a_level_that_cannot_be_is_refused(package):
    refused = run(package, STREAMSVM_CPU="pdp-11").stderr
    assert f"STREAMSVM_CPU=pdp-11 is none of this processor's levels: {BEST}, " in refused
    late = run(package, script=f"import numba; numba.njit(lambda: 1)()\n{SCRIPT}", STREAMSVM_CPU=BEST).stderr
    assert f"STREAMSVM_CPU={BEST} comes too late: import streamsvm before numba compiles anything else" in late


def test_every_accepted_level_rounds_as_this_process_does():
    own = current()
    for target in accepted():
        assert target.has() <= own.has()
        assert ("fma" in target.has()) == ("fma" in own.has())
    assert [len(level.has()) for level in levels()] == sorted((len(level.has()) for level in levels()), reverse=True)


# --- what goes --------------------------------------------------------------------------------------------------------


def make(parent, name, age):
    path = parent / name
    path.mkdir()
    (path / "f.code").touch()
    os.utime(path, (time.time() - age * DAY,) * 2)
    return path


def test_folders_that_were_not_used_for_long_go_and_nothing_else(tmp_path):
    old = make(tmp_path, "streamsvm-0.1.0-0123456789abcdef", KEPT_DAYS + 1)
    young = make(tmp_path, "streamsvm-0.1.0-0123456789abcdee", KEPT_DAYS - 1)
    foreign = make(tmp_path, "core_0123456789abcdef", KEPT_DAYS + 1)  # numba's, of another package
    folder = CodeFolder(tmp_path, "1", "state")
    assert folder.is_usable
    assert not old.exists()
    assert sorted(tmp_path.iterdir()) == sorted([young, foreign, folder.path])


def test_only_the_newest_folders_stay(tmp_path):
    folders = [make(tmp_path, f"streamsvm-0.1.0-{age:016x}", age) for age in range(KEPT_FOLDERS + 3)]
    remove_old(tmp_path)
    assert [path.exists() for path in folders] == [True] * KEPT_FOLDERS + [False] * 3
    assert len(list(tmp_path.iterdir())) == KEPT_FOLDERS


def test_a_folder_in_use_stays_young(tmp_path):
    CodeFolder(tmp_path, "1", "state").write("f", b"code")
    path = CodeFolder(tmp_path, "1", "state").path
    os.utime(path, (time.time() - 2 * DAY,) * 2)
    assert CodeFolder(tmp_path, "1", "state").read("f") == b"code"
    assert path.stat().st_mtime > time.time() - DAY


@pytest.mark.parametrize(
    ("platform", "expected"), [("linux", ".cache/streamsvm"), ("darwin", "Library/Caches/streamsvm")]
)
def test_the_folder_s_usual_place(monkeypatch, tmp_path, platform, expected):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert user_folder("") == tmp_path / expected
    assert user_folder("/chosen") == Path("/chosen")


# --- what a user sees -------------------------------------------------------------------------------------------------


def at_a_terminal(package):
    """What a process shows at a terminal, with stderr and stdout in one."""
    ours, its = pty.openpty()
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "STREAMSVM_"))}
    home = package.parents[2] / "home"
    variables |= {"PYTHONPATH": str(package.parents[2]), "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    command = [sys.executable, "-c", SCRIPT]
    subprocess.run(command, check=True, cwd=package.parents[2], env=variables, stdout=its, stderr=its)
    os.close(its)
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    return shown.splitlines()[:2]  # then, colorama resets the terminal


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="no terminals")
def test_a_terminal_says_once_that_code_is_compiled(package):
    said, result = at_a_terminal(package)
    expected = "up to two minutes of CPU time, once for this installation"
    assert said == f"streamsvm compiles code for its first use: {expected}"
    assert result.startswith("10 0")
    assert at_a_terminal(package)[0] == "10 1 True"


# --- large tuples -----------------------------------------------------------------------------------------------------


def test_compiled_code_refuses_arrays_that_it_could_not_address():
    s = empty(10**6)
    assert isinstance(s, Expansion)
    rescan(s)
    with pytest.raises(TypeError, match=r"Expansion.g is array\(float64, 1d, A\): it must be contiguous"):
        rescan(s._replace(g=np.zeros(2 * len(s.g))[::2]))


@compiled
def first_array(s):
    return s.alpha


@compiled
def arrays_and_more(s):
    return 1, (s.g, 2)


@compiled
def length_of_alpha(s):
    return first_array(s).shape[0]


def test_no_array_of_a_reference_gets_out():
    """Compiled code counts no references to these arrays: Python would hold one whose memory is gone."""
    s = empty(10**6)
    for function in (first_array, arrays_and_more):
        with pytest.raises(TypeError, match=f"{function.__name__} returns an array to Python"):
            function(s)
    assert length_of_alpha(s) == len(s.alpha)  # from one compiled function to another it may go


# --- code by the classes of the arguments -----------------------------------------------------------------------------


@by_reference
class Pair(NamedTuple):
    a: np.ndarray
    b: np.ndarray


@of_numbers
class Line(NamedTuple):
    slope: float
    at: int


@by_class
@compiled
def sum_of_last(pair):
    return pair.a[-1] + pair.b[-1]


@by_class
@compiled
def along(line, x):
    return line.slope * x + line.at


def read_only(array):
    array.setflags(write=False)
    return array


NUMBERS = np.arange(3.0)


@pytest.mark.parametrize(
    "other", [NUMBERS.astype(np.float32), NUMBERS.astype(np.int64), read_only(NUMBERS.copy())], ids=lambda a: a.dtype
)
def test_another_array_gets_code_of_its_own(other):
    for place in range(2):
        for pair in (Pair(NUMBERS, NUMBERS), Pair(*(NUMBERS, other)[:: 1 - 2 * place]), Pair(NUMBERS, NUMBERS)):
            assert sum_of_last(pair) == 4.0


@pytest.mark.parametrize("other", [NUMBERS[::2], NUMBERS.reshape(1, 1, 3), np.asfortranarray(np.ones((2, 2)))])
def test_an_array_that_cannot_be_passed_is_refused_whatever_came_before(other):
    sum_of_last(Pair(NUMBERS, NUMBERS))
    with pytest.raises(TypeError, match=r"Pair\.b is array\(.*must be contiguous"):
        sum_of_last(Pair(NUMBERS, other))


@pytest.mark.parametrize("other", [None, 1.0, [1.0], np.float64(1.0), np.ma.ones(3)], ids=lambda value: type(value))
def test_what_is_no_array_is_refused(other):
    sum_of_last(Pair(NUMBERS, NUMBERS))
    with pytest.raises((TypeError, ValueError)):
        sum_of_last(Pair(NUMBERS, other))


def test_an_array_of_another_byte_order_is_refused():
    sum_of_last(Pair(NUMBERS, NUMBERS))
    with pytest.raises((TypeError, ValueError)):
        sum_of_last(Pair(NUMBERS, NUMBERS.astype(">f8")))


def test_a_number_of_another_class_in_a_tuple_is_not_cut():
    assert along(Line(1, 1), 2.0) == 3.0  # an int in the place of a float: this code must not serve the next one
    assert along(Line(0.5, 1), 2.0) == 2.0
    assert along(Line(0.5, 1), 2) == 2.0


def test_the_classes_find_the_code():
    sum_of_last(Pair(NUMBERS, NUMBERS))
    assert (Pair,) in sum_of_last._codes
