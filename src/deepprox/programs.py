"""The compiled programs of this process: let go before they are too many, and not run after a fork.

A program holds 20 to 200 memory maps and some megabytes. Linux gives a process 65530 maps unless it was told
otherwise, and XLA ends the process where it gets no more; 165 shapes of data were enough. JAX itself never
lets a program go. One that is asked for again comes back from the disk cache in some hundredths of a second.
"""

import os
import sys
from pathlib import Path

import jax

COMPILED = "/jax/core/compile/backend_compile_duration"  # JAX's name for a program, fresh or from its cache
MOST = 256  # programs that are held: a gigabyte or two
OFTEN = 16  # programs from one look at the maps to the next, which takes as long as a small fit


class Programs:
    """What this process has compiled, and whether it may run programs at all."""

    def __init__(self, maps: Path, limit: Path) -> None:
        self.maps, self.limit = maps, limit
        self.held: list[float] = []  # seconds that each took to compile
        self.seen = 0  # of those, at the last look at the maps
        self.ran = self.lost = False

    def compiled(self, event: str, duration_secs: float, **_: object) -> None:
        """JAX has a program more."""
        if event == COMPILED:
            self.ran = True
            self.held.append(duration_secs)

    def forked(self) -> None:
        """This is a new process: the threads of JAX are not in it, if there were any."""
        self.lost = self.ran

    def ready(self) -> None:
        """Before programs run: a sentence where they would wait for ever; those that are many are let go."""
        if self.lost:
            raise RuntimeError(
                "JAX has run in the process that this one was forked from, and would wait for ever here: "
                "start processes by 'spawn' or 'forkserver', or fork them before anything is fitted. "
                "Predictions need no JAX."
            )
        self.ran = True
        if self.many():
            self.let_go()

    def many(self) -> bool:
        """Whether there are too many: by number, or by half of the maps that a process may have."""
        n = len(self.held)
        if n >= MOST:
            return True
        if n < self.seen + OFTEN:
            return False
        self.seen = n
        try:
            return self.maps.read_bytes().count(b"\n") > int(self.limit.read_text()) / 2
        except OSError:  # not Linux: maps are not counted there
            return False

    def let_go(self) -> None:
        """Forget all programs; what runs now is held by whoever runs it."""
        self.held.clear()
        self.seen = 0
        jax.clear_caches()


HERE = Programs(Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count"))
jax.monitoring.register_event_duration_secs_listener(HERE.compiled)
if sys.platform != "win32":
    os.register_at_fork(after_in_child=HERE.forked)
