"""The reasons that only brokers have, for the reference.

The first sentence of a text is the meaning, the others say what to do.
"""

from typing import Final

from tierbench.kinds.registry import Reasons

REASONS: Final = Reasons(
    failures={
        "BrokerUnreachable": "No first message arrived within `timeouts.firstMessageSeconds`. Check the address, the "
        "port and network policies.",
        "CertificateExpired": "The broker's certificate is not valid now. Renew it, and check the clock of the node.",
        "CertificateUnknown": "Another CA signed the broker's certificate, or it has another name. Fix `ca.crt`.",
        "ClientCertificateRefused": "The broker requires a certificate of the client, and got none or refuses it. Fix "
        "`tls.crt` and `tls.key` in the Secret, or write `tlsClients.certificates: [Required]`.",
        "ClientCertificateUnused": "The broker asked for no certificate of the client. Let it require one at this "
        "port, or write `tlsClients.certificates: [None]`.",
        "CredentialsRefused": "The broker refuses the user or the password. Fix the Secret.",
        "EngineFailed": "The program that makes the load ended early. Read the client's log, which has what it wrote.",
        "EngineInvalid": "The program that makes the load broke a rule of its protocol. Use images of one release, or "
        "fix the engine.",
        "EngineSilent": "The program that makes the load wrote or answered nothing for 30 s. Read the client's log.",
        "KafkaVersionUnsupported": "SINETStream's library does not speak to this version of Kafka. Measure it with "
        "`clients.engine: Native`, or choose another of `kafka.images`.",
        "LowerQosGranted": "The broker grants a lower QoS than requested. Choose another `delivery`.",
        "MessagesUnusable": "The ConfigMap of your messages is missing or empty, or a message has less than 9 bytes. "
        "Fix it, and run again.",
        "MqttVersionRefused": "The broker does not speak this version of MQTT. Choose another one of "
        "`mqttClients.versions`.",
        "NotAuthorized": "The user may not use the topic. Fix the access rules of the broker.",
        "NothingAcknowledged": "The load ran, and the broker acknowledged no message. Read its log, and check what "
        "its user may write.",
        "NothingDelivered": "The load ran, and no message came back. Read the broker's log.",
        "PayloadNotDelivered": "A small message arrives, and one of this size does not. Raise the broker's limit, or "
        "use smaller sizes.",
        "PortsExhausted": "Publishers that connect for each message used all ports of the client, because each holds a "
        "closed connection for a minute. Send fewer messages, or use `clients.connections: EachTrial`.",
        "RequestsRefused": "The HTTP server answers messages with another status than 2xx. Fix `external.path` or the "
        "account, or read the server's log.",
        "SeveralBrokers": "The Kafka has more than one broker, and the engine SINETStream supports one. Measure it "
        "with `clients.engine: Native`.",
        "TlsVersionRefused": "The broker does not allow the version of TLS. Choose another `tls`.",
        "TopicRefused": "Kafka refuses that many partitions. Check the broker's policies.",
        "Unconfirmed": "The connection broke off or the broker did not answer, so it is not known what it received. "
        "Read its log, and run again.",
    },
    invalid={
        "AcknowledgedLost": "The broker acknowledged messages and lost them. Check whether it restarted.",
        "MessagesLost": "Messages were lost, and the times are those of messages that arrived.",
        "NotResumed": "Connections that should resume TLS sessions made full handshakes. Check that the broker issues "
        "session tickets, and that it did not restart.",
    },
    facts={
        "BehindPace": "Messages were sent late or not at all, because broker or subscribers were slower than the "
        "pacing.",
        "BrokerSaturated": "The broker or its node used all its CPU, which limited the numbers.",
        "Duplicated": "Messages were received twice.",
        "NotSteady": "Round trips reached no steady state, so no message was left out of them. Make the load longer.",
    },
    unreachable=frozenset(
        {"BrokerUnreachable", "EngineFailed", "EngineSilent", "NothingAcknowledged", "NothingDelivered", "Unconfirmed"}
    ),
)
