from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from tierbench.metrics.results import Samples, gauge, render

FAMILY = gauge("tierbench_test", "A test.")


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])), st.text(alphabet='"\\\n,{}= x'))
def test_labels_are_parsed_back_unchanged(one: str, other: str) -> None:
    samples = Samples({"one": one})
    samples.add(FAMILY, 1, {"other": other})
    (family,) = text_string_to_metric_families("".join(render([samples])))
    assert family.samples[0].labels == {"one": one, "other": other}


@given(st.integers(0, 2000))
def test_every_object_is_rendered_once(number: int) -> None:
    objects = []
    for index in range(number):
        objects.append(Samples({"index": str(index)}))
        objects[-1].add(FAMILY, index)
    pieces = list(render(objects))
    assert all(pieces)
    found = [sample.value for family in text_string_to_metric_families("".join(pieces)) for sample in family.samples]
    assert found == list(range(number))


def test_unknown_value_has_no_sample() -> None:
    samples = Samples({})
    samples.add(FAMILY, None)
    assert not list(render([samples]))
