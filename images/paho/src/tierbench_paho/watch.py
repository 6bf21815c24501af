"""What a trial's load costs, and what the computers are like meanwhile: from just before it to just after it."""

import resource
from time import perf_counter_ns

from .contract import Json
from .machine import Machine
from .options import Options


class Watch:
    """Looks at the computers as it is made; `start` and `end` are what the load lies between.

    Raises:
        FailureError: the agent never answered, or it refuses.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._machine = Machine.own()
        agent = options.agent if options.barrier.part == 0 else None
        self._agent = agent if agent is not None and agent.begin() else None
        self._cpu = 0

    def start(self) -> int:
        """The load begins; when, in nanoseconds of the trial's clock."""
        self._cpu = _cpu_nanoseconds()
        return perf_counter_ns()

    def end(self) -> Json:
        """The load is over: the client's sample, and the server's if the agent gives one."""
        cpu = _cpu_nanoseconds() - self._cpu
        server = None if self._agent is None else self._agent.end()
        client = {
            "cpuNanoseconds": cpu,
            "cpuLimitMillicores": self._machine.cpu_limit_millicores,
            "tuning": self._options.tuning,
            "computer": self._machine.computer(self._options.target.host),
        }
        return {"client": client} if server is None else {"client": client, "server": server}


def _cpu_nanoseconds() -> int:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return round((usage.ru_utime + usage.ru_stime) * 1e9)
