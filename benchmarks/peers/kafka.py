"""Compares records of 1 KiB through one local Kafka, produced and consumed in one process, with confluent-kafka."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmarks.peers.kafka_broker import broker
from benchmarks.peers.measure import CLIENT_PROCESSORS, Command, Comparison, Usage, compare, in_turn
from benchmarks.peers.mqtt import RUNS, Run, exchange, light, of_usage

PEER = "confluent-kafka"
WINDOW = 4096
MESSAGES, RATE, RATE_SECONDS = 300_000, 500, 4
LEAST_RATE = 1.0 if CLIENT_PROCESSORS == 1 else 1.2
"""The smallest rate, as a multiple of the peer's."""


def comparisons(client: Path) -> list[Comparison]:
    """Compares rate and CPU as fast as possible, and the round trip at a modest rate without a linger."""
    with broker() as address:
        fast = in_turn(_ours(client, address, MESSAGES, 0), _theirs(address, MESSAGES, 0), RUNS)
    with broker() as address:  # the first one is busy for a minute with the removal of its data
        modest = RATE * RATE_SECONDS
        steady = in_turn(_ours(client, address, modest, RATE), _theirs(address, modest, RATE), RUNS)
    name = "Kafka acks=all, 1 KiB"
    return [
        replace(_compare(f"{name}, rate", "records/s", fast, lambda run: run.messages_per_second), low=LEAST_RATE),
        replace(_compare(f"{name}, CPU", "us/record", fast, lambda run: run.cpu_microseconds), high=1.0),
        *light(f"{name}, {RATE}/s", PEER, steady),
    ]


def _ours(client: Path, address: str, messages: int, rate: int) -> Command:
    return exchange(client, f"kafka://{address}", messages, rate, max_in_flight=WINDOW, delivery="AtLeastOnce")


def _theirs(address: str, messages: int, rate: int) -> Command:
    return [sys.executable, *f"-m benchmarks.peers.kafka_peer {address} {messages} {WINDOW} {rate}".split()]


def _compare(name: str, unit: str, pairs: list[tuple[Usage, Usage]], value: Callable[[Run], float]) -> Comparison:
    return compare(name, unit, PEER, pairs, lambda usage: value(of_usage(usage)))
