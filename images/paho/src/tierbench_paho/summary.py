"""The books of all pairs together, as the contract writes them."""

from collections.abc import Sequence
from statistics import fmean

from .contract import Json
from .histogram import Histogram
from .ledger import Ledger
from .pairs import Pair
from .wire import Counters


def exchange(pairs: Sequence[Pair], size: int) -> Json:
    """What publishers and subscribers did; messages have `size` bytes."""
    ledgers = [pair.ledger for pair in pairs]
    connections = [connection for pair in pairs for connection in pair.connections]
    codecs = [codec for pair in pairs for codec in pair.codecs]
    wire = sum((connection.wire for connection in connections), Counters())
    sent, received = sum(one.sent for one in ledgers), sum(one.received for one in ledgers)
    causes = {
        "Disconnected": sum(connection.breaks for connection in connections),
        "Refused": sum(pair.refused for pair in pairs),
        "TimedOut": sum(ledger.unacknowledged for ledger in ledgers),
        "Corrupt": sum(ledger.corrupt for ledger in ledgers),
    }
    return {
        "pairs": len(pairs),
        "sent": sent,
        "received": received,
        "lost": sent - received,
        "acknowledged": sum(ledger.acknowledged for ledger in ledgers),
        "acknowledgedLost": sum(ledger.acknowledged_lost for ledger in ledgers),
        "duplicated": sum(ledger.duplicated for ledger in ledgers),
        "outOfOrder": sum(ledger.out_of_order for ledger in ledgers),
        "retried": sum(ledger.retried for ledger in ledgers),
        "reconnects": sum(connection.reconnects for connection in connections),
        "errors": sum(causes.values()),
        "errorCauses": causes,
        "lateSends": sum(ledger.late for ledger in ledgers),
        "sentBytes": sent * size,
        "receivedBytes": received * size,
        "encodedBytes": sum(pair.encoded_bytes for pair in pairs),
        "wireSentBytes": wire.sent_bytes,
        "wireReceivedBytes": wire.received_bytes,
        "tcpRetransmits": wire.retransmits,
        "connectNanoseconds": round(fmean(connection.connect_nanoseconds for connection in connections)),
        "tlsNanoseconds": round(fmean(connection.tls_nanoseconds for connection in connections)),
        "compressNanoseconds": sum(codec.compress_nanoseconds for codec in codecs),
        "encryptNanoseconds": sum(codec.encrypt_nanoseconds for codec in codecs),
        "decryptNanoseconds": sum(codec.decrypt_nanoseconds for codec in codecs),
        "decompressNanoseconds": sum(codec.decompress_nanoseconds for codec in codecs),
    }


def distributions(pairs: Sequence[Pair], qos: int) -> Json:
    """Of all messages that came back; of acknowledgements at QoS 1 and 2."""
    ledgers = [pair.ledger for pair in pairs]
    found = {"roundTrip": _merged(ledgers, "round_trip"), "roundTripActual": _merged(ledgers, "round_trip_actual")}
    return found | ({"acknowledge": _merged(ledgers, "acknowledge")} if qos else {})


def _merged(ledgers: Sequence[Ledger], name: str) -> Json:
    merged = Histogram()
    for ledger in ledgers:
        merged.include(getattr(ledger, name))
    return merged.to_json()
