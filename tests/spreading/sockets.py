"""Where processes wait for others, as Linux says it."""

import os
import sys
from ipaddress import ip_address
from pathlib import Path


def listening(pids):
    """The addresses at which processes wait for others, and their ports."""
    files = [file for pid in pids for file in Path(f"/proc/{pid}/fd").iterdir()]
    ours = {os.readlink(file) for file in files if file.exists()}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, place, _, state, *_, inode = line.split()[:10]
            if state == "0A" and f"socket:[{inode}]" in ours:
                words, port = place.split(":")
                # words of the machine's own order, in the order of the net
                raw = b"".join(
                    int(words[k : k + 8], 16).to_bytes(4, sys.byteorder) for k in range(0, len(words), 8)
                )
                address = ip_address(raw)
                yield getattr(address, "ipv4_mapped", None) or address, int(port, 16)
