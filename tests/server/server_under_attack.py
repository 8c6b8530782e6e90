"""What bodies made to stop a server do to it.

    python tests/server/server_under_attack.py [NAME ...]

Serves models of 300 columns in a process of its own and sends it one body after another, each as
large as a body may be. Shown for each: the reply, the longest that another client waited for a
health request meanwhile, and how far the server's memory rose above its idle. On a busy machine a
wait may be the machine's; `REPEATS` tries are made, and the best of them counts for the server.
"""

from __future__ import annotations

import http.client
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from hostile_bodies import COLUMNS, INFER, PREDICT, attacks, honest, row  # noqa: E402
from server_clients import Server, running  # noqa: E402

if TYPE_CHECKING:
    from bootprob import BootstrapSVC
    from bootprob.tables.model import TableModel

LONGEST_WAIT, MOST_MEMORY = 0.1, 200 * 2**20  # seconds, bytes
REPEATS = 3


def model(n_bootstraps: int = 15) -> BootstrapSVC:
    """A model of arrays of 300 columns."""
    import numpy as np

    from bootprob import BootstrapSVC

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, COLUMNS))
    y = X[:, 0] + rng.normal(size=200) > 0
    return BootstrapSVC(kernel="linear", n_bootstraps=n_bootstraps, random_state=0).fit(X, y)


def table_model(n_bootstraps: int = 15) -> TableModel:
    """The same columns as a table, the second half of them texts."""
    import numpy as np
    import pandas as pd

    from bootprob.tables.model import TableModel

    rng = np.random.default_rng(0)
    half = COLUMNS // 2
    table = pd.DataFrame(
        {f"x{k}": rng.normal(size=200) for k in range(half)}
        | {f"x{k}": rng.choice(["a", "b"], 200) for k in range(half, COLUMNS)}
    )
    table["y"] = np.where(table["x0"] + rng.normal(size=200) > 0, "yes", "no")
    return TableModel.fit(
        table, "y", "yes", kernel="linear", n_bootstraps=n_bootstraps, random_state=0
    )


@dataclass(frozen=True)
class Effect:
    """Of one body on the server."""

    status: int
    seconds: float
    longest_wait: float
    memory: int


def effect(server: Server, address: str, body: bytes, idle: int, at_once: int = 1) -> Effect:
    """Send a body, and ask for the server's health until it is answered.

    Parameters
    ----------
    server : Server
    address : str
    body : bytes
    idle : int
        Bytes that the server occupied before the first body.
    at_once : int, default 1
        Clients that send it. The status is the largest that they get.
    """
    Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")  # forgets the peak
    started = time.monotonic()
    longest = 0.0
    with ThreadPoolExecutor(at_once) as clients:
        sent = [clients.submit(_post, server, address, body) for _ in range(at_once)]
        while not all(each.done() for each in sent):
            asked = time.monotonic()
            _ask(server)
            longest = max(longest, time.monotonic() - asked)
            time.sleep(0.002)
    status = max(each.result() for each in sent)
    return Effect(status, time.monotonic() - started, longest, memory(server, "VmHWM") - idle)


def memory(server: Server, what: str = "VmRSS") -> int:
    """Bytes of the server's process: now, or its peak (VmHWM)."""
    text = Path(f"/proc/{server.process.pid}/status").read_text()
    [line] = [line for line in text.splitlines() if line.startswith(what)]
    return 1024 * int(line.split()[1])


def _post(server: Server, address: str, body: bytes) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    method = "POST" if address in (PREDICT, INFER) else "GET"
    connection.request(method, address, body, {"Content-Type": "application/json"})
    status = connection.getresponse().status
    connection.close()
    return status


def _ask(server: Server) -> None:
    """Ask for health, as a new client."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    connection.request("GET", "/v2/health/live")
    assert connection.getresponse().status == 200
    connection.close()


def warm(server: Server) -> int:
    """Ask for what allocates once and is kept, and return the memory that is idle then."""
    for address, body in ((PREDICT, f'{{"records":[{row("0")}]}}'), (INFER, "{}")):
        _post(server, address, body.encode())
    return memory(server)


def main() -> None:
    from bootprob.persistence.save_load import save

    wanted = sys.argv[1:]
    for kind, make in (("arrays", model), ("table", table_model)):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.bootprob"
            save(make(), path)
            with running(path) as server:
                idle = warm(server)
                print(f"{kind}: idle at {idle / 2**20:.0f} MiB", flush=True)
                for name, (address, body) in (honest() | attacks()).items():
                    if wanted and name not in wanted:
                        continue
                    tries = [effect(server, address, body, idle) for _ in range(REPEATS)]
                    wait = sorted(1e3 * each.longest_wait for each in tries)
                    print(
                        f"{name:38}{tries[0].status:5}{tries[0].seconds:8.2f} s   health "
                        f"{wait[0]:6.0f} to {wait[-1]:.0f} ms  memory "
                        f"+{max(each.memory for each in tries) / 2**20:.0f} MiB"
                        f"{'' if wait[0] <= 1e3 * LONGEST_WAIT else '  !'}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
