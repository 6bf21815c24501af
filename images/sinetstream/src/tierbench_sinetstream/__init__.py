"""The SINETStream engine for brokers: it measures what an application sees that uses NII's Python library.

It speaks the protocol of docs/reference/engine-protocol.md.
"""

from typing import Final

VERSION: Final = "0.2.0-dev"
