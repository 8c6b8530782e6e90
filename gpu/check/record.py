"""What a part of the check is given, and where it reports."""

from __future__ import annotations

import json
import time
from typing import IO, Any

import torch

from gpu.check.result_file import finite

__all__ = ["PartIncompleteError", "PartSkippedError", "Record"]


class PartSkippedError(Exception):
    """The part cannot be done here; the message says what is missing."""


class PartIncompleteError(Exception):
    """Some of the part could not be done here; the message says what, and why."""


class Record:
    """What a part is given, and where it reports.

    Parameters
    ----------
    channel : file
        Events go there.
    device : str
        "cuda", "cuda:1", ... or "cpu" for a rehearsal.
    tiny : bool
        Whether to rehearse with tiny sizes.
    seconds : float
        Time that the part has.
    ceilings : dict
        What the part "ceilings" measured, empty if it has not run.
    shares : dict, optional
        What the part "kernel shares" measured, likewise.
    """

    def __init__(
        self,
        channel: IO[str],
        device: str,
        tiny: bool,
        seconds: float,
        ceilings: dict[str, Any],
        shares: dict[str, Any] | None = None,
    ) -> None:
        self._channel = channel
        self._deadline = time.monotonic() + seconds
        self.device = torch.device(device)
        self.tiny = tiny
        self.ceilings = ceilings
        self.shares = shares or {}
        self.kept = True

    def size(self, full: Any, tiny: Any) -> Any:
        """The first, or the second in a rehearsal."""
        return tiny if self.tiny else full

    def seconds_left(self) -> float:
        """Until the part is stopped."""
        return self._deadline - time.monotonic()

    def measured(self, name: str, value: Any) -> None:
        """Report a result; one of the same name is replaced."""
        self.send("measured", name=name, value=value)

    def promise(self, promise: str, holds: bool, **evidence: Any) -> None:
        """Report whether a promise is kept, with the numbers that say so."""
        self.kept &= bool(holds)
        self.send("promise", promise=promise, holds=bool(holds), **evidence)

    def send(self, event: str, **content: Any) -> None:
        """Send an event to the supervisor."""
        self._channel.write(json.dumps(finite({"event": event, **content})) + "\n")
        self._channel.flush()
