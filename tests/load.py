"""Loads this machine while tests run, with busy loops and a writer that waits for the disk."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

_LOOP = "while True: pass"
_WRITER = """
import os, tempfile
file = tempfile.TemporaryFile()
while True:
    file.seek(0)
    file.write(bytes(1 << 20))
    file.flush()
    os.fsync(file.fileno())
"""


@contextmanager
def load(loops: int) -> Iterator[None]:
    """Runs busy loops and, unless `loops` is 0, a writer. They end with the block or with this process."""
    programs = [_LOOP] * loops + ([_WRITER] if loops else [])
    with ExitStack() as stack:
        for program in programs:
            command = ["setpriv", "--pdeathsig", "KILL", "--", sys.executable, "-c", program]
            process = stack.enter_context(subprocess.Popen(command, env=os.environ))
            stack.callback(process.kill)
        yield
