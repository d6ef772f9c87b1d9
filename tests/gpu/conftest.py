"""Tests that need a GPU; without one they are skipped, and say why."""

import pytest

from streamsvm.core.device.gpu import NoDevice, find_gpu


@pytest.fixture(scope="session")
def gpu():
    """The GPU of this machine."""
    try:
        return find_gpu()
    except NoDevice as error:
        pytest.skip(f"no GPU: {error}")
