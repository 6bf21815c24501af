"""Facts that the kernel reports are recorded, and others are absent."""

from pathlib import Path

import pytest

from images.paho.src.tierbench_paho.machine import Machine

CPU = "sys/devices/system/cpu"
THERMAL = "sys/class/thermal"
PI = "sys/devices/platform/soc/soc:firmware/get_throttled"
INTEL = f"{CPU}/cpu0/thermal_throttle/core_throttle_count"
COOLING = {f"{THERMAL}/cooling_device0/type": "cpufreq-cpu0"}
STATE = f"{THERMAL}/cooling_device0/cur_state"


def write(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content + "\n")


def seen(root: Path, before: dict[str, str], after: dict[str, str] | None = None, broker: str = "10.1.2.3") -> object:
    write(root, before)
    machine = Machine(root)
    write(root, after or {})
    return machine.computer(broker)


def test_a_kernel_that_tells_nothing_leaves_everything_absent(tmp_path: Path) -> None:
    assert seen(tmp_path, {}) == {}
    assert Machine(tmp_path).cpu_limit_millicores == 1000


def test_frequency_governor_and_temperature(tmp_path: Path) -> None:
    files = {
        f"{CPU}/cpu0/cpufreq/scaling_cur_freq": "1000000",
        f"{CPU}/cpu0/cpufreq/cpuinfo_max_freq": "1500000",
        f"{CPU}/cpu0/cpufreq/scaling_governor": "ondemand",
        f"{CPU}/cpu10/cpufreq/scaling_cur_freq": "2000000",
        f"{CPU}/cpu10/cpufreq/cpuinfo_max_freq": "2500000",
        f"{CPU}/cpu10/cpufreq/scaling_governor": "powersave",
        f"{THERMAL}/thermal_zone0/temp": "45000",
        f"{THERMAL}/thermal_zone1/temp": "61500",
        f"{THERMAL}/thermal_zone2/temp": "100000",
        f"{THERMAL}/thermal_zone2/type": "PMIC-Die",
        f"{THERMAL}/thermal_zone3/temp": "-274000",
        "proc/sys/net/ipv4/tcp_congestion_control": "bbr",
    }
    assert seen(tmp_path, files) == {
        "cpuFrequencyKilohertz": 1_500_000,
        "cpuMaxKilohertz": 2_000_000,
        "cpuGovernor": "ondemand,powersave",
        "temperatureMillidegrees": 61_500,
        "congestionControl": "bbr",
    }


def test_a_jetsons_power_mode(tmp_path: Path) -> None:
    assert seen(tmp_path, {"var/lib/nvpmodel/status": "pmode:0001 fmode:quiet"}) == {"powerMode": "1"}
    modes = "< POWER_MODEL ID=0 NAME=MAXN >\n< POWER_MODEL ID=1 NAME=5W >"
    assert seen(tmp_path, {"etc/nvpmodel.conf": modes}) == {"powerMode": "5W"}


@pytest.mark.parametrize(
    ("before", "after", "throttles"),
    [
        ({INTEL: "7"}, {}, 0),
        ({INTEL: "7"}, {INTEL: "10"}, 3),
        ({INTEL: "7"}, {INTEL: "0"}, 0),
        ({PI: "e0000"}, {}, 0),
        ({PI: "0"}, {PI: "50000"}, 1),
        ({PI: "0x0"}, {PI: "0x80000"}, 1),
        ({PI: "e000e"}, {}, 1),
        ({PI: "0"}, {PI: "10001"}, 0),
        ({**COOLING, STATE: "2"}, {}, 1),
        ({**COOLING, STATE: "0"}, {}, 0),
    ],
)
def test_processors_slowed_for_their_heat_during_the_trial(
    tmp_path: Path, before: dict[str, str], after: dict[str, str], throttles: int
) -> None:
    assert seen(tmp_path, before, after) == {"thermalThrottles": throttles}


def test_a_fan_slows_nothing(tmp_path: Path) -> None:
    assert seen(tmp_path, {f"{THERMAL}/cooling_device0/type": "Fan", STATE: "2"}) == {}


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "max 100000"}, 1000),
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "50000 100000"}, 500),
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "400000 100000"}, 1000),
        (
            {
                "proc/self/cgroup": "0::/pod/c",
                "sys/fs/cgroup/pod/c/cpu.max": "max 100000",
                "sys/fs/cgroup/pod/cpu.max": "30000 100000",
            },
            300,
        ),
        ({"proc/self/cgroup": "0::/../other", "sys/fs/cgroup/cpu.max": "20000 100000"}, 200),
        (
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/kubepods/pod/c\n0::/kubepods/pod/c",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "25000",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            },
            250,
        ),
        (
            {
                "proc/self/cgroup": "4:cpu:/",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            },
            1000,
        ),
    ],
    ids=["none", "v2", "more than a thread", "pod", "elsewhere", "v1", "v1 none"],
)
def test_the_least_quota_is_the_limit(tmp_path: Path, files: dict[str, str], limit: int) -> None:
    write(tmp_path, files)
    assert Machine(tmp_path).cpu_limit_millicores == limit


@pytest.mark.parametrize(
    ("group", "file", "before", "after"),
    [
        ("0::/", "sys/fs/cgroup/cpu.stat", "usage_usec 9\nthrottled_usec 1000", "usage_usec 9\nthrottled_usec 3500"),
        ("3:cpu:/pods/c", "sys/fs/cgroup/cpu/cpu.stat", "throttled_time 1000000", "throttled_time 3500000"),
    ],
    ids=["v2", "v1"],
)
def test_time_held_back_by_a_quota(tmp_path: Path, group: str, file: str, before: str, after: str) -> None:
    found = seen(tmp_path, {"proc/self/cgroup": group, file: before}, {file: after})
    assert found == {"quotaThrottledNanoseconds": 2_500_000}


IPV4 = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0
cni0\t0000010A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0"""
ANY, ZEROS = "0" * 32, "00000000"
IPV6 = f"""\
{ANY} 00 {ANY} 00 {ANY} 00000400 {ZEROS} {ZEROS} 00000003     eth1
fd000000000000000000000000000000 08 {ANY} 00 {ANY} 00000100 {ZEROS} {ZEROS} 00000001     cni0
{ANY} 00 {ANY} 00 {ANY} ffffffff {ZEROS} {ZEROS} 00200200       lo"""


@pytest.mark.parametrize(
    ("broker", "interface"),
    [("127.0.0.1", "lo"), ("192.0.2.1", "eth0"), ("10.1.7.7", "cni0"), ("2001:db8::1", "eth1"), ("fd00::7", "cni0")],
)
def test_the_interface_and_its_mtu(tmp_path: Path, broker: str, interface: str) -> None:
    files = {f"sys/class/net/{interface}/mtu": "1450", "proc/net/route": IPV4, "proc/net/ipv6_route": IPV6}
    assert seen(tmp_path, files, broker=broker) == {"interface": interface, "mtuBytes": 1450}
