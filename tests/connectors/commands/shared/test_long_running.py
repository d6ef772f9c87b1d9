"""What the commands share that work until they are stopped."""

import pytest

import streamsvm
from streamsvm.connectors.commands.shared.long_running import on_one_core


def test_a_service_stays_on_one_core(monkeypatch):
    monkeypatch.delenv("STREAMSVM_NUM_THREADS", raising=False)
    before = streamsvm.get_num_threads()
    with on_one_core():
        assert streamsvm.get_num_threads() == 1
    assert streamsvm.get_num_threads() == before
    with pytest.raises(KeyError), on_one_core():
        raise KeyError
    assert streamsvm.get_num_threads() == before


def test_the_environment_may_give_it_more(monkeypatch):
    monkeypatch.setenv("STREAMSVM_NUM_THREADS", "3")
    with on_one_core():
        assert streamsvm.get_num_threads() == 3
