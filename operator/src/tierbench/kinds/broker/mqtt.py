"""What only clients of MQTT have: its versions, and a connection for each message."""

from typing import Final

from tierbench.api.model import Model, Rule, factor
from tierbench.api.trial_plan import MqttSettings, MqttVersion
from tierbench.workloads.plan import Case, Factor

_VERSION: Final = "mqttVersion"


class MqttFactors(Model):
    """Factors that only the clients of MQTT have."""

    versions: tuple[MqttVersion, ...] = factor(
        (MqttVersion.V3_1_1,),
        'Versions of the protocol: "3.1.1", "5" (a factor). Write quotes, because 5 is a number.',
        most=2,
    )


MQTT_CASES: Final = "size(self.mqttClients.versions)"
_EACH_MESSAGE: Final = "self.clients.connections != 'EachMessage' || "
MQTT_RULES: Final = (
    Rule(
        "self.clients.engine != 'SINETStream' || self.mqttClients.versions == ['3.1.1']",
        "clients.engine: SINETStream measures MQTT 3.1.1 only: remove mqttClients, or write Native or Paho",
    ),
    Rule(
        f"{_EACH_MESSAGE}self.clients.engine == 'Native' && self.brokers.all(b, has(b.mosquitto)"
        " || has(b.external) && b.external.protocol == 'MQTT')",
        "clients.connections: EachMessage is only for MQTT and the engine Native: write EachTrial, or measure Kafka "
        "and other engines in another benchmark",
    ),
    Rule(
        f"{_EACH_MESSAGE}!has(self.pacing.inFlight) || self.pacing.inFlight == 1",
        "clients.connections: EachMessage has one message of a publisher in flight: remove pacing.inFlight, or add "
        "pairs",
    ),
)


def mqtt_factors(factors: MqttFactors) -> tuple[Factor, ...]:
    """Returns the factors that only the clients of MQTT have, if the spec names their levels."""
    return () if factors == MqttFactors() else (Factor(_VERSION, tuple(level.value for level in factors.versions)),)


def mqtt_settings(case: Case) -> dict[str, MqttSettings]:
    """Returns the field of a trial plan for the version of a case, if the case has one."""
    version = case.levels.get(_VERSION)
    return {} if version is None else {"mqtt": MqttSettings(version=MqttVersion(version))}
