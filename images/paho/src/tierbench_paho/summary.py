"""The books of all pairs together, as the contract writes them."""

from collections.abc import Sequence
from statistics import fmean

from .connection import Connection
from .contract import Json
from .envelope import Codec
from .ledger import Ledger
from .pairs import Pair
from .steady import Times, warm_up
from .wire import Counters


def exchange(pairs: Sequence[Pair]) -> Json:
    """What publishers did, and subscribers if there are any."""
    ledgers = [pair.ledger for pair in pairs]
    connections = [connection for pair in pairs for connection in pair.connections]
    cipher = next((connection.cipher for connection in connections if connection.cipher is not None), None)
    codecs = [codec for pair in pairs for codec in pair.codecs]
    alone = ledgers[0].alone
    wire = traffic(connections)
    causes = {
        "Disconnected": sum(connection.breaks for connection in connections),
        "Refused": sum(pair.refused for pair in pairs),
        "TimedOut": sum(ledger.unacknowledged for ledger in ledgers),
        "Corrupt": sum(ledger.corrupt for ledger in ledgers),
    }
    return {
        "pairs": len(pairs),
        "sent": sum(ledger.sent for ledger in ledgers),
        "acknowledged": sum(ledger.acknowledged for ledger in ledgers),
        **(_acknowledged(ledgers) if alone else _arrivals(ledgers, codecs)),
        "retried": sum(ledger.retried for ledger in ledgers),
        "reconnects": sum(connection.reconnects for connection in connections),
        "errors": sum(causes.values()),
        "errorCauses": causes,
        "lateSends": sum(ledger.late for ledger in ledgers),
        "unsent": sum(pair.unsent for pair in pairs),
        "sentBytes": sum(pair.sent_bytes for pair in pairs),
        "encodedBytes": sum(pair.encoded_bytes for pair in pairs),
        "wireSentBytes": wire.sent_bytes,
        "wireReceivedBytes": wire.received_bytes,
        "wireSentPackets": wire.sent_packets,
        "wireReceivedPackets": wire.received_packets,
        "connections": len(connections),
        "tcpRetransmits": wire.retransmits,
        "compressNanoseconds": sum(codec.compress_nanoseconds for codec in codecs),
        "encryptNanoseconds": sum(codec.encrypt_nanoseconds for codec in codecs),
        **({} if cipher is None else {"cipher": cipher}),
    }


def _acknowledged(ledgers: Sequence[Ledger]) -> Json:
    return {"acknowledgedBytes": sum(ledger.acknowledged_bytes for ledger in ledgers)}


def _arrivals(ledgers: Sequence[Ledger], codecs: Sequence[Codec]) -> Json:
    """What only subscribers tell."""
    return {
        "received": sum(ledger.received for ledger in ledgers),
        "lost": sum(ledger.lost for ledger in ledgers),
        "acknowledgedLost": sum(ledger.acknowledged_lost for ledger in ledgers),
        "duplicated": sum(ledger.duplicated for ledger in ledgers),
        "outOfOrder": sum(ledger.out_of_order for ledger in ledgers),
        "receivedBytes": sum(ledger.received_bytes for ledger in ledgers),
        "decryptNanoseconds": sum(codec.decrypt_nanoseconds for codec in codecs),
        "decompressNanoseconds": sum(codec.decompress_nanoseconds for codec in codecs),
    }


def traffic(connections: Sequence[Connection]) -> Counters:
    """What has gone over the wire so far in this trial."""
    return sum((connection.traffic() for connection in connections), Counters())


def connecting(connections: Sequence[Connection], wire: Counters) -> Json:
    """What making the connections took."""
    return {
        "setupBytes": wire.bytes,
        "setupPackets": wire.packets,
        "connectNanoseconds": round(fmean(connection.connect_nanoseconds for connection in connections)),
        "tlsNanoseconds": round(fmean(connection.tls_nanoseconds for connection in connections)),
    }


def pair_shares(pairs: Sequence[Pair], started: int) -> Json:
    """What each pair had of a load that started then, if there are subscribers."""
    ledgers = [pair.ledger for pair in pairs]
    if ledgers[0].alone:
        return {}
    shares = {
        "received": [ledger.received for ledger in ledgers],
        "nanoseconds": [max((ledger.last_done or ledger.last_sent) - started, 0) for ledger in ledgers],
    }
    return {"pairShares": shares}


def discard_warm_up(pairs: Sequence[Pair]) -> Json:
    """Leaves out of the distributions what came before the steady state, if there is one."""
    all_series = [pair.ledger.series for pair in pairs]
    messages, steady = warm_up(all_series)
    discarded = sum(series.discard(messages) for series in all_series)
    return {"discarded": discarded} if steady is None else {"discarded": discarded, "steady": steady}


def distributions(pairs: Sequence[Pair], qos: int) -> Json:
    """Of messages that came back, if they do; of acknowledgements at QoS 1 and 2."""
    times = Times()
    for pair in pairs:
        times.include(pair.ledger.series.times())
    back = {"roundTrip": times.round_trip.to_json(), "roundTripActual": times.round_trip_actual.to_json()}
    return ({} if pairs[0].ledger.alone else back) | ({"acknowledge": times.acknowledge.to_json()} if qos else {})
