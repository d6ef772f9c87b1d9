"""Mutations of snapshots with a right checksum: none may crash, hang, or take much memory.

    python tests/helpers/fuzz_snapshot.py [MUTATIONS [SEED]]

A checksum that fits is no proof of who wrote a snapshot.  So each kind of snapshot is taken apart, spoiled in its
header or its arrays, and put together again with a right checksum.  A worker process loads it; what loads must learn,
predict, forget, finish and be saved again.  The parent watches: a worker that dies is a crash, one that is silent for
longer than the limit is ended and counts as hung.
"""

import contextlib
import hashlib
import json
import multiprocessing
import struct
import sys
import time
import tracemalloc
import warnings
from collections import Counter
from datetime import timedelta

import numpy as np

from streamsvm import (
    LASVM,
    LASVMG,
    LASVMI,
    LASVMNC,
    AutoLASVM,
    FullSVM,
    OneVsOne,
    OneVsRest,
    SnapshotError,
    WarmupScaler,
)
from streamsvm.core import storage
from streamsvm.core.saving import snapshot
from streamsvm.validation import StreamingKFold, StreamingLOO

SECONDS = 1.0  # of a processor that loading and use of a mutation may take, each
SILENCE = 60.0  # after which a worker is taken for hung, on however busy a machine
MEMORY, CONSTANT = 10, 2 << 20  # that loading may take: so many times the snapshot's length, and so many bytes
PRELUDE = struct.Struct("<8sIQQ")
NUMBERS = (0, 1, -1, 2, 3, 7, 63, 64, 255, 1 << 16, 1 << 31, -(1 << 31), 1 << 32, 1 << 45, (1 << 62) + 1, (1 << 63) - 1)
REALS = (0.0, -0.0, 0.5, -1.0, 3.0, 1e-300, 1e10, 1e29, 1e30, -1e30, 1e38, 1e300, -1e300, np.nan, np.inf, -np.inf)
LEAVES = (None, True, False, "", "x", "rbf", "poly", "sigmoid", "linear", "merge", "project", [], {}, [[]], 10**400)
DTYPES = ("|b1", "|i1", "|u1", "<i4", "<i8", "<u8", "<f4", "<f8", "<f2", "|O", "<U4")


# ------------------------------------------------------------------------------------------------------- the snapshots


def problem(n, d, binary=False, share=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)) < 0.4 if binary else rng.normal(size=(n, d)) * (rng.random((n, d)) < share)
    f = X @ rng.normal(size=d) + 0.3 * rng.normal(size=n)
    return [{f"f{i}": float(v) for i, v in enumerate(x) if v} for x in X], (f > np.median(f)).tolist()


def sparse_problem(n=60, d=300, nnz=6):
    rng = np.random.default_rng(1)
    rows = [{f"w{c}": 1.0 + float(c % 3) for c in rng.choice(d, nnz, replace=False)} for _ in range(n)]
    return rows, (rng.random(n) < 0.5).tolist()


def late_feature():
    """Features of different sizes, one of which gets a place late."""
    rows, y = problem(80, 5)
    return [x | {"f1": 100.0 * x["f1"]} | ({"late": float(t)} if t > 30 else {}) for t, x in enumerate(rows)], y


def learned(model, rows, y, **others):
    model.learn_many(rows, y, **others)
    return model


def compressed_model():
    rows, y = sparse_problem()
    limit, storage.members.WIDE_BYTES = storage.members.WIDE_BYTES, 4 * 2000
    try:
        return learned(LASVM(C=10.0, gamma=0.02), rows, y)
    finally:
        storage.members.WIDE_BYTES = limit


