"""How many examples a property is tried with: a share of what the profile says that tests/conftest.py loads."""

from hypothesis import settings


def examples(share: float) -> settings:
    """For properties whose examples take long, or next to no time."""
    profile = settings.default
    assert profile is not None
    return settings(max_examples=round(share * profile.max_examples))
