"""Candidates of one finding after another: right as the twin is, and then the fastest."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from bootprob.runtime.files import replace_when_complete
from bootprob_gpu.hardware.launch_shapes import FORMAT, parsed, trial
from gpu.check.timing import timed
from gpu.tuning.findings import Candidate, Finding
from gpu.tuning.jobs_to_tune import Job

__all__ = ["Tuner"]

_WORTH_IT = 0.97  # of the time that holds so far: more is noise
_RUNS = 7
_MESSAGE = 300  # characters of an error that are kept


class Tuner:
    """Tunes a device, and writes its entry of the table whenever one is found.

    Parameters
    ----------
    device : torch.device
    name : str
        Of the card, as the table has it.
    table : Path
        Entries of other devices in it are kept; what it says of this one is where tuning begins.
    seconds : float
        Of timing each candidate.
    say : callable
        Takes a line for who waits.
    """

    def __init__(
        self,
        device: torch.device,
        name: str,
        table: Path,
        *,
        seconds: float,
        say: Callable[[str], None],
    ) -> None:
        self._device, self._name, self._table, self._say = device, name, table, say
        self._seconds = seconds
        self._content: dict[str, Any] = {"format": FORMAT, "devices": {}}
        if table.exists():
            text = table.read_text(encoding="utf-8")
            parsed(text)  # or an error: what is not understood is not written over
            self._content = json.loads(text)
        self._entry: dict[str, Any] = self._content["devices"].get(name, {})

    def tune(self, finding: Finding) -> dict[str, Any]:
        """Measure what holds so far and all candidates, and take the fastest that is right.

        Returns
        -------
        dict
            "status": "measured", or "failed" if what holds so far is wrong or does not run;
            "tried", a list; "taken", a candidate, or None where nothing is faster; "seconds".
        """
        began = time.monotonic()
        job = finding.make_job(self._device)
        tried = [self._tried(finding, candidate, job) for candidate in (None, *finding.candidates)]
        now, *others = tried
        result = {"status": "failed", "tried": tried, "taken": None}
        if "median, ms" in now:
            right = [each for each in others if "median, ms" in each]
            fastest = min(right, key=lambda each: each["median, ms"], default=now)
            if fastest["median, ms"] < _WORTH_IT * now["median, ms"]:
                result["taken"] = fastest["candidate"]
                self._take(finding, fastest["candidate"])
            result["status"] = "measured"
        return {**result, "seconds": round(time.monotonic() - began, 1)}

    def _tried(self, finding: Finding, candidate: Candidate | None, job: Job) -> dict[str, Any]:
        entry = self._changed(finding, candidate)
        parsed(self._text(entry))  # a candidate that the engine would refuse is a fault of ours
        found: dict[str, Any] = {"candidate": candidate}
        try:
            with trial(entry):
                if job.is_right(job()):
                    found |= timed(self._device, job, seconds=self._seconds, most=_RUNS)
                else:
                    found["wrong"] = True
        except Exception as error:  # such as too much shared memory: this one does not count
            found["why"] = f"{type(error).__name__}: {str(error)[:_MESSAGE]}"
        shown = (
            f"{found['median, ms']:.3f} ms" if "median, ms" in found else found.get("why", "WRONG")
        )
        self._say(f"{finding.name}, {'as it is' if candidate is None else candidate}: {shown}")
        return found

    def _changed(self, finding: Finding, candidate: Candidate | None) -> dict[str, Any]:
        """The entry with a candidate in its place."""
        entry = copy.deepcopy(self._entry)
        if candidate is None:
            return entry
        inside = entry
        for name in finding.place[:-1]:
            inside = inside.setdefault(name, {})
        last = finding.place[-1]
        if isinstance(candidate, dict):
            inside[last] = {**inside.get(last, {}), **candidate}
        else:
            inside[last] = candidate
        return entry

    def _text(self, entry: dict[str, Any]) -> str:
        """The table with an entry for this device."""
        devices = {**self._content["devices"], self._name: entry}
        return json.dumps({"format": FORMAT, "devices": devices}, indent=1, sort_keys=True) + "\n"

    def _take(self, finding: Finding, candidate: Candidate) -> None:
        self._entry = self._changed(finding, candidate)
        self._table.parent.mkdir(parents=True, exist_ok=True)
        with replace_when_complete(self._table) as file:
            file.write(self._text(self._entry).encode())
