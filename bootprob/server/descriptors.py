"""How many connections the system lets a process have."""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass

import psutil

from bootprob.exceptions import DataError

__all__ = ["Room", "room_for"]

LOGGER = logging.getLogger("bootprob.server")
_BACKLOG = 2048  # connections that the system has accepted and the process has not yet seen
_SPARE = 32  # descriptors for files that are opened now and then
_LEAST = 16


@dataclass(frozen=True)
class Room:
    """What fits into a process's descriptors.

    Attributes
    ----------
    connections, requests : int
        At a time; more connections than requests, so that one is left for health.
    backlog : int
        Connections that may arrive at once.
    """

    connections: int
    requests: int
    backlog: int


def room_for(connections: int, requests: int) -> Room:
    """Raise the limit on open files as far as it must and may be; beyond, lower the numbers.

    Raises
    ------
    DataError
        There are no descriptors left to serve with.
    """
    if sys.platform == "win32":  # has no such limit
        return Room(connections, requests, _BACKLOG)
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        hard = sys.maxsize
    taken = psutil.Process().num_fds() + _SPARE
    needed = taken + connections + _BACKLOG
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = min(needed, hard)
        limit = hard if hard < sys.maxsize else resource.RLIM_INFINITY
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, limit))
        if soft < needed:
            return _smaller(soft, soft - taken, connections, requests)
    return Room(connections, requests, _BACKLOG)


def _smaller(limit: int, free: int, connections: int, requests: int) -> Room:
    # All connections of the backlog arrive before one of them can be turned away.
    most = free - free // 4
    if most * 3 // 4 < min(_LEAST, requests):
        raise DataError(f"The limit on open files, {limit}, is too low to serve; raise ulimit -n.")
    if connections <= most:
        return Room(connections, requests, free - connections)
    room = Room(most, min(requests, most * 3 // 4), free - most)
    LOGGER.warning(
        "The limit on open files is %d: at most %d connections and %d requests at once; "
        "raise ulimit -n for more.", limit, room.connections, room.requests,
    )  # fmt: skip
    return room
