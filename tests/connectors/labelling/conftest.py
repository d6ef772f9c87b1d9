"""What the tests of labelling share."""

import pytest
from asked import of_questions


@pytest.fixture(autouse=True)
def _haste(haste):
    pass


@pytest.fixture
def settings(tmp_path):
    return of_questions(tmp_path)
