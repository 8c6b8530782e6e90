"""Has the parts done one after another by a worker process, and writes down what comes of them.

The worker is another process so that nothing it does can lose what was found: a part that
hangs is killed at its limit, one that crashes or leaves the device in an unusable state is followed
by a fresh worker. This side needs no package but the standard library.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from gpu.check.plan import Part
from gpu.check.result_file import ResultFile, now
from gpu.check.verdict import is_complete, verdict

__all__ = ["Interrupted", "Worker", "WorkerLostError", "supervise"]

_START = 120.0  # seconds that a worker may take to load its packages


class Interrupted(BaseException):
    """A signal asked for the end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class WorkerLostError(Exception):
    """The worker ended, or did not answer in time, in the midst of its work."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Worker:
    """The process that does the work; commands go in and events come out, a line of JSON each."""

    def __init__(self, arguments: Sequence[str], variables: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gpu.check.worker", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=variables,
            process_group=0,  # with whatever it starts it can be ended as one
        )
        self._killed = False
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def ready(self) -> dict[str, Any]:
        """Wait until it has started; the facts that it found about the machine.

        Raises
        ------
        WorkerLostError
            If it does not start.
        """
        *_, last = self._events(_START, "the worker did not start within {:.0f} s")
        return last["facts"]

    def work(self, command: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Have a part done; its events, the last of which is its "end".

        Raises
        ------
        WorkerLostError
            If it crashes, or takes longer than the command allows.
        """
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # that it died is noticed when it is listened to
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
        # The part is told the same limit: a second more, so that it can keep to it by itself.
        yield from self._events(command["seconds"] + 1, "stopped after {:.0f} s")

    def _events(self, seconds: float, too_late: str) -> Iterator[dict[str, Any]]:
        deadline = time.monotonic() + seconds
        while True:
            try:
                line = self._lines.get(timeout=max(0.01, deadline - time.monotonic()))
            except Empty:
                raise WorkerLostError("stopped", too_late.format(seconds)) from None
            if line is None:
                code = self._process.wait()
                end = f"by signal {-code}" if code < 0 else f"with exit status {code}"
                raise WorkerLostError("crashed", f"the worker ended {end}")
            event = json.loads(line)
            last = event["event"] in ("ready", "end")
            yield event
            if last:
                return

    def kill(self) -> None:
        """End it and all that it started."""
        if self._killed:  # its number may be somebody else's by now
            return
        self._killed = True
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def supervise(
    parts: Sequence[Part],
    *,
    start: Callable[[], Worker],
    worker: Worker,
    result: ResultFile,
    budget: float,
    began: float,
    say: Callable[[str], None],
) -> None:
    """Do the parts in turn as far as the time goes.

    Parameters
    ----------
    parts : sequence of Part
    start : callable
        Starts a fresh worker.
    worker : Worker
        The one to begin with.
    result : ResultFile
        Written at every change.
    budget : float
        Seconds in all.
    began : float
        When they began to count, by `time.monotonic`.
    say : callable
        Takes a line for the user.
    """
    content, current = result.content, None
    done = content["parts"]
    for part in parts:
        done[part.name] = {"status": "not run", "why": "not its turn yet"}
    fresh: Worker | None = worker
    try:
        for part in parts:
            if budget - (time.monotonic() - began) < part.least:
                done[part.name] = {"status": "not run", "why": "no time left"}
                say(f"{part.name}: not run, no time left")
                continue
            current = done[part.name] = {"status": "running", "started": now()}
            result.write()
            started = time.monotonic()
            try:
                if fresh is None:
                    fresh = start()
                    fresh.ready()
                command = {
                    "part": part.name,
                    "code": part.code,
                    "seconds": min(part.seconds, budget - (time.monotonic() - began)),
                    "ceilings": done.get("ceilings", {}).get("measured", {}),
                    "shares": done.get("kernel shares", {}).get("measured", {}),
                }
                for event in fresh.work(command):
                    _note(current, event)
                    result.write()
            except WorkerLostError as lost:
                current.update(status=lost.status, why=str(lost))
            current["seconds"] = round(time.monotonic() - started, 2)
            say(_line(part.name, current))
            if current["status"] in ("error", "stopped", "crashed") and fresh is not None:
                fresh.kill()  # an error of the device can outlive the part
                fresh = None
            current = None
            result.write()
    except Interrupted as interruption:
        if current is not None:
            current.update(status="interrupted", why=str(interruption))
        for each in done.values():
            if each.get("why") == "not its turn yet":
                each["why"] = "interrupted"
        raise
    finally:
        content["finished"] = now()
        content["complete"] = is_complete(done)
        content["verdict"], _ = verdict(done)
        result.write()
        if fresh is not None:
            fresh.kill()


def _note(part: dict[str, Any], event: dict[str, Any]) -> None:
    kind = event.pop("event")
    if kind == "measured":
        part.setdefault("measured", {})[event["name"]] = event["value"]
    elif kind == "promise":
        part.setdefault("promises", []).append(event)
    elif kind == "end":
        part.update(event)


def _line(name: str, part: dict[str, Any]) -> str:
    lines = [f"{name}: {part['status']} ({part['seconds']:.1f} s)"]
    lines += [f"    {part['why']}"] if "why" in part else []
    for promise in part.get("promises", ()):
        lines.append(f"    {'holds' if promise['holds'] else 'BROKEN'}: {promise['promise']}")
    return "\n".join(lines)