def some_snapshots():
    """Snapshots by kind, each with what restores it."""
    real, binary = problem(80, 5), problem(80, 12, binary=True)
    rows, y = real
    classes = np.random.default_rng(2).choice(["a", "b", "c"], len(rows)).tolist()
    span = timedelta(seconds=50)
    times = [f"2026-01-01T00:{t // 60:02}:{t % 60:02}" for t in range(len(rows))]
    models = {
        "dense": learned(LASVM(C=10.0, gamma=0.5), *real),
        "scaled": learned(LASVM(C=10.0), *late_feature()),
        "scaled classes": learned(OneVsRest(FullSVM(C=10.0)), late_feature()[0], classes),
        "rare": learned(LASVM(C=10.0, gamma=0.5, pos_weight="balanced", threshold="gmean"), *real),
        "binary": learned(LASVM(C=10.0, gamma=0.1), *binary),
        "compressed": compressed_model(),
        "polynomial": learned(LASVM(C=1.0, kernel="poly", gamma=0.5, degree=2, coef0=1.0), *real),
        "empty": LASVM(),
        "G": learned(LASVMG(C=10.0, gamma=0.5, clean_every=20, max_non_sv=5), *real),
        "NC": learned(LASVMNC(C=10.0, gamma=0.5, ramp_warmup=20, ramp_s=0.0), *real),
        "I": learned(LASVMI(C=10.0, gamma=0.5, ramp_warmup=20), *binary),
        "full, budget": learned(FullSVM(C=10.0, gamma=0.5, budget=40, on_budget="merge"), *real),
        "budget": learned(LASVM(C=10.0, gamma=0.5, budget=20, on_budget="project"), *real),
        "window": learned(LASVM(C=10.0, gamma=0.5, window=50), *real),
        "time": learned(LASVM(C=10.0, window=span), rows, y, t=np.array(times, "datetime64[us]")),
        "classes": learned(
            OneVsRest(LASVM(C=10.0, gamma=0.5), ["b"]), rows, classes, ids=range(1000, 1000 + len(rows))
        ),
        "classes, window": learned(OneVsRest(LASVMG(C=10.0, window=50)), rows, classes),
        "auto": learned(AutoLASVM(), *late_feature()),
        "auto, after the warm-up": learned(AutoLASVM(), *problem(1020, 2)),
        "pairs": learned(OneVsOne(LASVM(C=10.0)), rows, classes),
        "auto, classes": learned(OneVsRest(AutoLASVM()), rows, classes),
    }
    made = {kind: (model.to_bytes(), type(model).from_bytes) for kind, model in models.items()}
    scaler = WarmupScaler(warmup=50)
    for x in rows:
        scaler.learn_one(x)
    made["scaler"] = scaler.to_bytes(), WarmupScaler.from_bytes
    for kind, wrapper in (("loo", StreamingLOO), ("k-fold", StreamingKFold)):
        estimate = learned(wrapper(LASVM(C=10.0, gamma=0.5), memory=30, share=0), rows, y)
        estimate.estimate()
        inner = estimate.model.to_bytes()
        made[kind] = estimate.to_bytes(), lambda data, w=wrapper, m=inner: w.from_bytes(data, LASVM.from_bytes(m))
    return made


# ------------------------------------------------------------------------------------------------------- the mutations


