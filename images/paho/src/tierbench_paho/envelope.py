"""Encodes messages between application and broker: compression, then encryption. Decodes them again."""

import os
import zlib
from collections.abc import Callable
from time import monotonic_ns
from typing import Final

import zstandard
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

ENCRYPTIONS: Final = ("None", "AES128GCM")
LEVELS: Final = {"Gzip": range(1, 10), "Zstd": range(1, 23)}
COMPRESSIONS: Final = ("None", *LEVELS, *(f"{kind}:{level}" for kind, levels in LEVELS.items() for level in levels))

_NONCE_BYTES: Final = 12
_GZIP: Final = zlib.MAX_WBITS | 16
_DEFAULT_LEVELS: Final = {"None": 0, "Gzip": 6, "Zstd": 3}

_Step = Callable[[bytes], bytes]


class CorruptError(Exception):
    """A message is not what a publisher with these settings sends."""


class Codec:
    """Encodes and decodes; for one thread."""

    def __init__(self, compression: str, key: bytes | None) -> None:
        self.compress_nanoseconds = self.encrypt_nanoseconds = 0
        self.decrypt_nanoseconds = self.decompress_nanoseconds = 0
        kind, _, level = compression.partition(":")
        self._compress, self._decompress = _compressor(kind, int(level or _DEFAULT_LEVELS[kind]))
        self._cipher = None if key is None else AESGCM(key)

    def encode(self, plain: bytes) -> bytes:
        """Returns the compressed message, as nonce, ciphertext and tag if it is encrypted."""
        if self._compress is not None:
            started = monotonic_ns()
            plain = self._compress(plain)
            self.compress_nanoseconds += monotonic_ns() - started
        if self._cipher is not None:
            started = monotonic_ns()
            nonce = os.urandom(_NONCE_BYTES)
            plain = nonce + self._cipher.encrypt(nonce, plain, None)
            self.encrypt_nanoseconds += monotonic_ns() - started
        return plain

    def decode(self, message: bytes) -> bytes:
        """Returns what was encoded.

        Raises:
            CorruptError: it cannot be decoded.
        """
        try:
            return self._decode(message)
        except (InvalidTag, ValueError, zlib.error, zstandard.ZstdError) as error:
            raise CorruptError from error

    def _decode(self, message: bytes) -> bytes:
        if self._cipher is not None:
            started = monotonic_ns()
            message = self._cipher.decrypt(message[:_NONCE_BYTES], message[_NONCE_BYTES:], None)
            self.decrypt_nanoseconds += monotonic_ns() - started
        if self._decompress is not None:
            started = monotonic_ns()
            message = self._decompress(message)
            self.decompress_nanoseconds += monotonic_ns() - started
        return message


def _compressor(kind: str, level: int) -> tuple[_Step | None, _Step | None]:
    if kind == "Gzip":
        return lambda plain: zlib.compress(plain, level, wbits=_GZIP), lambda message: zlib.decompress(message, _GZIP)
    if kind == "Zstd":
        return zstandard.ZstdCompressor(level=level).compress, zstandard.ZstdDecompressor().decompress
    return None, None
