"""Runs a producer and a consumer on confluent-kafka (librdkafka), with which the client is compared.

Messages are 1 KiB of random bytes with acks=all. At most WINDOW are in flight. RATE is per second; 0 has no limit.

python3 -m benchmarks.peers.kafka_peer HOST:PORT MESSAGES WINDOW RATE prints one line of JSON.
"""

import json
import os
import resource
import statistics
import sys
import threading
import time

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

SIZE, CHUNK, TIMEOUT_SECONDS = 1024, 64, 30
POOL = 16 * 2**20 // SIZE
NUMBER_BYTES = 8


class Exchange:
    """Sends messages to itself, and records when each was sent and received."""

    def __init__(self, address: str, messages: int, window: int, rate: int) -> None:
        self.messages, self.window, self.rate = messages, window, rate
        self.topic = f"peer-{os.getpid()}"
        self.administrator = AdminClient({"bootstrap.servers": address})
        self.administrator.create_topics([NewTopic(self.topic, 1, 1)])[self.topic].result()
        linger = {"linger.ms": 0} if rate else {}
        self.producer = Producer({"bootstrap.servers": address, "acks": "all", **linger})
        self.consumer = Consumer({"bootstrap.servers": address, "group.id": self.topic, "enable.auto.commit": False})
        self.consumer.assign([TopicPartition(self.topic, 0, 0)])
        self.sent = [0] * messages
        self.round_trips = [0] * messages
        self.received = 0
        self.pool = [os.urandom(SIZE - NUMBER_BYTES) for _ in range(POOL)]

    def run(self) -> dict[str, float]:
        """Returns the measurements, with rates per second and times in nanoseconds."""
        self._exchange_one()
        began, cpu = time.monotonic_ns(), _cpu_seconds()
        consuming = threading.Thread(target=self._consume)
        consuming.start()
        self._produce()
        consuming.join()
        seconds = (time.monotonic_ns() - began) / 1e9
        cpu = _cpu_seconds() - cpu
        self.administrator.delete_topics([self.topic])[self.topic].result()
        return {
            "messagesPerSecond": self.messages / seconds,
            "cpuNanosecondsPerMessage": cpu * 1e9 / self.messages,
            "roundTripP50Nanoseconds": statistics.median(self.round_trips),
            "roundTripP99Nanoseconds": statistics.quantiles(self.round_trips, n=100)[-1],
        }

    def _exchange_one(self) -> None:
        """Exchanges one message, so that the connections are open and the consumer polls."""
        self.producer.produce(self.topic, b"warm")
        self.producer.flush()
        if self.consumer.poll(TIMEOUT_SECONDS) is None:
            raise SystemExit("peer: no message came back")

    def _produce(self) -> None:
        first = time.monotonic()
        for number in range(self.messages):
            if self.rate:
                time.sleep(max(0.0, first + number / self.rate - time.monotonic()))
            elif number % CHUNK == 0:
                self._wait_for_room(number)
            self.sent[number] = time.monotonic_ns()
            self.producer.produce(self.topic, number.to_bytes(NUMBER_BYTES) + self.pool[number % POOL])
            if self.rate or number % CHUNK == 0:
                self.producer.poll(0)
        self.producer.flush()

    def _wait_for_room(self, number: int) -> None:
        while number - self.received > self.window:
            self.producer.poll(0.0005)

    def _consume(self) -> None:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while self.received < self.messages:
            if self.rate:
                found = self.consumer.poll(1)
                batch = [] if found is None else [found]
            else:
                batch = self.consumer.consume(self.window, 0.001)
            now = time.monotonic_ns()
            for message in batch:
                number = int.from_bytes((message.value() or b"")[:NUMBER_BYTES])
                self.round_trips[number] = now - self.sent[number]
            self.received += len(batch)
            if time.monotonic() > deadline:
                raise SystemExit("peer: messages did not come back")


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    print(json.dumps(Exchange(sys.argv[1], *map(int, sys.argv[2:])).run()))
