"""The files of examples/deployment say what the server knows."""

import json
import shlex
from configparser import ConfigParser
from pathlib import Path

import typer
import yaml
from fastapi.testclient import TestClient

from bootprob.cli.__main__ import app
from bootprob.server import create_app

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "deployment"


def known_options():
    serve = typer.main.get_command(app).commands["serve"]
    return {name for each in serve.params for name in each.opts}


def options_of(arguments):
    return {each.partition("=")[0] for each in arguments if each.startswith("--")}


def containerfile():
    text = (FOLDER / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    return [line.split(maxsplit=1) for line in text.splitlines() if line and line[0] != "#"]


def manifests():
    text = (FOLDER / "kubernetes.yaml").read_text(encoding="utf-8")
    return {each["kind"]: each for each in yaml.safe_load_all(text)}


def test_the_container_file_says_what_is_there():
    found = containerfile()
    by_name = dict(found)
    assert json.loads(by_name["ENTRYPOINT"]) == ["bootprob", "serve"]
    assert options_of(json.loads(by_name["CMD"])) <= known_options()
    assert by_name["USER"] != "root"
    assert ["ARG", "TORCH=torch"] in found
    for each in ("torch", "torch-cpu", "server"):
        assert (ROOT / "requirements" / f"{each}.txt").is_file()
    commands = " && ".join(rest for name, rest in found if name == "RUN").split(" && ")
    installs = [each.split() for each in commands if "pip install" in each]
    of_files, tree = installs[:-1], installs[-1]
    assert [each[-1] for each in of_files] == [
        "/source/requirements/${TORCH}.txt", "/source/requirements/server.txt",
    ]  # fmt: skip
    assert all({"--require-hashes", "--no-deps"} <= set(each) for each in of_files)
    assert {"--no-deps", "--no-index", "--no-build-isolation", "/source"} <= set(tree)
    check = json.loads(by_name["HEALTHCHECK"].split("CMD ")[1])
    assert check[:2] == ["python", "-c"]
    compile(check[2], "healthcheck", "exec")
    assert "/v2/health/ready" in check[2]


def test_the_manifest_says_what_is_there(array_model):
    found = manifests()
    pod = found["Deployment"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert options_of(container["args"]) <= known_options()
    given = dict(each[2:].split("=") for each in container["args"] if "=" in each)
    needed = float(given["drain-delay"]) + float(given["deadline"])
    assert pod["terminationGracePeriodSeconds"] > needed + 1
    mounted = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    assert {each["name"] for each in pod["volumes"]} == mounted.keys()
    assert given["token-file"].startswith(mounted["token"])
    with TestClient(create_app(array_model)) as client:
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert client.get(container[probe]["httpGet"]["path"]).status_code == 200
    assert found["Service"]["spec"]["selector"] == {"app": "bootprob"}


def test_the_unit_says_what_is_there():
    unit = ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str
    unit.read(FOLDER / "bootprob.service")
    command = shlex.split(unit["Service"]["ExecStart"])
    assert command[0].endswith("/bootprob")
    assert command[1] == "serve"
    assert options_of(command) <= known_options()
    assert "%d/token" in command
    assert unit["Service"]["LoadCredential"].startswith("token:")
