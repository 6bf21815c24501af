"""Builds the client, and compares it with its peers."""

import subprocess
import tempfile
from pathlib import Path

from benchmarks.peers import advice, download, kafka, mqtt, network, operator, report_page, scrape, sizes
from benchmarks.peers.measure import ROOT, Command, report


def main() -> None:
    """Runs all comparisons."""
    with tempfile.TemporaryDirectory() as folder:
        client = Path(folder) / "tierbench-client"
        build: Command = [ROOT / "tools" / "go", "build", "-trimpath", "-ldflags=-s -w", "-o", client, "."]
        subprocess.run(build, cwd=ROOT / "images" / "client", check=True)
        report(
            [
                *download.comparisons(client),
                *mqtt.comparisons(client),
                *kafka.comparisons(client),
                *network.comparisons(client),
                *sizes.comparisons(client),
                *report_page.comparisons(),
                *advice.comparisons(),
                *scrape.comparisons(),
                *operator.comparisons(),  # last: its cluster takes a share of the machine
            ]
        )


if __name__ == "__main__":
    main()
