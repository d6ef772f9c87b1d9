"""What the doctor says about a schema registry and an object store."""

import sys

import pytest
from logged import append

from streamsvm.connectors.commands.doctor.log import check_log
from streamsvm.connectors.commands.doctor.services import check_objects, check_registry
from streamsvm.connectors.settings.loading import load


def with_registry(config, url):
    return load(config, {}, ["log.format=registry", f"schema.registry={url}", "schema.user=u", "schema.password=p"])


def with_objects(config, url):
    return load(config, {}, ["state.store=objects", f"state.url={url}"])


def test_without_these_services_there_is_nothing_to_say(config):
    settings = load(config, {})
    assert not [*check_registry(settings), *check_objects(settings)]


def test_a_registry_that_answers(config, registry):
    (found,) = check_registry(with_registry(config, registry.url))
    assert (found.level, registry.url in found.text) == ("ok", True)


def test_a_registry_that_refuses_us_or_is_in_trouble(config, registry):
    settings = with_registry(config, registry.url)
    registry.failing = [500]
    (found,) = check_registry(settings)
    assert (found.level, "answers 500" in found.text) == ("problem", True)
    registry.login = "someone:else"
    (found,) = check_registry(settings)
    assert (found.level, "schema.password" in found.remedy) == ("problem", True)


def test_a_registry_that_is_not_there(tmp_path, config, registry):
    """The records are not waited for, as a trainer would."""
    settings = with_registry(config, registry.url)
    registry.close()
    (found,) = check_registry(settings)
    assert (found.level, "gives no valid answer" in found.text) == ("problem", True)
    append(tmp_path / "log", [b"\0\0\0\0\1{}"])
    assert "gives no valid answer" in list(check_log(settings))[-1].text


def test_a_store_that_works_keeps_nothing_of_the_check(tmp_path, config):
    pytest.importorskip("obstore")
    (found,) = check_objects(with_objects(config, f"file://{tmp_path}/bucket"))
    assert (found.level, "took an object" in found.text) == ("ok", True)
    assert not [path for path in (tmp_path / "bucket").rglob("*") if path.is_file()]


def test_a_store_that_does_not_take_an_object(tmp_path, config):
    pytest.importorskip("obstore")
    (tmp_path / "file").write_text("no folder")
    (found,) = check_objects(with_objects(config, f"file://{tmp_path}/file/bucket"))
    assert (found.level, found.remedy != "") == ("problem", True)


def test_a_store_that_overwrites_objects(tmp_path, config, monkeypatch):
    """Two trainers could own a partition at once."""
    obstore = pytest.importorskip("obstore")
    put = obstore.put
    monkeypatch.setattr(obstore, "put", lambda *given, mode, **options: put(*given, **options))
    (found,) = check_objects(with_objects(config, f"file://{tmp_path}/bucket"))
    assert (found.level, "conditional writes" in found.text) == ("problem", True)
    assert not [path for path in (tmp_path / "bucket").rglob("*") if path.is_file()]


def test_a_store_whose_library_is_missing(tmp_path, config, monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    (found,) = check_objects(with_objects(config, f"file://{tmp_path}/bucket"))
    assert (found.level, "pip install" in found.text) == ("problem", True)