def taken_apart(data):
    """Header and body."""
    length = PRELUDE.unpack_from(data)[2]
    start = -(-(PRELUDE.size + length) // 64) * 64
    return json.loads(data[PRELUDE.size : PRELUDE.size + length]), data[start:-32]


def put_together(header, body):
    """A snapshot with a right checksum around any header and body."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    padding = bytes(-(PRELUDE.size + len(text)) % 64)
    total = PRELUDE.size + len(text) + len(padding) + len(body) + 32
    content = PRELUDE.pack(snapshot.MAGIC, snapshot.FORMAT, len(text), total) + text + padding + bytes(body)
    return content + hashlib.sha256(content).digest()


def any_of(rng, values):
    return values[int(rng.integers(len(values)))]


def leaves_of(value, path=()):
    """The paths to all values in a header."""
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from leaves_of(inner, (*path, key))


def parent_of(header, path):
    for key in path[:-1]:
        header = header[key]
    return header


def another_value(rng, old):
    """A value instead of this one: near it, extreme, or of another type."""
    kind = rng.integers(4)
    if kind == 0 and isinstance(old, int | float) and not isinstance(old, bool):
        return old + any_of(rng, (1, -1, 2, 0.5)) if rng.random() < 0.7 else old * any_of(rng, (-1, 2, 10, 1e6))
    if kind == 1:
        return any_of(rng, REALS)
    return any_of(rng, NUMBERS) if kind == 2 else any_of(rng, LEAVES)


def spoil_meta(rng, header, body):
    paths = [path for path in leaves_of(header["meta"], ("meta",)) if len(path) > 1]
    path = any_of(rng, paths)
    parent, key = parent_of(header, path), path[-1]
    if rng.random() < 0.15:
        del parent[key]
    elif rng.random() < 0.1 and isinstance(parent, list):
        parent.append(parent[key])
    else:
        parent[key] = another_value(rng, parent[key])
    return header, body


def spoil_entry(rng, header, body):
    """Another name, type, shape or place of an array."""
    entry, what = any_of(rng, header["arrays"]), int(rng.integers(6))
    if what == 0:
        entry["dtype"] = any_of(rng, DTYPES)
    elif what == 1:
        entry["offset"] = any_of(rng, (0, 64, entry["offset"] + 64, entry["offset"] + 1, any_of(rng, NUMBERS)))
    elif what == 2 and entry["shape"]:
        k = int(rng.integers(len(entry["shape"])))
        entry["shape"][k] = any_of(rng, (0, entry["shape"][k] - 1, entry["shape"][k] + 1, any_of(rng, NUMBERS)))
    elif what == 3:
        entry["shape"] = any_of(rng, ([], [1], [0, 1 << 62], [1 << 31, 1 << 31], entry["shape"][::-1], [1] * 40))
    elif what == 4:
        entry["name"] = any_of(rng, header["arrays"])["name"]
    else:
        header["arrays"].remove(entry)
    return header, body


def array_of(header, body, entry):
    """A view into the body, which can be written."""
    dtype, size = np.dtype(entry["dtype"]), int(np.prod(entry["shape"]))
    return np.frombuffer(body, dtype, size, entry["offset"])


def spoil_numbers(rng, header, body):
    """Other numbers in an array, one or some or all."""
    body = bytearray(body)
    entry = any_of(rng, [entry for entry in header["arrays"] if np.prod(entry["shape"])])
    array = array_of(header, body, entry)
    places = rng.integers(len(array), size=any_of(rng, (1, 1, 1, 2, 10, len(array))))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if array.dtype.kind == "f":
            array[places] = (
                array[places] * any_of(rng, (-1, 2, 0.5, 1 + 1e-9)) if rng.random() < 0.4 else any_of(rng, REALS)
            )
        elif array.dtype.kind == "b":
            array.view(np.uint8)[places] = any_of(rng, (0, 1, 2, 255))
        elif rng.random() < 0.5:
            array[places] += any_of(rng, (1, -1)) if array.dtype.kind == "i" else np.uint8(1)
        else:
            array[places] = np.array(any_of(rng, NUMBERS), np.int64).astype(array.dtype)
    return header, body


def move_numbers(rng, header, body):
    """An array in another order, or one in the place of another."""
    body = bytearray(body)
    full = [entry for entry in header["arrays"] if np.prod(entry["shape"])]
    entry, other = any_of(rng, full), any_of(rng, full)
    array = array_of(header, body, entry)
    if rng.random() < 0.5:
        array[:] = rng.permutation(array)
    else:
        n = min(array.nbytes, array_of(header, body, other).nbytes)
        body[entry["offset"] : entry["offset"] + n] = body[other["offset"] : other["offset"] + n]
    return header, body


def resized(rng, header, body):
    """An array, or all that go by its first size, longer or shorter, with the others where they belong."""
    old = any_of(rng, [entry for entry in header["arrays"] if entry["shape"]])["shape"][0]
    new = max(0, old + any_of(rng, (1, -1, 5, -5)))
    alone = any_of(rng, [entry["name"] for entry in header["arrays"]]) if rng.random() < 0.5 else None
    pieces, offset = [], 0
    for entry in header["arrays"]:
        array = array_of(header, body, entry).reshape(entry["shape"])
        if entry["shape"] and entry["shape"][0] == old and alone in (None, entry["name"]):
            array = (
                np.resize(array, (new, *entry["shape"][1:]))
                if array.size
                else np.zeros((new, *entry["shape"][1:]), array.dtype)
            )
        entry["shape"], entry["offset"] = list(array.shape), offset
        pieces.append(array.tobytes() + bytes(-array.nbytes % 64))
        offset += len(pieces[-1])
    return header, b"".join(pieces)


def flipped(rng, header, body):
    """Random bytes."""
    body = bytearray(body)
    for place in rng.integers(max(1, len(body)), size=any_of(rng, (1, 2, 20))) if body else ():
        body[place] ^= int(rng.integers(1, 256))
    return header, body


def strange_header(rng, header, body):
    """A header that is hard to read: deep, long, cut, or with its bytes changed."""
    text = json.dumps(header).encode()
    kind = int(rng.integers(6))
    if kind == 0:
        depth = any_of(rng, (20, 500, 5000, 100_000))
        header["meta"]["deep"] = "DEEP"
        return json.dumps(header).encode().replace(b'"DEEP"', b"[" * depth + b"]" * depth), body
    if kind == 1:
        return text[: -int(rng.integers(1, len(text)))], body
    if kind == 2:
        header["meta"]["long"] = [[]] * 100_000
        return header, body
    if kind == 3:
        return text.replace(b": ", any_of(rng, (b": NaN,", b": 1e999, ", b': "\\', b": [", b": -")), 1), body
    if kind == 4:
        path = any_of(rng, [path for path in leaves_of(header) if path])
        parent_of(header, path)[path[-1]] = another_value(rng, parent_of(header, path)[path[-1]])
        return header, body
    spoiled = bytearray(text)
    spoiled[int(rng.integers(len(spoiled)))] = int(rng.integers(256))
    return bytes(spoiled), body


WAYS = (
    spoil_meta,
    spoil_entry,
    spoil_numbers,
    spoil_numbers,
    spoil_numbers,
    move_numbers,
    resized,
    flipped,
    strange_header,
)


def mutation(data, number, seed):
    """The mutation of that number, and how it was made."""
    rng = np.random.default_rng([seed, number])
    header, body = taken_apart(data)
    way = any_of(rng, WAYS)
    if rng.random() < 0.2:
        header, body = any_of(rng, (spoil_numbers, spoil_meta))(rng, header, body)
    header, body = way(rng, header, body)
    return put_together(header, body), way.__name__


# ------------------------------------------------------------------------------------------------------------ its fate


def used(thing):
    """Do with it what users do; the ValueErrors and warnings are those that any model gives."""
    names = [*getattr(thing, "feature_names", ()), "f1", "f2"]
    rows = [{names[0]: 0.5, "new": float(t)} for t in range(3)] + [dict.fromkeys(names[:20], 1.0)] * 2
    labels = (
        ["a", "b", "a", "new", "b"] if isinstance(thing, OneVsOne | OneVsRest) else [True, False, True, True, False]
    )
    times = {"t": np.datetime64("2026-01-01T00:01")} if _by_time(thing) else {}
    steps = [lambda x=x, y=y: thing.learn_one(x, y, **times) for x, y in zip(rows, labels, strict=True)]
    steps += [lambda: thing.learn_many(rows, labels, **times), lambda: thing.predict_many(rows)]
    steps += [lambda: thing.predict_proba_one(rows[0]), lambda: thing.finish()]
    steps += [lambda: thing.forget(thing.support_ids[:3]), lambda: thing.learn_many(rows, labels[::-1], **times)]
    if isinstance(thing, WarmupScaler):
        steps = [lambda: thing.learn_one(rows[0]), lambda: thing.transform_one(rows[0])]
    if isinstance(thing, StreamingLOO | StreamingKFold):
        steps = [lambda: thing.learn_one(rows[0], True), thing.estimate, lambda: thing.forget([79])]
    for step in steps:
        with contextlib.suppress(ValueError):
            step()
    return thing.to_bytes()


def _by_time(thing):
    window = getattr(getattr(thing, "_common", None) or getattr(thing, "_state", None), "window", None)
    return window is not None and window.by_time


def fate(data, restore, seconds=SECONDS):
    """What becomes of a snapshot, in a word."""
    tracemalloc.start()
    begin = time.process_time()
    try:
        thing = restore(data)
    except SnapshotError:
        thing = None
    except Exception as error:
        return f"raised {type(error).__name__}: {error}"
    finally:
        loading, peak = time.process_time() - begin, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    if peak > MEMORY * len(data) + CONSTANT:
        return f"took {peak} bytes for {len(data)}"
    if loading > seconds:
        return f"took {loading:.1f} s to load"
    if thing is None:
        return "refused"
    begin = time.process_time()
    try:
        restore(used(thing))
    except Exception as error:
        return f"loaded, then raised {type(error).__name__}: {error}"
    using = time.process_time() - begin
    return "loaded" if using < seconds else f"took {using:.1f} s to use"


def work(connection, seed, seconds):
    """A worker: fates of the mutations it is asked for."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    made = some_snapshots()
    for data, restore in made.values():
        fate(data, restore)  # compiles
        found = fate(data, restore, seconds)
        assert found == "loaded", f"what is not spoiled must load: {found}"
    connection.send(list(made))
    while True:
        kind, number = connection.recv()
        data, way = mutation(made[kind][0], number, seed)
        found = fate(data, made[kind][1], seconds)
        if found.startswith("took"):  # the first use of a compiled function loads it, which takes time once
            found = fate(data, made[kind][1], seconds)
        connection.send((way, found))


class Worker:
    """A process that may die or hang."""

    def __init__(self, seed, seconds):
        self.seed, self.seconds = seed, seconds
        self.process = None
        self.kinds = []

    def start(self):
        self.connection, theirs = multiprocessing.get_context("spawn").Pipe()
        self.process = multiprocessing.get_context("spawn").Process(
            target=work, args=(theirs, self.seed, self.seconds), daemon=True
        )
        self.process.start()
        theirs.close()
        self.kinds = self.connection.recv()

    def fate(self, kind, number):
        """How a mutation was made, and what became of it."""
        if self.process is None:
            self.start()
        self.connection.send((kind, number))
        try:
            if self.connection.poll(SILENCE):
                return self.connection.recv()
            found = "hung"
        except EOFError:
            self.process.join()
            found = f"crashed with {self.process.exitcode}"
        self.stop()
        return "?", found

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


def run(n, seed, seconds=SECONDS):
    """The fates of n mutations, by kind of snapshot and way of spoiling it, and those that must not be."""
    worker, fates, faults = Worker(seed, seconds), Counter(), []
    worker.start()
    kinds = worker.kinds
    try:
        for number in range(n):
            kind = kinds[number % len(kinds)]
            way, found = worker.fate(kind, number)
            fates[kind, found if found in ("refused", "loaded") else "fault"] += 1
            if found not in ("refused", "loaded"):
                faults.append((number, kind, way, found))
    finally:
        worker.stop()
    return fates, faults


def main(n=6000, seed=0):
    begin = time.monotonic()
    fates, faults = run(n, seed)
    print(f"{'snapshot':16} {'refused':>8} {'loaded':>8} {'faults':>8}")
    for kind in [*dict.fromkeys(kind for kind, _ in fates), "all"]:
        row = [
            sum(c for (k, f), c in fates.items() if kind in (k, "all") and f == w)
            for w in ("refused", "loaded", "fault")
        ]
        print(f"{kind:16} {row[0]:8} {row[1]:8} {row[2]:8}")
    for fault in faults:
        print("fault:", *fault)
    print(f"{n} mutations with seed {seed} in {time.monotonic() - begin:.0f} s")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
