"""A failed review authorizes no token."""

import pytest

from tests.unit.apiserver.client import InProcessKube
from tests.unit.apiserver.server import ApiServer
from tierbench.kube.client import ApiError
from tierbench.metrics.server import may_get


@pytest.mark.parametrize("status", [403, 503])
async def test_failed_review_raises_an_error(status: int) -> None:
    api = ApiServer()
    api.refuse["POST", "reviews"] = ApiError(status, "", "no")
    with pytest.raises(ConnectionError, match=str(status)):
        await may_get(InProcessKube(api), "/metrics", "a-token")
