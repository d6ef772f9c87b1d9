"""Models by key: as a dict of them would be, whatever waits on disk, is saved, or is read again."""

import os
from contextlib import closing
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from streamsvm import SnapshotError
from streamsvm.connectors.settings.model import ModelSettings
from streamsvm.connectors.trainer.state.model_files import files_set_aside, places_of
from streamsvm.connectors.trainer.state.models import NO_MODELS, KeyedModels, ModelKind, SingleModel
from streamsvm.core.saving import snapshot
from streamsvm.core.saving.layout import DIGEST_SIZE, FORMAT, PRELUDE, sha256

KIND = ModelKind(ModelSettings(C=10.0))
KEYS = [None, b"a", b"b", b"c", b"with space\n", b"\xff\0"]


pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


def teach(model, n, seed=0):
    rng = np.random.default_rng(seed)
    for i in range(n):
        x = {"a": float(rng.normal()), "b": float(rng.normal())}
        model.learn_many([x], np.array([x["a"] * x["b"] > 0]), w=np.ones(1), ids=np.array([i]))


class Owner:
    """A process that has the folder, and saves as a partition does."""

    def __init__(self, folder, epoch=1, max_models=2, keep=2, arrays=None, max_keys=100):
        self.models = KeyedModels(KIND, folder, epoch, max_models, keep, max_keys, is_published=True)
        if arrays is not None:
            self.models.restore(arrays)

    def save(self):
        arrays = self.models.save()
        self.models.remove_old()
        return {name: array.copy() for name, array in arrays.items()}

    def close(self):
        self.models.close()


@pytest.fixture
def open_owner(tmp_path):
    owners = []

    def open_owner(**options):
        owners.append(Owner(tmp_path, **options))
        return owners[-1]

    yield open_owner
    for owner in owners:
        owner.close()


def files(folder):
    return {path.name: path.stat().st_size for path in sorted(folder.glob("models-*"))}


# --- against a dict ---------------------------------------------------------------------------------------------------

keys = st.sampled_from(KEYS)
steps = st.lists(
    st.tuples(st.just("learn"), keys, st.integers(1, 3))
    | st.tuples(st.just("predict"), keys)
    | st.tuples(st.sampled_from(["save", "kill", "digest", "changed"])),
    max_size=40,
)


@pytest.mark.long
@hypothesis_settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(steps=steps, max_models=st.integers(1, 4), keep=st.integers(1, 3), max_keys=st.sampled_from([1, 2, 3, 100]))
def test_they_are_a_dict(tmp_path_factory, steps, max_models, keep, max_keys):
    """After a kill, that of the last save; what was not published by then has changed for the next owner, too.

    In the order of the last lessons, so that it is the first that makes room.
    """
    folder = tmp_path_factory.mktemp("models")
    expected, saved, unpublished = {}, {}, set()
    arrays, epoch, changed = None, 1, set()
    n_dropped = saved_dropped = 0
    withdrawn, saved_withdrawn = set(), set()
    owner = Owner(folder, epoch, max_models, keep, max_keys=max_keys)
    probe = {"a": 0.5, "b": -0.5}
    for number, (action, *arguments) in enumerate(steps):
        if action == "learn":
            key, n = arguments
            blob = expected.pop(key or b"", None)
            model = KIND.read(blob).model if blob else KIND.new()
            teach(model, n, number)
            teach(owner.models.to_learn(key), n, number)
            expected[key or b""] = model.to_bytes()
            changed.add(key or b"")
            withdrawn.discard(key or b"")
            if len(expected) > max_keys:
                gone = next(iter(expected))
                del expected[gone]
                changed.discard(gone)
                withdrawn.add(gone)
                n_dropped += 1
        elif action == "predict":
            blob = expected.get(arguments[0] or b"")
            model = KIND.read(blob).model if blob else KIND.new()
            assert owner.models.trained(arguments[0]).model.decision_function_one(probe) == (
                model.decision_function_one(probe)
            )
        elif action == "save":
            arrays, saved, unpublished = owner.save(), dict(expected), set(changed)
            saved_dropped, saved_withdrawn = n_dropped, set(withdrawn)
        elif action == "changed":
            found = {key: model.digest() for key, model in owner.models.changed()}
            assert found == {key: KIND.read(expected[key]).digest() for key in changed}
            assert owner.models.withdrawn() == sorted(withdrawn)
            changed, withdrawn = set(), set()
        elif action == "kill":
            owner.close()
            epoch, expected, changed = epoch + 1, dict(saved), set(unpublished)
            n_dropped, withdrawn = saved_dropped, set(saved_withdrawn)
            owner = Owner(folder, epoch, max_models, keep, arrays, max_keys)
        assert len(owner.models) == len(expected)
        assert (owner.models.keys(), owner.models.n_dropped) == (expected.keys(), n_dropped)
        live = [trained.model for trained in owner.models._live.values()]
        assert len(live) <= max_models
        sizes = ((model.n_support, model.n_members, model.kernel_evaluations) for model in live)
        assert owner.models.sizes() == tuple(map(sum, zip(*sizes, strict=True))) if live else NO_MODELS
    whole = Owner(folder, epoch + 1, 100, keep)
    for key, blob in expected.items():
        whole.models._live[key] = KIND.read(blob)
        whole.models._order[key] = None
    assert owner.models.digest() == whole.models.digest()
    owner.close()


