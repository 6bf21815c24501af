"""Stored results are compressed, and decompressed as they were."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.operator.recorded import recorded
from tierbench.domain.results import Compressor

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
)


@given(st.lists(st.dictionaries(st.text(), JSON, max_size=5), max_size=5))
def test_objects_are_decompressed_as_they_were(objects: list[dict[str, Any]]) -> None:
    compressor = Compressor()
    compressed = [compressor.compress(raw) for raw in objects]
    assert [compressor.decompress(one) for one in compressed] == objects


def test_results_take_a_tenth_of_their_json() -> None:
    compressor, (result, *_) = Compressor(), recorded("files").results
    compressor.compress(result)
    again = {**result, "metadata": {**result["metadata"], "name": "another"}}
    assert 10 * len(compressor.compress(again)) < len(str(result))
