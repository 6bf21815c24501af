"""The log of the operator. An entry is one line, whatever its message, fields and traceback contain.

A message is a short constant text. What it is about (benchmark, run, node, error) is given as fields by `extra=`.
"""

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final


class LogFormat(StrEnum):
    """The format of an entry: text for people, or one JSON object."""

    TEXT = "text"
    JSON = "json"


# C0 and C1, DEL, and the separators at which some readers break lines.
_CONTROL: Final = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)
ESCAPED: Final = {code: ascii(chr(code))[1:-1] for code in _CONTROL}
"""The escape sequence of each control character, for `str.translate`."""
# The attributes of every record; all others are fields.
_STANDARD: Final = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"})
_OF_KOPF: Final = frozenset({"settings", "k8s_ref", "k8s_skip"})
_QUOTED: Final = frozenset(' ="\\')


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    fields = {name: value for name, value in vars(record).items() if name not in _STANDARD | _OF_KOPF}
    reference = getattr(record, "k8s_ref", None)
    if reference is None:
        return fields
    return {"kind": reference["kind"], "object": f"{reference['namespace']}/{reference['name']}", **fields}


class TextFormatter(logging.Formatter):
    """Prints time, level, logger, message, fields as key=value, and a traceback. Escapes control characters."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (overrides logging's)
        """Returns the entry without the traceback."""
        return " ".join([super().formatMessage(record), *(f"{k}={_quoted(v)}" for k, v in _fields(record).items())])

    def format(self, record: logging.LogRecord) -> str:
        """Returns one line."""
        return super().format(record).translate(ESCAPED)


def _quoted(value: Any) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if not text or _QUOTED & {*text} else text


class JsonFormatter(logging.Formatter):
    """Prints the same as a JSON object. Fields are members of it."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns one line of ASCII characters."""
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


_FORMATTERS: Final = {LogFormat.TEXT: TextFormatter, LogFormat.JSON: JsonFormatter}


def log_to_stderr(level: str, log_format: LogFormat) -> None:
    """Sends the log of the process to stderr, including that of libraries and Python's warnings.

    kopf logs every event of every object at INFO, so that level is left out.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(_FORMATTERS[log_format]())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.captureWarnings(True)
    root = logging.getLogger().level
    logging.getLogger("kopf").setLevel(root if root < logging.INFO else max(root, logging.WARNING))
