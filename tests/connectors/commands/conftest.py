"""What the tests of commands share."""

import pytest
from logged import write_config

from streamsvm.connectors.commands.cli import main


@pytest.fixture
def call(capsys):
    """Run a command; return its exit code and the lines of both outputs."""

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out.splitlines(), captured.err.splitlines()

    return call


@pytest.fixture
def config(tmp_path):
    """The file of a configuration, beside an empty embedded log."""
    return write_config(tmp_path, checkpoint_records=50)