# --- files ------------------------------------------------------------------------------------------------------------


def test_what_has_not_changed_is_not_written_again(open_owner, tmp_path):
    owner = open_owner(max_models=10)
    for key in (b"a", b"b"):
        teach(owner.models.to_learn(key), 5)
    owner.save()
    before = files(tmp_path)
    owner.models.trained(b"a")
    owner.models.trained(b"never seen")
    owner.save()
    assert files(tmp_path) == before
    teach(owner.models.to_learn(b"a"), 1)
    owner.save()
    (added,) = files(tmp_path).keys() - before.keys()
    assert files(tmp_path)[added] < sum(before.values())


def test_no_file_is_ever_changed(open_owner, tmp_path):
    """So that an older checkpoint finds what it had."""
    owner = open_owner(max_models=1, keep=100)
    seen, checkpoints = {}, []
    for number in range(12):
        for key in (b"a", b"b", b"c"):
            teach(owner.models.to_learn(key), 1, number)
        checkpoints.append((owner.save(), owner.models.digest()))
        for path in tmp_path.glob("models-*"):
            assert seen.setdefault(path.name, path.read_bytes()) == path.read_bytes()
    for epoch, (arrays, digest) in enumerate(checkpoints, 2):
        assert open_owner(epoch=epoch, arrays=arrays, keep=100).models.digest() == digest


@pytest.mark.parametrize("keep", [1, 3])
def test_the_kept_checkpoints_have_their_files_and_others_none(open_owner, tmp_path, keep):
    owner = open_owner(max_models=1, keep=keep)
    checkpoints = []
    for number in range(10):
        for key in (b"a", b"b"):
            teach(owner.models.to_learn(key), 2, number)
        checkpoints.append((owner.save(), owner.models.digest()))
    assert len(files(tmp_path)) == keep + 1  # one more than needed, for a checkpoint that is just being replaced
    for epoch, (arrays, digest) in enumerate(checkpoints[-keep:], 2):
        with closing(Owner(tmp_path, epoch, keep=keep, arrays=arrays)) as other:
            assert other.models.digest() == digest


def test_what_an_owner_finds_is_removed_once_no_checkpoint_needs_it(open_owner, tmp_path):
    (tmp_path / "models-000001-0000000009").write_bytes(b"of one that was killed")
    owner = open_owner(epoch=2, keep=1)
    for number in range(2):
        assert "models-000001-0000000009" in files(tmp_path)
        teach(owner.models.to_learn(b"a"), 1, number)
        owner.save()
    assert "models-000001-0000000009" not in files(tmp_path)


def test_an_owner_removes_nothing_of_its_successor(open_owner, tmp_path):
    """It may not know yet that it has one."""
    first = open_owner(epoch=1, keep=1)
    teach(first.models.to_learn(b"a"), 2)
    arrays = first.save()
    second = open_owner(epoch=2, keep=1, arrays=arrays)
    teach(second.models.to_learn(b"b"), 2)
    second.save()
    for number in range(4):
        teach(first.models.to_learn(b"c"), 2, number)
        first.save()
    assert any(name.startswith("models-000002-") for name in files(tmp_path))
    digest = second.models.digest()
    second.models._live.clear()
    assert second.models.digest() == digest


def test_a_flood_of_keys_is_bounded_in_memory_and_on_disk(open_owner, tmp_path):
    owner = open_owner(max_models=3, keep=1, max_keys=10)
    for number in range(200):
        teach(owner.models.to_learn(b"flood-%d" % number), 2, number)
        teach(owner.models.to_learn(b"old friend"), 1, number)
        if number % 7 == 0:
            owner.save()
    arrays = owner.save()
    assert owner.models.keys() == {b"old friend", *(b"flood-%d" % number for number in range(191, 200))}
    assert (len(owner.models), owner.models.n_dropped) == (10, 191)
    owner.save()
    kept = owner.models.keys()
    held = sum(len(owner.models.trained(key).model.to_bytes()) for key in kept)
    assert sum(files(tmp_path).values()) < 8 * held
    assert sum(array.nbytes for name, array in arrays.items() if not name.startswith("withdrawn")) < 2000
    assert owner.models.withdrawn() == sorted(b"flood-%d" % number for number in range(191))


