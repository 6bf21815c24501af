"""What the operator logs: one line an entry, whatever a name, an answer or a traceback brings along."""

import json
import logging
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final


class LogFormat(StrEnum):
    """How the operator logs: for people, or as an object of JSON for each entry. An entry is one line in both."""

    TEXT = "text"
    JSON = "json"


# C0 and C1, DEL, and the separators at which some readers break lines.
_CONTROL: Final = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)
_ESCAPED: Final = {code: ascii(chr(code))[1:-1] for code in _CONTROL}


class TextFormatter(logging.Formatter):
    """Time, level, logger and message, and of an exception its traceback, with control characters escaped."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        return super().format(record).translate(_ESCAPED)


class JsonFormatter(logging.Formatter):
    """The same as an object."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, in ASCII."""
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry)


_FORMATTERS: Final = {LogFormat.TEXT: TextFormatter, LogFormat.JSON: JsonFormatter}


def log_to_stderr(level: str, log_format: LogFormat) -> None:
    """Everything of the process, libraries and warnings included."""
    handler = logging.StreamHandler()
    handler.setFormatter(_FORMATTERS[log_format]())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.captureWarnings(True)
