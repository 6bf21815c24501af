"""How much a result takes where it is stored."""

import json

from tierbench.api.result import ResultStatus, TraceStatus


def sized(status: ResultStatus, trace: TraceStatus | None = None) -> ResultStatus:
    """A status that says what it and the trace of its case take."""
    parts = [status] if trace is None else [status, trace]
    stored = sum(len(json.dumps(part.to_json())) for part in parts)
    return status.model_copy(update={"stored_bytes": stored})
