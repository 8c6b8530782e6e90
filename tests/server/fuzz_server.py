"""A stranger's requests, made from the OpenAPI document, by the thousand: ``make fuzz-server``.

    python tests/server/fuzz_server.py [--examples 8000] [--least 20000]

Serves a small model of a table in a process of its own and lets schemathesis ask it whatever the
document allows, and much that it does not. Fails at the first kind of reply that the document does
not foresee, every 5xx among them, and if fewer cases were made than `--least`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from server_clients import running  # noqa: E402

from mixed_tables import credit_table  # noqa: E402

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=8000, help="of each operation, at most")
    parser.add_argument("--least", type=int, default=20_000)
    given = parser.parse_args()

    from bootprob.persistence.save_load import save
    from bootprob.tables.model import TableModel

    model = TableModel.fit(
        credit_table(120), "risk", kernel="linear", n_bootstraps=20, random_state=0
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "credit.bootprob"
        save(model, path)
        with running(path, "--deadline", "120") as server:  # 503 is for overload, not for tests
            command = [
                str(Path(sys.executable).with_name("schemathesis")),
                "run", f"{server.address}/openapi.json",
                "--checks", ",".join(CHECKS), "--phases", "coverage,fuzzing",
                "--max-examples", str(given.examples), "--request-timeout", "100",
                "--suppress-health-check", "all", "--continue-on-failure", "--no-color",
            ]  # fmt: skip
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
                check=False,
                cwd=folder,
            )
            log = server.said()
            alive = server.process.poll() is None
    print(done.stdout)
    counts = re.findall(r"(\d+) generated", done.stdout)
    made = int(counts[-1]) if counts else 0
    statuses = re.findall(r" (\d{3}) [\d.]+ ms", log)
    by_status = {status: statuses.count(status) for status in sorted(set(statuses))}
    print(f"{made} cases; replies by status: {by_status}")
    if done.returncode or not alive or made < given.least or any(s >= "500" for s in by_status):
        sys.exit("The server did not stand the test.")


if __name__ == "__main__":
    main()
