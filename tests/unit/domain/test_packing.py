"""What was packed is there again, whatever came before it."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.operator.recorded import recorded
from tierbench.domain.results import Packer

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
)


@given(st.lists(st.dictionaries(st.text(), JSON, max_size=5), max_size=5))
def test_it_reads_back(objects: list[dict[str, Any]]) -> None:
    packer = Packer()
    packed = [packer.pack(raw) for raw in objects]
    assert [packer.unpack(one) for one in packed] == objects


def test_results_take_a_tenth_of_their_json() -> None:
    packer, (result, *_) = Packer(), recorded("files").results
    packer.pack(result)
    again = {**result, "metadata": {**result["metadata"], "name": "another"}}
    assert 10 * len(packer.pack(again)) < len(str(result))
