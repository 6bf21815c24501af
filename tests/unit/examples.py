"""The number of examples of a property: a share of that of the profile that tests/conftest.py loads."""

from hypothesis import settings


def examples(share: float) -> settings:
    """Returns settings for properties whose examples take very long or very little time."""
    profile = settings.default
    assert profile is not None
    return settings(max_examples=round(share * profile.max_examples))
