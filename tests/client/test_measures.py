"""The Go client's tests of magnitudes, one at a time, with the machine's fitness watched."""

import pytest

from tests import go


@pytest.mark.measures
@pytest.mark.parametrize(("package", "name"), go.tests("TestMeasures"))
def test_go(package: str, name: str) -> None:
    done = go.run(package, name)
    assert done.returncode == 0, done.stdout + done.stderr
