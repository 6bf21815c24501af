"""Property tests find what is wrong, not what is slow: a busy machine must not fail them."""

from hypothesis import settings

settings.register_profile("tierbench", deadline=None)
settings.load_profile("tierbench")
