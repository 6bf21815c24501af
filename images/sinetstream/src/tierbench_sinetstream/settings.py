"""The parameters of the library for a request, by the names of its configuration file."""

from pathlib import Path
from typing import Final

from tierbench_engine.pipe import Json

CONSISTENCIES: Final = {
    "AtMostOnce": "AT_MOST_ONCE",
    "AtLeastOnce": "AT_LEAST_ONCE",
    "ExactlyOnce": "EXACTLY_ONCE",
}
LEVELS: Final = {"Gzip": range(1, 10), "Zstd": range(1, 23)}
COMPRESSIONS: Final = ("None", *LEVELS, *(f"{kind}:{level}" for kind, levels in LEVELS.items() for level in levels))
ENCRYPTIONS: Final = ("None", *(f"AES{bits}{mode}" for bits in (128, 256) for mode in ("CBC", "CTR", "EAX", "GCM")))

_MODE_AT: Final = len("AES128")


def parameters(asked: Json) -> Json:
    """Returns the parameters that a reader and a writer have in common."""
    return {
        "consistency": CONSISTENCIES[asked["delivery"]],
        "client_id": asked["name"],
        **_compression(asked["compression"]),
        **_encryption(asked["encryption"], asked["keyFile"]),
    }


def _compression(wanted: str) -> Json:
    """Returns the parameters of compression. The default level is the library's."""
    kind, _, level = wanted.partition(":")
    if kind == "None":
        return {"data_compression": False}
    how = {"algorithm": kind.lower(), **({"level": int(level)} if level else {})}
    return {"data_compression": True, "compression": how}


def _encryption(wanted: str, key_file: str) -> Json:
    """Returns the parameters of encryption. As in most configurations, the key is derived from a password."""
    if wanted == "None":
        return {"data_encryption": False}
    mode = wanted[_MODE_AT:]
    crypto = {
        "algorithm": "AES",
        "key_length": int(wanted[len("AES") : _MODE_AT]),
        "mode": mode,
        "padding": "pkcs7" if mode == "CBC" else None,
        "password": Path(key_file).read_bytes().hex(),
    }
    return {"data_encryption": True, "crypto": crypto}
