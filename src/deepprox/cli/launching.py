"""``deepprox launch``: several processes of this machine, which end together."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import click

from deepprox.cli.voice import NOT_CONVERGED, OK, WRONG
from deepprox.spreading.processes import ADDRESS, COORDINATOR, FAILED, FILE, LOOPBACK, RANK, WORLD, joined

GRACE = 3.0  # seconds that processes have to keep what they have, once one of them is gone
LONGEST = 100  # bytes of the name of a file that is a socket; systems allow 104 to 108


def launch(count: int, arguments: Sequence[str], address: str | None = None) -> int:
    """Run a command in ``count`` processes of this machine; the exit code. When one fails, all end.

    They meet at an address of this machine; None is one that only this user can reach.
    """
    if count < 1:
        raise ValueError(f"There must be at least one process, not {count}.")
    if not arguments or arguments[0] != "fit":
        raise ValueError("launch starts fits alone, as in: deepprox launch -n 2 -- fit table.csv --target y.")
    with (
        tempfile.TemporaryDirectory() as folder,
        ranks(count, arguments, Path(folder), meeting_place(address, Path(folder))) as running,
    ):
        while all(process.poll() in (None, OK, NOT_CONVERGED) for process in running):
            if all(process.poll() is not None for process in running):
                return max(process.returncode for process in running)
            time.sleep(0.05)
        time.sleep(0.1)  # a process that was killed and those that saw it end at almost the same time
        ended = {k: process.returncode for k, process in enumerate(running) if process.poll()}
        guilty = min(ended, key=lambda k: (ended[k] >= 0, ended[k] == -signal.SIGABRT, k))
        said = (Path(folder) / str(guilty)).read_text(errors="replace").strip() if guilty else ""
    code = ended[guilty]
    if said and code > 0:
        click.echo(said, err=True)
    if code != WRONG:
        click.echo(f"deepprox: {fate(guilty, count, code)} {advice(count, arguments, address)}", err=True)
    return code if code > 0 else FAILED


def fate(rank: int, count: int, code: int) -> str:
    """What became of a process, in a sentence."""
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"failed with exit code {code}"
    if code == -signal.SIGABRT:
        how = "lost another process, which no longer answers, and gave up"
    return f"Process {rank} of {count} {how}, and the others were ended."


def advice(count: int, arguments: Sequence[str], address: str | None) -> str:
    """How to go on."""
    if "--checkpoint" not in arguments:
        return "With --checkpoint FOLDER a fit can go on from where it was."
    resume = () if "--resume" in arguments else ("--resume",)
    there = () if address is None else ("--address", address)
    again = ["deepprox", "launch", "-n", str(count), *there, "--", *arguments, *resume]
    return f"Go on from the checkpoint with: {shlex.join(again)}"


@contextmanager
def ranks(
    count: int, arguments: Sequence[str], folder: Path, place: dict[str, str]
) -> Iterator[list[subprocess.Popen]]:
    """The processes, each on its share of the cores; all have ended when the block is left.

    The first speaks for all; what the others say goes to files in ``folder``.
    """
    command = [sys.executable, "-m", "deepprox", *arguments, "--distributed"]
    where = place | {WORLD: str(count)}
    running: list[subprocess.Popen] = []

    def leave(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        for k in range(count):
            environment = os.environ | where | {RANK: str(k)}
            if k == 0:
                running.append(subprocess.Popen(command, env=environment))
            else:
                with open(folder / str(k), "wb") as file:
                    running.append(subprocess.Popen(command, env=environment, stdout=file, stderr=file))
            pin(running[k].pid, k, count)
        yield running
    except (SystemExit, KeyboardInterrupt):
        end(running, at_once=True)  # they keep what they have
        raise
    finally:
        end(running)
        signal.signal(signal.SIGTERM, before)


def end(running: list[subprocess.Popen], at_once: bool = False) -> None:
    """Let the processes end by themselves, unless at once, then ask them to, then end them."""
    ways: list[Callable] = [subprocess.Popen.poll, subprocess.Popen.terminate, subprocess.Popen.kill]
    for way in ways[at_once:]:
        left = [process for process in running if process.poll() is None]
        for process in left:
            way(process)
        until = time.monotonic() + GRACE
        while time.monotonic() < until and any(process.poll() is None for process in left):
            time.sleep(0.05)


def pin(process: int, rank: int, count: int) -> None:
    """Give a process its share of the cores: two that share them wait for each other."""
    if sys.platform == "linux":
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) >= count > 1:
            os.sched_setaffinity(process, cores[rank::count])


def meeting_place(address: str | None, folder: Path) -> dict[str, str]:
    """Where processes meet, as their environment says it: at a file in a private folder, or at an address.

    The file, since JAX lets whoever reaches the place take part, or end the fit. Where it cannot be, or its
    name cannot be said to JAX, it is the loopback address.
    """
    file = str(folder / "meeting")
    if address is None and os.name == "posix" and re.fullmatch(rf"[\w./-]{{1,{LONGEST}}}", file, re.ASCII):
        return {COORDINATOR: f"{FILE}{file}", ADDRESS: LOOPBACK}
    here, port = free_port(LOOPBACK if address is None else address)
    return {COORDINATOR: joined(here, port), ADDRESS: here}


def free_port(address: str) -> tuple[str, int]:
    """One of this machine's addresses as a number, and a port of it on which nobody listens."""
    try:
        family, *_, place = socket.getaddrinfo(address, 0, type=socket.SOCK_STREAM)[0]
        if ip_address(place[0]).is_unspecified:
            raise OSError("it stands for all addresses")
        with socket.socket(family) as listener:
            listener.bind(place)
            return listener.getsockname()[:2]
    except OSError as error:
        why = error.strerror or error
        raise ValueError(f"{address!r} is not one of this machine's addresses ({why}).") from None
