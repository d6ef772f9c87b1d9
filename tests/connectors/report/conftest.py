"""What the tests of reports share."""

import pytest

from streamsvm.connectors.commands.cli import main


@pytest.fixture
def call(capsys):
    """Run a command; return its exit code and both outputs."""

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
