"""The container file without a container engine: its steps in namespaces of this machine.

The root is an overlay of the machine's, with Python where its image has it. What the file RUNs is
run there; then the root is read-only, and its ENTRYPOINT serves as its USER, as nobody's root.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest
import torch
from test_server_deployment import ROOT, containerfile

from bootprob.persistence.save_load import save

TOKEN = "a-token-that-is-long-enough"

# Within the container, as its user: serve, ask, try to write, stop.
WITHIN = """
import json, subprocess, sys, time, urllib.request
from pathlib import Path

entrypoint, command, health = json.loads(sys.argv[1])
server = subprocess.Popen([*entrypoint, *command])
until = time.monotonic() + 120
while (unhealthy := subprocess.run(health, stderr=subprocess.DEVNULL).returncode):
    if server.poll() is not None or time.monotonic() > until:
        sys.exit("never healthy")
    time.sleep(0.5)
request = urllib.request.Request(
    "http://127.0.0.1:8000/predict",
    json.dumps({"records": [{"x0": 0.5, "x1": -1.0, "x2": 0.0}]}).encode(),
    {"Content-Type": "application/json", "Authorization": "Bearer TOKEN"},
)
said = json.load(urllib.request.urlopen(request))["predictions"][0]["probability"]
written = []
for folder in ("/", "/opt/bootprob", "/models", "/run/secrets", "/usr/local/lib"):
    try:
        Path(folder, "new").touch()
        written.append(folder)
    except OSError:
        pass
of_process = dict(
    line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines()
)
server.terminate()
print(json.dumps({
    "probability": said, "written": written, "exit": server.wait(60),
    "uid": of_process["Uid"].split()[0], "capabilities": of_process["CapBnd"].strip(),
}))
"""

STEPS = """
set -e
mount --make-rprivate /
mount -t tmpfs none "$WORK"
cd "$WORK"
mkdir upper work root
mount -t overlay none -o lowerdir=/,upperdir=upper,workdir=work root
cd root
mount --rbind /proc proc
mount --rbind /dev dev
mount --bind "$PYTHON" usr/local
mkdir -p source models run/secrets
cp -r "$GIVEN/source/." source
cp "$GIVEN/model.bootprob" models
cp "$GIVEN/token" run/secrets/bootprob-token
cp "$GIVEN/within.py" models
chroot . /bin/sh -ec "export PATH=/usr/local/bin:/usr/bin:/bin; $RUN" >&2
rm -r source
mount -o remount,ro .
mount -o remount,ro,bind usr/local
mount -t tmpfs none tmp
exec unshare --net /bin/sh -ec 'ip link set lo up; exec "$@"' - \\
    chroot . /usr/bin/setpriv --reuid "$UID_" --regid "$GID_" --clear-groups --no-new-privs \\
    --bounding-set=-all --inh-caps=-all \\
    /usr/bin/env -i -C /models LD_LIBRARY_PATH=/usr/local/lib $ENV \\
    /opt/bootprob/bin/python within.py "$WHAT"
"""


def can_rehearse() -> bool:
    programs = ("unshare", "setpriv", "chroot", "ip")
    if sys.platform != "linux" or os.getuid() != 0 or not all(map(shutil.which, programs)):
        return False
    tried = ["unshare", "--mount", "--net", "ip", "link", "set", "lo", "up"]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0


@pytest.mark.endurance
def test_its_steps_build_and_serve(array_model, tmp_path):
    if not can_rehearse():
        pytest.skip("needs root, and namespaces of Linux")
    lines = containerfile()
    run = "; ".join(rest for name, rest in lines if name in ("ARG", "RUN"))
    if torch.__version__.endswith("+cpu"):  # which pip finds here: gigabytes of CUDA are spared
        run = run.replace("TORCH=torch;", "TORCH=torch-cpu;")
        assert "TORCH=torch-cpu;" in run
    assert "--require-hashes" in run
    files = subprocess.run(
        ["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    (tmp_path / "source").mkdir()
    subprocess.run(["tar", "x", "-C", str(tmp_path / "source")], input=files, check=True)
    save(array_model, tmp_path / "model.bootprob")
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "within.py").write_text(WITHIN.replace("TOKEN", TOKEN))
    by_name = dict(lines)
    uid, gid = by_name["USER"].split(":")
    what = [json.loads(by_name[name]) for name in ("ENTRYPOINT", "CMD")]
    what.append(json.loads(by_name["HEALTHCHECK"].split("CMD ")[1]))
    work = tmp_path / "container"
    work.mkdir()
    given = {
        "WORK": work, "GIVEN": tmp_path, "PYTHON": sys.base_prefix, "RUN": run, "UID_": uid,
        "GID_": gid, "ENV": by_name["ENV"].replace("$PATH", "/usr/local/bin:/usr/bin:/bin"),
        "WHAT": json.dumps(what),
    }  # fmt: skip
    done = subprocess.run(
        ["unshare", "--mount", "/bin/sh", "-c", STEPS],
        env=os.environ | {name: str(value) for name, value in given.items()},
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    found = json.loads(done.stdout.splitlines()[-1])
    expected = array_model.predict_proba([[0.5, -1.0, 0.0]])[0, 1]
    assert found.pop("probability") == pytest.approx(expected, abs=1e-12)
    assert found == {"written": [], "exit": 0, "uid": uid, "capabilities": "0" * 16}
