"""The account of publishers and subscribers at a broker of this operator, made at random."""

import hashlib
import secrets
from base64 import b64encode
from typing import Final

_PAYLOAD_KEY_BYTES: Final = 16
_SALT_BYTES: Final = 12


def account(username: str) -> dict[str, bytes]:
    """A password as clear text, as Mosquitto keeps it and as Kafka takes it, and a key for payloads."""
    password = secrets.token_urlsafe(24).encode()
    return {
        "username": username.encode(),
        "password": password,
        "mosquitto-passwords": f"{username}:{_mosquitto_hash(password)}\n".encode(),
        "kafka-account": f"SCRAM-SHA-512=[name={username},password={password.decode()}]".encode(),
        "payload-key": secrets.token_bytes(_PAYLOAD_KEY_BYTES),
    }


def _mosquitto_hash(password: bytes) -> str:
    """SHA-512 with a salt, as every version of Mosquitto reads it. The password is random: one round does."""
    salt = secrets.token_bytes(_SALT_BYTES)
    digest = hashlib.sha512(password + salt).digest()
    return f"$6${b64encode(salt).decode()}${b64encode(digest).decode()}"