def test_a_smaller_limit_holds_at_once_after_a_restart(open_owner):
    owner = open_owner()
    for key in (b"b", b"a", b"c", b"a"):
        teach(owner.models.to_learn(key), 1)
    other = open_owner(epoch=2, arrays=owner.save(), max_keys=2)
    assert (other.models.keys(), other.models.n_dropped) == ({b"c", b"a"}, 1)


def test_a_checkpoint_from_before_there_was_a_limit_goes_on(open_owner):
    owner = open_owner()
    for key in (b"b", b"a"):
        teach(owner.models.to_learn(key), 1)
    arrays = {
        name: array for name, array in owner.save().items() if name not in ("withdrawn", "withdrawn_ends", "n_dropped")
    }
    other = open_owner(epoch=2, arrays=arrays)
    assert (other.models.digest(), other.models.n_dropped) == (owner.models.digest(), 0)


def test_without_a_topic_of_models_nothing_is_kept_to_be_withdrawn(tmp_path):
    with closing(KeyedModels(KIND, tmp_path, 1, 10, 1, max_keys=1)) as models:
        for key in (b"a", b"b"):
            models.to_learn(key)
        assert (models.n_dropped, models.withdrawn()) == (1, [])


def test_a_sparse_file_is_emptied_and_removed(open_owner, tmp_path):
    """One key of many goes on; the others are carried along when little else is left in their file."""
    owner = open_owner(max_models=100, keep=1)
    for number in range(20):
        teach(owner.models.to_learn(b"%d" % number), 5, number)
    owner.save()
    (first,) = files(tmp_path)
    for number in range(9):
        teach(owner.models.to_learn(b"%d" % number), 5, number + 50)
        owner.save()
        assert first in files(tmp_path)
    for number in range(9, 12):
        teach(owner.models.to_learn(b"%d" % number), 5, number + 50)
        owner.save()
    digest = owner.models.digest()
    owner.save()
    arrays = owner.save()
    assert first not in files(tmp_path)
    with closing(Owner(tmp_path, 2, arrays=arrays)) as other:
        assert other.models.digest() == digest


@pytest.mark.long
@pytest.mark.parametrize("max_models", [1, 100])
def test_files_stay_within_a_few_times_of_what_they_hold(open_owner, tmp_path, max_models):
    owner = open_owner(max_models=max_models, keep=1)
    rng = np.random.default_rng(0)
    for number in range(60):
        for key in rng.integers(12, size=6):
            teach(owner.models.to_learn(b"%d" % key), 1, number)
        owner.save()
    held = sum(len(owner.models.trained(b"%d" % key).model.to_bytes()) for key in range(12))
    assert sum(files(tmp_path).values()) < 8 * held


def test_a_kill_in_the_midst_of_a_file_costs_nothing(open_owner, tmp_path):
    owner = open_owner(max_models=1)
    for key in (b"a", b"b"):
        teach(owner.models.to_learn(key), 5)
    arrays, digest = owner.save(), owner.models.digest()
    for key in (b"a", b"b", b"c"):
        teach(owner.models.to_learn(key), 5, 1)  # two of them are in a file already, the third in memory
    owner.close()
    newest = max(tmp_path.glob("models-*"))
    newest.write_bytes(newest.read_bytes()[:-10])
    assert open_owner(epoch=2, arrays=arrays).models.digest() == digest


def test_no_models_at_all_can_be_saved(open_owner, tmp_path):
    arrays = open_owner().save()
    assert not files(tmp_path)
    other = open_owner(epoch=2, arrays=arrays)
    assert len(other.models) == 0
    assert other.models.digest() == open_owner(epoch=3).models.digest()


# --- what has changed -------------------------------------------------------------------------------------------------


def test_a_single_model_says_whether_it_has_learned():
    models = SingleModel(KIND.begun())
    assert [key for key, _ in models.changed()] == [None]  # nobody has it yet
    assert list(models.changed()) == []
    models.trained(b"any")
    assert list(models.changed()) == []
    assert models.to_learn(b"any") is models.model
    assert list(models.changed()) == [(None, models.model)]
    assert models.digest() == models.model.digest()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("names", np.frombuffer(b"../../secret", np.uint8)),
        ("places", np.array([[0, -1, 5]])),
        ("places", np.array([[0, 0, -5]])),
    ],
)
def test_models_are_looked_for_in_their_own_files_only(open_owner, tmp_path, name, value):
    owner = open_owner()
    teach(owner.models.to_learn(b"a"), 5)
    arrays = owner.models.save()
    with pytest.raises(SnapshotError, match="the checkpoint says"):
        owner.models.restore(arrays | {name: value})


