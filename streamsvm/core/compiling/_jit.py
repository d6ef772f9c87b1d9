"""Compile policy: the decorators of the engine's compiled functions, and the cache of what they compile.

*Entries* are called from Python.  *Parts* are called from compiled code only.  A part is not optimised and gets no
machine code of its own, because each entry that contains it does that for the whole.  *Shared* functions are called
from compiled code, too.  They have machine code of their own, which all entries call: a large function that many
entries need, and that is not called in an inner loop, is so compiled once.

Compiled code is stored in the folder that `_cache` describes, one file for each function and signature.  A wheel may
bring code, too, in the archives that `_archive` describes.  A folder or an archive is that of one state: the sources of
all rooms that compile, the versions of Python, numba and llvmlite, the processor, and numba's options.  An edit, an
upgrade or another processor therefore never meets code that does not fit.  A file that cannot be read means compiling
anew.  Without a place to write, code is compiled in memory.

``STREAMSVM_CACHE=0`` switches the user's folder off; ``NUMBA_CACHE_DIR`` says where it lies.
"""

import contextlib
import functools
import gc
import hashlib
import inspect
import logging
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import llvmlite
import numba
from llvmlite import binding, ir
from numba import config, njit, types
from numba.core import codegen, compiler
from numba.core.environment import lookup_environment
from numba.core.serialize import dumps
from numba.core.targetconfig import TargetConfig
from numba.extending import overload

from streamsvm._version import __version__
from streamsvm.core.compiling import _target
from streamsvm.core.compiling._archive import HERE, Archive, archive_path, write_archive
from streamsvm.core.compiling._cache import CodeFolder, key_of, user_folder

F = TypeVar("F", bound=Callable[..., Any])


COMPILED_ROOMS = ("core", "batch", "online")  # tests/test_layers.py holds that no other room compiles anything

_LOGGER = logging.getLogger("streamsvm")
_ENTRIES: list[Any] = []
_SHARED: dict[str, Any] = {}  # the shared functions that this process has loaded, by the names of their code


# ------------------------------------------------------------------------------------------------------------ the cache


