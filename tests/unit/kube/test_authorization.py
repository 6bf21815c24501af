"""A failed review authorizes no token, and no unknown token is logged."""

from typing import Any, cast

import pytest

from tests.unit.kube.test_client import Server
from tierbench.kube.authorization import may_get
from tierbench.kube.client import Kube


@pytest.mark.parametrize("status", [403, 503])
async def test_a_review_that_is_not_done(status: int) -> None:
    with pytest.raises(ConnectionError, match=str(status)):
        await may_get(Kube(cast(Any, Server(status))), "/metrics", "a-token")