# --- damage -----------------------------------------------------------------------------------------------------------


def damage(arrays, folder, key=b"a", at=100):
    """Flip a bit inside the stored model of a key; return the file."""
    place = places_of(arrays)[key]
    path = folder / place.file
    data = bytearray(path.read_bytes())
    data[place.start + at] ^= 1
    path.write_bytes(data)
    return path


def is_short(arrays, folder):
    place = places_of(arrays)[b"a"]
    os.truncate(folder / place.file, place.start + 10)


def is_gone(arrays, folder):
    (folder / places_of(arrays)[b"a"].file).unlink()


def is_no_model(arrays, folder):
    """Whole by its checksum, and yet no model of these settings."""
    place = places_of(arrays)[b"a"]
    path = folder / place.file
    data = bytearray(path.read_bytes())
    other = snapshot.pack("other", {"x": ""}, {})
    other = snapshot.pack("other", {"x": " " * (place.length - len(other))}, {})[: place.length]
    data[place.start : place.start + place.length] = other
    path.write_bytes(data)


DAMAGES = [damage, partial(damage, at=9), is_short, is_gone, is_no_model]


@pytest.fixture
def two_keys(open_owner):
    """The arrays of a checkpoint with the models of the keys a and b, a being the last one in its file."""
    owner = open_owner()
    for key in (b"b", b"a"):
        teach(owner.models.to_learn(key), 5)
        owner.save()
    return owner.save()


@pytest.mark.parametrize("spoil", DAMAGES)
def test_a_damaged_model_is_set_aside_and_the_others_stay(open_owner, two_keys, tmp_path, caplog, spoil):
    arrays, whole = two_keys, open_owner(epoch=2, arrays=two_keys)
    expected = whole.models.trained(b"b").model.digest()
    file = places_of(arrays)[b"a"].file
    spoil(arrays, tmp_path)
    found = open_owner(epoch=3, arrays=arrays)
    assert found.models.trained(b"a").model.n_seen == 0
    assert (found.models.n_damaged, found.models.keys()) == (1, {b"a", b"b"})
    assert f"{tmp_path / file}, " in caplog.text
    assert "the model of key b'a' cannot be read" in caplog.text
    again = open_owner(epoch=4, arrays=found.save())
    assert (again.models.trained(b"a").model.n_seen, again.models.n_damaged) == (0, 0)
    assert again.models.trained(b"b").model.digest() == expected
    assert len(files_set_aside(tmp_path)) == (0 if spoil in (is_short, is_gone) else 1)


@pytest.mark.parametrize("spoil", DAMAGES)
def test_whoever_does_not_own_the_folder_is_told_of_a_damaged_model(open_owner, two_keys, tmp_path, spoil):
    spoil(two_keys, tmp_path)
    with closing(KeyedModels(KIND, tmp_path, 0, 1, 1, 9, is_owner=False)) as models:
        models.restore(two_keys)
        with pytest.raises(SnapshotError, match="the model of key b'a' cannot be read"):
            models.trained(b"a")
    assert not files_set_aside(tmp_path)


@pytest.mark.parametrize("spoil", [damage, is_gone])
@pytest.mark.parametrize("is_live", [True, False])
def test_no_damage_is_carried_to_another_file(open_owner, two_keys, tmp_path, spoil, is_live):
    owner = open_owner(epoch=2, arrays=two_keys)
    digest = owner.models.trained(b"a").model.digest() if is_live else None
    file = places_of(two_keys)[b"a"].file
    spoil(two_keys, tmp_path)
    owner.models.leave({file})
    found = open_owner(epoch=3, arrays=owner.save())
    model = found.models.trained(b"a").model
    assert (model.digest() == digest) if is_live else (model.n_seen == 0)
    assert owner.models.n_damaged == (0 if is_live else 1)
    assert places_of(owner.save())[b"a"].file != file


def test_a_model_of_a_newer_version_is_not_set_aside(open_owner, two_keys, tmp_path):
    place = places_of(two_keys)[b"a"]
    path = tmp_path / place.file
    data = bytearray(path.read_bytes())
    blob = data[place.start : place.start + place.length]
    prelude = list(PRELUDE.unpack_from(blob))
    PRELUDE.pack_into(blob, 0, *prelude[:1], FORMAT + 1, *prelude[2:])
    blob[-DIGEST_SIZE:] = sha256([memoryview(blob)[:-DIGEST_SIZE]])
    data[place.start : place.start + place.length] = blob
    path.write_bytes(data)
    owner = open_owner(epoch=2, arrays=two_keys)
    with pytest.raises(SnapshotError, match="newer"):
        owner.models.trained(b"a")
    assert owner.models.n_damaged == 0
