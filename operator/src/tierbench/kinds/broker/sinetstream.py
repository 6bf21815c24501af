"""The settings of an advice as a configuration of SINETStream, the library of NII."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import yaml

from tierbench.api.result import BenchmarkResult
from tierbench.kinds.broker.server_spec import PROTOCOL
from tierbench.results.quantities import levels_and_parameters
from tierbench.results.units import join_words

FACTORS: Final = ("delivery", "compression", "encryption", "tls")

_CONSISTENCIES: Final = {
    "AtMostOnce": "AT_MOST_ONCE",
    "AtLeastOnce": "AT_LEAST_ONCE",
    "ExactlyOnce": "EXACTLY_ONCE",
}
_KAFKA: Final = "kafka"
_PORTS: Final = {"mqtt": (1883, 8883), _KAFKA: (9092, 9093)}
_KAFKAS_OWN: Final = "codec"  # a factor that only cases of Kafka have
_NONE: Final = "None"
_MODE_AT: Final = len("AES128")


def configuration(name: str, levels: Mapping[str, str], results: Sequence[BenchmarkResult]) -> str:
    """Returns a .sinetstream_config.yml with one service.

    `levels` are those that the advice chooses and asks for, and `results` those that have them. If all results have one
    level of another factor, it counts, too. Comments say what is left to the reader.
    """
    if any(each.spec.service is not None and PROTOCOL in each.spec.service.settings for each in results):
        return f"# SINETStream has no HTTP, which {name} uses: choose among the others with --level broker=NAME.\n"
    measured = {
        factor: {level for each in results if (level := levels_and_parameters(each).get(factor)) is not None}
        for factor in (*FACTORS, _KAFKAS_OWN)
    }
    known = {factor: next(iter(found)) for factor, found in measured.items() if len(found) == 1} | dict(levels)
    kind = _KAFKA if measured[_KAFKAS_OWN] else "mqtt"
    lines = [
        f"# .sinetstream_config.yml: the settings of {name} by tierbench. Write your own broker, topic and account.",
        *_left_open(known, measured),
        *_own_of_kafka(kind, known),
    ]
    body = {"header": {"version": 3}, "config": {name: _service(kind, known)}}
    return "\n".join(lines) + "\n" + yaml.safe_dump(body, sort_keys=False)


def _left_open(known: Mapping[str, str], measured: Mapping[str, set[str]]) -> Iterator[str]:
    for factor in FACTORS:
        if factor not in known and measured[factor]:
            yield (
                f"# {factor} is left out: it was measured as {join_words(sorted(measured[factor]))}. Choose it with "
                f"--choose {factor}, or set it with --level {factor}=LEVEL."
            )


def _own_of_kafka(kind: str, known: Mapping[str, str]) -> Iterator[str]:
    if kind != _KAFKA:
        return
    if known.get("delivery") == "ExactlyOnce":
        yield "# SINETStream has no EXACTLY_ONCE for Kafka, and uses AT_LEAST_ONCE."
    if known.get("delivery") == "AtLeastOnce":
        yield "# With Kafka, AT_LEAST_ONCE waits for one replica (acks=1), and the measured clients for all of them."


def _service(kind: str, levels: Mapping[str, str]) -> dict[str, Any]:
    secure = levels.get("tls", _NONE) != _NONE
    service: dict[str, Any] = {
        "type": kind,
        "brokers": f"BROKER:{_PORTS[kind][secure]}",
        "topic": "TOPIC",
    }
    if "delivery" in levels:
        delivery = "AtLeastOnce" if kind == _KAFKA and levels["delivery"] == "ExactlyOnce" else levels["delivery"]
        service["consistency"] = _CONSISTENCIES[delivery]
    if secure:
        service["tls"] = {"ca_certs": "ca.crt"}
    return service | _compression(levels.get("compression")) | _encryption(levels.get("encryption"))


def _compression(level: str | None) -> dict[str, Any]:
    if level is None:
        return {}
    if level == _NONE:
        return {"data_compression": False}
    kind, _, strength = level.partition(":")
    how = {"algorithm": kind.lower(), **({"level": int(strength)} if strength else {})}
    return {"data_compression": True, "compression": how}


def _encryption(level: str | None) -> dict[str, Any]:
    """Returns the parameters for AES with its length and mode, as in AES256CBC."""
    if level is None:
        return {}
    if level == _NONE:
        return {"data_encryption": False}
    mode = level[_MODE_AT:]
    crypto: dict[str, Any] = {"algorithm": "AES", "key_length": int(level[len("AES") : _MODE_AT]), "mode": mode}
    if mode == "CBC":
        crypto["padding"] = "pkcs7"
    return {"data_encryption": True, "crypto": {**crypto, "password": {"value": "PASSWORD"}}}
