"""Settings from environment variables."""

import pytest

from tierbench.api.policy import Policy, Quotas
from tierbench.controller.logs import LogFormat
from tierbench.controller.settings import Settings, SettingsError

ENVIRONMENT = {
    "TIERBENCH_RELEASE": "bench/tierbench",
    "TIERBENCH_LEASE_NAMESPACE": "leases",
    "TIERBENCH_CLIENT_IMAGE": "client:1",
    "TIERBENCH_NGINX_IMAGE": "nginx:1",
    "TIERBENCH_MOSQUITTO_IMAGE": "mosquitto:1",
    "TIERBENCH_KAFKA_IMAGE": "kafka:1",
    "TIERBENCH_PAHO_IMAGE": "paho:1",
    "TIERBENCH_SINETSTREAM_IMAGE": "sinetstream:1",
    "TIERBENCH_TRANSFER_IMAGE": "transfer:1",
    "TIERBENCH_NETWORK_IMAGE": "network:1",
    "TIERBENCH_WATCH_NAMESPACES": "a, b",
}


def test_settings_are_read_from_the_environment() -> None:
    settings = Settings.from_environment(ENVIRONMENT)
    assert settings.watch_namespaces == ("a", "b")
    assert (settings.images.client, settings.images.programs["nginx"]) == ("client:1", "nginx:1")
    assert (settings.log_level, settings.log_format) == ("INFO", LogFormat.TEXT)


def test_alternative_images_are_read_by_program_and_name() -> None:
    text = '{"nginx": {"1.19.6": "nginx:1.19.6"}, "kafka": {}}'
    images = Settings.from_environment({**ENVIRONMENT, "TIERBENCH_IMAGE_ALTERNATIVES": text}).images
    assert [images.of("nginx", name) for name in ("default", "1.19.6", "1.18")] == ["nginx:1", "nginx:1.19.6", ""]
    assert images.of("mosquitto", "1.19.6") == ""
    with pytest.raises(SettingsError, match="write images as in"):
        Settings.from_environment({**ENVIRONMENT, "TIERBENCH_IMAGE_ALTERNATIVES": '{"nginx": "nginx:1"}'})


def test_pull_policy_of_an_image_is_used() -> None:
    text = '{"nginx:1": "Always"}'
    images = Settings.from_environment({**ENVIRONMENT, "TIERBENCH_IMAGE_PULL_POLICIES": text}).images
    assert images.pulled("nginx:1") == {"image": "nginx:1", "imagePullPolicy": "Always"}
    assert images.pulled("kafka:1") == {"image": "kafka:1"}
    with pytest.raises(SettingsError, match="write policies as in"):
        Settings.from_environment({**ENVIRONMENT, "TIERBENCH_IMAGE_PULL_POLICIES": "Always"})


def test_limits_are_read_and_unknown_or_invalid_ones_are_rejected() -> None:
    assert Settings.from_environment(ENVIRONMENT).quotas == Quotas()
    given = Settings.from_environment({**ENVIRONMENT, "TIERBENCH_LIMITS": '{"cases": 5, "freeDisk": "1Gi"}'}).quotas
    assert (given.cases, given.free_bytes, given.history) == (5, 2**30, 50)
    for text, message in (
        ('{"case": 5}', "case: Extra"),
        ('{"cases": 0}', "cases: "),
        ("null", "TIERBENCH_LIMITS, of the chart's values: limits: "),
    ):
        with pytest.raises(SettingsError, match=message):
            Settings.from_environment({**ENVIRONMENT, "TIERBENCH_LIMITS": text})


def test_policy_rejects_the_host_of_the_api_server() -> None:
    given = {**ENVIRONMENT, "KUBERNETES_SERVICE_HOST": "10.96.0.1", "TIERBENCH_POLICY": '{"hostPaths": ["/srv"]}'}
    policy = Settings.from_environment(given).policy
    assert policy == Policy(host_paths=("/srv",)).with_refused_host("10.96.0.1")
    assert Settings.from_environment(ENVIRONMENT).policy == Policy()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"hostPath": []}', "hostPath: Extra inputs are not permitted"),
        ('{"hostPaths": ["/"]}', "hostPaths.0: String should match pattern"),
        ('{"refusedNetworks": ["10.0.0.1/8"]}', "refusedNetworks.0: Value error, 10.0.0.1/8 has host bits set"),
    ],
)
def test_invalid_policy_is_rejected_with_its_field(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=f"TIERBENCH_POLICY, of the chart's values: policy.{message}"):
        Settings.from_environment({**ENVIRONMENT, "TIERBENCH_POLICY": text})


def test_user_of_workloads_may_be_empty_but_not_invalid() -> None:
    def user(text: str) -> int | None:
        return Settings.from_environment({**ENVIRONMENT, "TIERBENCH_WORKLOADS_USER": text}).images.user

    assert (user("1000660000"), user("")) == (1000660000, None)
    for wrong in ("0", "root", "-1"):
        with pytest.raises(SettingsError, match="write a user id"):
            user(wrong)


@pytest.mark.parametrize(
    "name", ["TIERBENCH_LEASE_NAMESPACE", "TIERBENCH_CLIENT_IMAGE", "TIERBENCH_NGINX_IMAGE", "TIERBENCH_PAHO_IMAGE"]
)
def test_missing_setting_is_named(name: str) -> None:
    with pytest.raises(SettingsError, match=name):
        Settings.from_environment({key: value for key, value in ENVIRONMENT.items() if key != name})


def test_invalid_port_is_rejected() -> None:
    with pytest.raises(SettingsError, match="write a port number"):
        Settings.from_environment({**ENVIRONMENT, "TIERBENCH_HTTP_PORT": "http"})


def test_invalid_log_format_is_rejected() -> None:
    with pytest.raises(SettingsError, match="TIERBENCH_LOG_FORMAT is 'xml': write text or json"):
        Settings.from_environment({**ENVIRONMENT, "TIERBENCH_LOG_FORMAT": "xml"})
