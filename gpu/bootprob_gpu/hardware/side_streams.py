"""CUDA streams beside the one that computes, one of each use for a thread and a device.

One and the same each time, because torch caches memory, and libraries keep a workspace, for every
stream that they have seen.
"""

from __future__ import annotations

import threading

import torch

__all__ = ["side_stream"]

_of_thread = threading.local()


def side_stream(device: torch.device, use: str) -> torch.cuda.Stream:
    """The stream of this thread for a use, such as "upload".

    Parameters
    ----------
    device : torch.device
        A CUDA device; without a number, the current one.
    use : str
        Work of different uses may run at the same time.
    """
    number = torch.cuda.current_device() if device.index is None else device.index
    streams: dict[tuple[int, str], torch.cuda.Stream]
    streams = _of_thread.__dict__.setdefault("streams", {})
    if (number, use) not in streams:
        streams[number, use] = torch.cuda.Stream(number)
    return streams[number, use]
