"""Connects to an API server as the operator does."""

from kubernetes.aio.client import ApiClient, Configuration

from tests.api.server import ApiServer


def connected(server: ApiServer) -> ApiClient:
    """Returns a client that is configured as the operator's."""
    configuration = Configuration(host=server.url, api_key={"BearerToken": f"Bearer {server.token}"})
    configuration.ssl_ca_cert = str(server.folder / "pki" / "ca.crt")
    return ApiClient(configuration)