@functools.cache
def _stamp(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


@functools.cache
def _sources() -> str:
    root = Path(__file__).parents[2]
    sha = hashlib.sha256()
    for path in sorted(path for room in COMPILED_ROOMS for path in (root / room).rglob("*.py")):
        sha.update(str(path.relative_to(root)).encode())
        sha.update(_stamp(path))
    return sha.hexdigest()


def _key(target: _target.Target) -> str:
    abi = (sys.implementation.cache_tag, getattr(sys, "abiflags", ""), numba.__version__, llvmlite.__version__)
    options = (str(config.OPT), config.LOOP_VECTORIZE, config.SLP_VECTORIZE, bool(config.BOUNDSCHECK))
    return key_of((_sources(), abi, tuple(target), options))


@functools.cache
def _folder() -> CodeFolder | None:
    """The user's folder of this state; None without a home folder, or if the cache is switched off."""
    parent = user_folder(config.CACHE_DIR)
    if parent is None or os.environ.get("STREAMSVM_CACHE", "1") == "0":
        return None
    return CodeFolder(parent, __version__, _key(_target.current()))


@functools.cache
def _archive() -> tuple[str, Archive] | None:
    """The best code that came with this installation, and the processor it is for."""
    found = ((target.processor, Archive(archive_path(HERE, _key(target)))) for target in _target.accepted())
    return next((each for each in found if each[1].is_usable), None)


def cache_state() -> tuple[str | None, bool]:
    """Where compiled code is kept, None if nowhere, and whether there is code of this version."""
    folder, archive = _folder(), _archive()
    if archive and not (folder and folder.has_code()):
        return f"{archive[1].path} ({archive[0]})", True
    return (str(folder.path), folder.has_code()) if folder and folder.is_usable else (None, False)


def pack(folder: Path) -> tuple[str, int]:
    """Write the stored code of all entries that were called, and of what they share, into an archive for a wheel.

    Returns
    -------
    tuple of str and int
        The processor that the code is for, and the number of entries.
    """
    entries = [entry._cache._file(signature) for entry in _ENTRIES for signature in entry.signatures]
    stored = _folder()
    code = [(name, stored.read(name) if stored else None) for name in (*entries, *_SHARED)]
    if missing := [name for name, content in code if content is None]:
        raise RuntimeError(f"the compile cache lacks {', '.join(missing)}")
    write_archive(archive_path(folder, _key(_target.current())), code)
    return _target.current().processor, len(entries)


def _name(kind: Any) -> str:
    """A type's name that tells apart named tuples of one name."""
    if isinstance(kind, types.BaseTuple):
        of = getattr(kind, "instance_class", tuple)
        return f"{of.__module__}.{of.__qualname__}({', '.join(map(_name, kind.types))})"
    return str(kind)


def compile_notice() -> str:
    """What to tell a person who waits for the compiler."""
    once = (
        "once for this installation"
        if (folder := _folder()) and folder.is_usable
        else "in each process: no folder can keep the code"
    )
    return f"streamsvm compiles code for its first use: up to two minutes of CPU time, {once}"


@functools.cache
def _say_that_code_is_compiled() -> None:
    """Tell a user at a terminal, once, why the first call takes so long; logging shows warnings by itself."""
    level = logging.WARNING if sys.stderr is not None and sys.stderr.isatty() else logging.INFO
    _LOGGER.log(level, "%s", compile_notice())


class _CodeCache:
    """The stored code of one function, with the methods of numba's own caches."""

    def __init__(self, py_func: Callable[..., Any], kind: type["_Library"]) -> None:
        self._py_func, self._kind = py_func, kind

    @property
    def cache_path(self) -> str | None:
        return str(folder.path) if (folder := _folder()) else None

    def enable(self) -> None:
        """Do nothing: the cache is always on."""

    disable = flush = enable

    def _file(self, signature: Any) -> str:
        of = self._py_func
        key = hashlib.sha256(_stamp(Path(inspect.getfile(of))))  # a test's file is not among the sources
        key.update(repr((of.__module__, of.__qualname__, of.__code__.co_firstlineno, self._kind.__name__)).encode())
        key.update("; ".join(map(_name, signature)).encode())
        return f"{of.__module__.rpartition('.')[2]}.{of.__name__}-{key.hexdigest()[:16]}"

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The compiled function for these argument types; None if it has to be compiled."""
        target_context.refresh()
        result = _load(self._file(signature), self._kind, target_context, signature)
        if result is None and self._kind is _Entry:
            _say_that_code_is_compiled()
        return result

    def save_overload(self, signature: Any, result: Any) -> None:
        """Store a compiled function."""
        name, folder = self._file(signature), _folder()
        library = result.library
        if self._kind is _Shared:
            _keep_shared(name, result)
        if folder and not library.has_dynamic_globals:
            folder.write(name, dumps((signature, library.called, result._reduce())))


def _keep_shared(name: str, result: Any) -> Any:
    result.library.names = {name: result.fndesc.mangled_name}
    return _SHARED.setdefault(name, result)


def _load(name: str, kind: type["_Library"], target_context: Any, signature: Any = None) -> Any:
    """The function whose code has this name, with the shared ones that it calls; None if it has to be compiled."""
    if name in _SHARED:
        return _SHARED[name]
    folder, archive = _folder(), _archive()
    for place in (folder, archive and archive[1]):
        code = place.read(name) if place else None
        if code is None:
            continue
        try:
            stored, called, payload = pickle.loads(code)  # noqa: S301 - no other user can write to these places
            if signature not in (None, stored) or not all(_can_call(target_context, *each) for each in called.items()):
                continue
            result = _rebuild(target_context, *payload)
            result.library.__class__, result.library.called = kind, called
            return _keep_shared(name, result) if kind is _Shared else result
        except Exception as error:  # whatever is wrong with the file, the function can be compiled
            _LOGGER.debug("the stored code %s cannot be read: %s", name, error)
    return None


def _can_call(target_context: Any, name: str, symbol: str) -> bool:
    """Whether the shared function of this name is there, or can be loaded, and is the one that was compiled."""
    shared = _load(name, _Shared, target_context)
    return shared is not None and shared.fndesc.mangled_name == symbol


# --------------------------------------------------------------------------------------------------------- the compiler


class _Library(codegen.JITCodeLibrary):
    """Compiled code; `called` has the symbols of the shared functions that it calls, by the names of their code."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.called: dict[str, str] = {}

    def add_linking_library(self, library: Any) -> None:
        """Take a part in; of a shared function, remember that it is called."""
        if isinstance(library, _Shared):
            self.called |= library.names
        else:
            super().add_linking_library(library)
            self.called |= getattr(library, "called", {})  # a user of numba may have compiled what numba adds


class _Part(_Library):
    """The code of a function that only compiled code calls, to be optimised as part of each entry."""

    def finalize(self) -> None:
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True

    @property
    def codegen(self) -> "_Part":
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: a part is not loaded, so it has no environment that could be set."""

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        self._ensure_finalized()
        return self.name, "part", self._final_module.as_bitcode()


class _Whole(_Library):
    """The code of a function with all its parts, as machine code."""

    def _optimize_functions(self, module: Any) -> None:
        """Leave out what the optimisation of the whole does as well."""
        module.data_layout = self._codegen._data_layout

    def serialize_using_object_code(self) -> tuple[str, str, tuple[bytes, bytes]]:
        """As numba's, with the names of the bitcode's functions only: no other code takes this in."""
        self._ensure_finalized()
        names = ir.Module()
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == binding.Linkage.external:
                body = ir.Function(names, ir.FunctionType(ir.VoidType(), []), function.name)
                ir.IRBuilder(body.append_basic_block()).ret_void()
        return self.name, "object", (self._get_compiled_object(), binding.parse_assembly(str(names)).as_bitcode())

    def finalize(self) -> None:
        super().finalize()
        for variable in self._final_module.global_variables:  # those of its parts, which were never loaded
            environment = None if variable.is_declaration else lookup_environment(variable.name)
            if environment is not None:
                self._codegen.set_env(variable.name, environment)


class _Entry(_Whole):
    """The code of a function that Python calls."""


class _Shared(_Whole):
    """The code of a function that other compiled code calls; `names` has its symbol by the name of its code."""

    names: dict[str, str]

    def _get_module_for_linking(self) -> Any:
        """Nothing to take in, for callers that numba compiles without this file, such as those of tests."""
        return binding.parse_assembly("")


@functools.cache
def _defaults(kind: Any) -> dict[str, Any]:
    return {name: option.default for name, option in kind.options.items()}


def _values(options: Any) -> dict[str, Any]:
    """The same as `TargetConfig.values`, without a call for each option."""
    return _defaults(type(options)) | options._values  # type: ignore[arg-type] # mypy: no class of Any can be hashed


@contextlib.contextmanager
def _compiling(generator: Any) -> Iterator[None]:
    """Make parts of the functions that numba itself adds meanwhile, such as `max`; and collect no garbage.

    Most objects live until the compilation ends.  Looking for garbage among them takes a quarter of its time.
    Numba compares its options 300 000 times in a warm-up, so their values are looked up in a shorter way.
    """
    before, values, collects = generator._library_class, TargetConfig.values, gc.isenabled()
    generator._library_class, TargetConfig.values = _Part, _values
    gc.disable()
    try:
        yield
    finally:
        generator._library_class, TargetConfig.values = before, values
        if collects:
            gc.enable()


def _holds_array(kind: Any) -> bool:
    """Whether a value of this type is an array, or a tuple with one."""
    return isinstance(kind, types.Array) or (isinstance(kind, types.BaseTuple) and any(map(_holds_array, kind)))


def _compiler(kind: type[_Library]) -> type[compiler.Compiler]:
    class Compiler(compiler.Compiler):
        def __init__(self, typing_context: Any, target_context: Any, library: Any, *others: Any) -> None:
            library = kind(target_context.codegen(), kind.__name__)
            library.enable_object_caching()
            super().__init__(typing_context, target_context, library, *others)

        def _compile_bytecode(self) -> Any:
            with _compiling(self.state.targetctx.codegen()):
                result = super()._compile_bytecode()
            if kind is _Entry and _holds_array(result.signature.return_type):
                name = self.state.func_id.func_qualname
                raise TypeError(f"{name} returns an array to Python: if it is part of a reference, nothing owns it")
            return result

    return Compiler


_COMPILERS = {kind: _compiler(kind) for kind in (_Entry, _Shared, _Part)}


def _rebuild(target_context: Any, stored: tuple[Any, ...], *others: Any) -> Any:
    """The result of a compilation from what `_reduce` has made of it."""
    name, kind, code = stored
    if kind != "part":
        return compiler.CompileResult._rebuild(target_context, stored, *others)
    description, environment, signature, objectmode, lifted, annotation, reload_init, environments = others
    library = _Part(target_context.codegen(), name)
    library._final_module = binding.parse_bitcode(code)
    library._finalized = True
    return compiler.compile_result(
        target_context=target_context,
        typing_context=target_context.typing_context,
        library=library,
        environment=environment,
        entry_point=target_context.get_executable(library, description, environment),
        fndesc=description,
        type_annotation=annotation,
        signature=signature,
        objectmode=objectmode,
        lifted=lifted,
        reload_init=reload_init,
        referenced_envs=environments,
    )


def _argument(kind: Any) -> Any:
    """The type that a part is compiled for: literals and short integers get no code of their own."""
    kind = types.unliteral(kind)
    return types.intp if kind in (types.int32, types.int16) else kind


def _compile(py_func: F, fastmath: set[str], kind: type[_Library]) -> F:
    dispatcher: Any = njit(
        py_func,
        nogil=True,
        error_model="numpy",
        fastmath=fastmath or False,
        no_cfunc_wrapper=True,
        no_cpython_wrapper=kind is not _Entry,
        pipeline_class=_COMPILERS[kind],
    )
    if not hasattr(dispatcher, "_cache"):  # NUMBA_DISABLE_JIT: it is the Python function
        return dispatcher
    dispatcher._cache = _CodeCache(py_func, kind)
    if kind is _Entry:  # what compiled code calls is a part
        _ENTRIES.append(dispatcher)
        part: Any = _compile(py_func, fastmath, _Part)
        dispatcher.get_call_template, dispatcher.get_overload = part.get_call_template, part.get_overload
    else:
        resolve = dispatcher.get_call_template
        dispatcher.get_call_template = lambda args, kws: resolve(tuple(map(_argument, args)), kws)
    return dispatcher


def compiled(py_func: F) -> F:
    """Compile `py_func` with IEEE arithmetic in source order, without the GIL, cached on disk."""
    return _compile(py_func, set(), _Entry)


def inner(py_func: F) -> F:
    """Like `compiled`, for a part: a function that only compiled code calls."""
    return _compile(py_func, set(), _Part)


def shared(py_func: F) -> F:
    """Like `inner`, with machine code of its own: for a large function that is not called in an inner loop."""
    return _compile(py_func, set(), _Shared)


def inner_fma(py_func: F) -> F:
    """Like `inner`, with a * b + c as one fused operation; each element's result is still in source order."""
    return _compile(py_func, {"contract"}, _Part)


def inner_sum(py_func: F) -> F:
    """Like `inner_fma`, and a sum may be split over vector lanes (its order then depends on its length only)."""
    return _compile(py_func, {"contract", "reassoc"}, _Part)


def compiled_for(function: Callable[..., Any], kind: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make what is decorated the compiled `function` where its first argument is of this class.

    That is a class of named tuples, or of numpy's numbers.
    """

    def register(implementation: Callable[..., Any]) -> Callable[..., Any]:
        def choose(first: Any, *others: Any) -> Callable[..., Any] | None:
            return implementation if getattr(first, "instance_class", str(first)) in (kind, kind.__name__) else None

        overload(function, {"error_model": "numpy"}, strict=False)(choose)
        return implementation

    return register
