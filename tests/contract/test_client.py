"""The real client prints lines that the shared schema accepts and the operator reads."""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.contract.conftest import HANG_SECONDS, SIZE
from tests.contract.schema import CONTRACT
from tierbench.api.contract import CONTRACT_VERSION
from tierbench.api.trial_plan import AgentAccess, PlannedTrial, TransferPlan, TransferTarget
from tierbench.results.client_output import Output, SealState, add_sealed, check_seal, parse_output
from tierbench.workloads.manifests import plan_document


def command(
    client: Path, message: Path, url: str, trials: Iterable[int] = (1,), agent: AgentAccess | None = None, **fields: Any
) -> list[str]:
    """Returns the command line to download a file, with further fields of the plan."""
    plan = TransferPlan(
        contract=CONTRACT_VERSION,
        kind="Transfer",
        schedule=tuple(PlannedTrial(trial=trial) for trial in trials),
        targets=(TransferTarget(url=url, agent=agent),),
        **{"size_bytes": SIZE, **fields},
    )
    return [str(client), "measure", f"--plan={plan_document(plan)}", "--output=json", f"--termination-log={message}"]


def run(client: Path, tmp_path: Path, url: str, **fields: Any) -> tuple[int, str, str]:
    """Runs the client. Returns its exit code, log and termination message."""
    message = tmp_path / "termination"
    words = command(client, message, url, **fields)
    done = subprocess.run(words, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)
    return done.returncode, done.stdout, message.read_text()


def validate(line: str) -> Any:
    body = json.loads(line)
    CONTRACT.validate(body)
    return body


def test_operator_reads_trials_and_their_seal(client: Path, tmp_path: Path, url: str) -> None:
    code, log, message = run(client, tmp_path, f"{url}/file.bin", trials=(2, 3, 4), warmup_trials=1, concurrency=2)
    assert code == 0
    for line in log.splitlines():
        validate(line)
    validate(message)
    output = parse_output(log)
    assert output.problems == ()
    assert [(trial.trial, trial.warmup) for trial in output.trials] == [(1, True), (2, False), (3, False), (4, False)]
    assert all(trial.transfer is not None and trial.transfer.bytes == 2 * SIZE for trial in output.trials)
    assert check_seal(parse_output(log), message).state is SealState.COMPLETE
    assert check_seal(parse_output(log[: len(log) // 2]), message).state is SealState.CUT_SHORT
    from_seal = add_sealed(Output(), message)
    assert [trial.line for trial in from_seal.printed] == [trial.line for trial in output.printed]
    assert check_seal(from_seal, message).state is SealState.COMPLETE


def test_operator_reads_failed_trials(client: Path, tmp_path: Path, url: str) -> None:
    code, log, message = run(client, tmp_path, f"{url}/absent.bin", trials=(1, 2))
    assert code == 0
    trials = parse_output(log).trials
    assert [trial.failure.reason for trial in trials if trial.failure is not None] == ["NotFound", "NotFound"]
    assert check_seal(parse_output(log), message).state is SealState.COMPLETE
    for line in log.splitlines():
        validate(line)


def test_seal_contains_the_failure_that_ended_the_client(client: Path, tmp_path: Path, url: str) -> None:
    code, log, message = run(client, tmp_path, f"{url}/file.bin", verify_digest=True)
    assert code == 1
    check = check_seal(parse_output(log), message)
    assert check.seal is not None
    assert check.seal.failure is not None
    assert check.seal.failure.reason == "NoDigest"
