"""Property tests find what is wrong, not what is slow: a busy machine must not fail them.

HYPOTHESIS_PROFILE=release tries many more examples, and others each time.
"""

import os

from hypothesis import settings

settings.register_profile("gate", deadline=None, derandomize=True, database=None, max_examples=50)
settings.register_profile("release", deadline=None, print_blob=True, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "gate"))
