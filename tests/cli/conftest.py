"""Commands run in the ``folder`` of a test module."""

import pytest
from click.testing import CliRunner

from deepprox.cli import main


@pytest.fixture
def run(folder, monkeypatch):
    """A command must end with its code, and with no traceback."""
    monkeypatch.chdir(folder)

    def call(*words, code=0, stdin=None):
        result = CliRunner().invoke(main, [str(word) for word in words], input=stdin)
        assert result.exit_code == code, result.output
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result

    return call
