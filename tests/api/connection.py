"""The operator's way to an API server."""

from kubernetes.aio.client import ApiClient, Configuration

from tests.api.server import ApiServer


def connected(server: ApiServer) -> ApiClient:
    """A client as the operator has one."""
    configuration = Configuration(host=server.url, api_key={"BearerToken": f"Bearer {server.token}"})
    configuration.ssl_ca_cert = str(server.folder / "pki" / "ca.crt")
    return ApiClient(configuration)
