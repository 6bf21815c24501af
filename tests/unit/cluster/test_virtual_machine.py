"""The arguments of qemu for a virtual machine."""

from pathlib import Path

import pytest

from tests.cluster import ClusterError
from tests.cluster.vm import BOARDS, Debian, Disk, Tap, UserNetwork, VirtualMachine
from tests.cluster.vm.accelerator import EMULATION, KVM
from tests.cluster.vm.virtual_machine import Drive

USER = UserNetwork(2222)
TAP = Tap("node0", "02:00:c6:12:00:0a", "198.18.0.10", "198.18.0.254")


def machine(architecture: str = "amd64", tap: Tap | None = None, drives: tuple[Drive, ...] = ()) -> str:
    disk = Disk(BOARDS[architecture], Path("/cache"))
    machine = VirtualMachine("pi-1", Path("/a,b"), disk, USER, tap, memory=1 << 30, cpus=3, drives=drives)
    return " ".join(machine.command(EMULATION))


def test_board_and_processor_match_the_architecture() -> None:
    processor = "max,avx=off,avx2=off,erms=off,fsrm=off,la57=off,smap=off"
    assert machine().startswith(f"qemu-system-x86_64 -machine q35 -accel {EMULATION} -cpu {processor} -smp 3")
    assert " -m 1024M " in machine()
    assert machine("arm64").startswith(f"qemu-system-aarch64 -machine virt -accel {EMULATION} -cpu cortex-a72")
    assert "console=ttyAMA0 root=/dev/vda rw" in machine("arm64")


def test_processor_of_the_same_architecture_is_that_of_the_host() -> None:
    disk = Disk(BOARDS["arm64"], Path("/cache"))
    assert "-accel kvm -cpu host" in " ".join(VirtualMachine("a", Path("/f"), disk, USER).command(KVM))


def test_machine_has_its_own_image_layer_and_more_drives() -> None:
    command = machine(drives=(Drive(Path("/data"), read=1000), Drive(Path("/tools"), writable=False)))
    assert "-drive file=/a,,b/layer.qcow2,if=virtio,format=qcow2" in command
    assert "-drive file=/data,if=virtio,format=raw,cache=none,discard=unmap,throttling.bps-read=1000" in command
    assert "-drive file=/tools,if=virtio,format=raw,cache=none,discard=unmap,readonly=on" in command


def test_ssh_listens_on_loopback() -> None:
    assert "hostfwd=tcp:127.0.0.1:2222-:22" in machine()
    assert "ip=eth0:dhcp" in machine()


def test_tap_is_the_first_interface_and_has_the_address_in_the_kernel_command_line() -> None:
    command = machine(tap=TAP)
    assert command.index("tap,id=tap,ifname=node0,script=no") < command.index("user,id=user")
    assert "ip=198.18.0.10::198.18.0.254:255.255.255.0::eth0:off ip=10.0.2.15:::255.255.255.0::eth1:off" in command


def test_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ClusterError, match="no program 'qemu-system-aarch64': run tools/setup vm"):
        BOARDS["arm64"].check()


@pytest.mark.parametrize(("release", "architecture"), [("sid", "amd64"), ("trixie", "mips")])
def test_unknown_debian_is_rejected_with_a_list_of_known_ones(release: str, architecture: str) -> None:
    with pytest.raises(ClusterError, match="known are bookworm, trixie for amd64, arm64"):
        Debian(release, architecture).disk()
