"""Where processes that fit together listen: at the loopback address unless told otherwise."""

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from deepprox.cli.launching import advice, meeting_place
from deepprox.spreading.processes import ADDRESS, COORDINATOR, RANK, WORLD, _address, _bound
from spreading.sockets import listening

for_linux = pytest.mark.skipif(sys.platform != "linux", reason="sockets are read from /proc")
MEMBER = """
import sys
import jax
from deepprox.spreading.processes import connect

connect()
print(len(jax.devices()), flush=True)
sys.stdin.read()
"""
STRANGER = """
import os, socket, sys

os.setuid(54321)
try:
    socket.socket(socket.AF_UNIX).connect(sys.argv[1])
except OSError as error:
    print(error.strerror)
"""


def member(place, rank):
    around = {name: value for name, value in os.environ.items() if not name.startswith("DEEPPROX_")}
    around |= place | {RANK: str(rank), WORLD: "2", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", MEMBER]
    return subprocess.Popen(command, env=around, stdin=-1, stdout=-1, text=True)


def own_address():
    """An address of this machine that other machines may reach; None where there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            return None
        return probe.getsockname()[0]


@pytest.fixture
def folder():
    """A folder for a meeting, made as the launcher makes it, and not inside a private one."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@for_linux
@pytest.mark.parametrize("place", ["file", "loopback", "coordinator alone", "own"])
def test_processes_listen_at_one_address(folder, place):
    address = {"file": None, "own": own_address()}.get(place, "127.0.0.1")
    if place == "own" and address is None:
        pytest.skip("this machine has no other address")
    there = meeting_place(address, folder)
    if place == "coordinator alone":
        del there[ADDRESS]
    members = [member(there, rank) for rank in range(2)]
    try:
        for one in members:
            assert one.stdout.readline() == "2\n"
        found = [*listening(one.pid for one in members)]
        assert {str(host) for host, _ in found} == {address or "127.0.0.1"}
        ports = {port for _, port in found}
        assert len(ports) == 2 if place == "file" else int(there[COORDINATOR].split(":")[1]) in ports
        if place == "file":
            assert_strangers_are_kept_out(there[COORDINATOR], members)
        for one in members:
            one.stdin.close()  # they leave together
        codes = [one.wait(timeout=60) for one in members]
    finally:
        for one in members:
            one.kill()
            one.wait()
            one.stdin.close()
            one.stdout.close()
    assert codes == [0, 0]


def assert_strangers_are_kept_out(meeting, members):
    """Another user is not let in, and what he says at the other ports ends nothing."""
    for _, port in listening(one.pid for one in members):
        for junk in (b"", b"GET / HTTP/1.0\r\n\r\n", bytes(4096)):
            with socket.create_connection(("127.0.0.1", port)) as stranger:
                stranger.sendall(junk)
    if os.geteuid() == 0:
        command = [sys.executable, "-c", STRANGER, meeting.removeprefix("unix:")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.stdout == "Permission denied\n", done.stderr
    assert [one.poll() for one in members] == [None, None]


@pytest.mark.parametrize(
    ("coordinator", "address", "bound"),
    [
        ("127.0.0.1:29500", "127.0.0.1", "127.0.0.1:29500"),
        ("localhost:29500", "127.0.0.1", "127.0.0.1:29500"),
        ("[::1]:29500", "::1", "[::1]:29500"),
        ("unix:/run/me/meeting", "127.0.0.1", "unix:/run/me/meeting"),
        ("10.1.2.3:29500", None, None),  # an address of another host, perhaps
        ("first-host:29500", None, None),
        (None, None, None),
    ],
)
def test_the_address_is_that_of_the_coordinator_if_no_other_machine_is_meant(
    monkeypatch, coordinator, address, bound
):
    monkeypatch.delenv(ADDRESS, raising=False)
    assert _address(coordinator) == address and _bound(coordinator, address) == bound


def test_an_address_of_ones_own_is_taken(monkeypatch):
    monkeypatch.setenv(ADDRESS, "10.1.2.3")
    assert _bound("first-host:29500", _address("first-host:29500")) == "10.1.2.3:29500"
    monkeypatch.setenv(ADDRESS, "fd00::2")
    assert _bound("first-host:29500", _address("first-host:29500")) == "[fd00::2]:29500"


@pytest.mark.skipif(os.name != "posix", reason="sockets that are files are those of POSIX")
def test_processes_of_one_machine_meet_at_a_file_where_it_can_be_named(tmp_path):
    assert meeting_place(None, Path("/tmp/a")) == {COORDINATOR: "unix:/tmp/a/meeting", ADDRESS: "127.0.0.1"}
    for folder in ("/tmp/" + 100 * "a", "/tmp/a b", "/tmp/a%20b", "/tmp/\u00e4"):
        place = meeting_place(None, Path(folder))
        assert place[COORDINATOR].startswith("127.0.0.1:") and place[ADDRESS] == "127.0.0.1"


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.77", "no such host"])
def test_an_address_that_is_not_ours_is_told(tmp_path, address):
    with pytest.raises(ValueError, match="is not one of this machine's addresses"):
        meeting_place(address, tmp_path)


def test_the_address_is_part_of_how_to_go_on():
    said = advice(2, ("fit", "t.csv", "--checkpoint", "run"), "10.1.2.3")
    assert said.endswith("launch -n 2 --address 10.1.2.3 -- fit t.csv --checkpoint run --resume")
