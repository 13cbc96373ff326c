"""Runs a Python program in a copy of the command server, as if this process were the program.

Usage: ADDRESS STARTED PROGRAM [ARGUMENT…]. STARTED has the variables that the server read at its start, as JSON; with
others, this process becomes the program itself. Else it passes on its standard streams and the signals that it gets,
and ends as the copy does. The server kills the copy if this process is killed.
"""

import json
import os
import signal
import socket
import sys
from collections.abc import Mapping

# The copy of a process has what the copied process read from these at its start. The path is set in each copy.
_READ_AT_START = ("PYTHON", "LANG", "LC_", "LD_", "TZ", "MALLOC_")
_PASSED_ON = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that Python and the C library read when a process starts."""
    return {
        name: value for name, value in environment.items() if name.startswith(_READ_AT_START) and name != "PYTHONPATH"
    }


def main() -> int:
    """Run the program, and return its exit status."""
    address, started, program, *arguments = sys.argv[1:]
    if read_at_start(os.environ) != json.loads(started):
        os.execv(program, [program, *arguments])
    # They wait until they can be passed on.
    signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    command = {
        "program": program,
        "arguments": arguments,
        "directory": os.getcwd(),  # noqa: PTH109 - pathlib takes longer to import than all the rest
        "environment": dict(os.environ),
    }
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(address)
        socket.send_fds(asked, [b"\n"], [0, 1, 2])
        asked.sendall(json.dumps(command).encode() + b"\n")
        # What is at the other end of a pipe must see when the copy closes it.
        for stream in range(3):
            os.close(stream)
        with asked.makefile("r") as said:
            copy = int(said.readline())
            for number in _PASSED_ON:
                signal.signal(number, lambda number, _: os.kill(copy, number))
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
            status = int(said.readline())
    if status < 0:
        if -status in _PASSED_ON:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    os._exit(main())
