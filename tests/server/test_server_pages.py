"""Pages for a browser: from the package alone, with and without a token."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from bootprob.server import create_app

TOKEN = "a-token-that-is-long-enough"
HERE = Path(__file__).parent


class _Page(HTMLParser):
    """Addresses, forms with their data, texts of their bodies, and script or style in the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.forms: list[dict[str, Any]] = []
        self.inline: list[str] = []
        self._at = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._at = tag
        given = dict(attrs)
        self.addresses += [value for name in ("src", "href") if (value := given.get(name))]
        self.inline += [name for name in given if name.startswith("on") or name == "style"]
        if tag == "form":
            self.forms.append(given)

    def handle_data(self, data: str) -> None:
        if self._at == "textarea":
            self.forms[-1]["body"] = self.forms[-1].get("body", "") + data
        elif self._at in ("script", "style") and data.strip():
            self.inline.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._at = ""


@pytest.mark.parametrize("mounted", ["", "/scores"])
def test_the_page_needs_nothing_from_elsewhere(array_model, mounted):
    app = create_app(array_model, token=TOKEN)
    if mounted:
        site = FastAPI()
        site.mount(mounted, app)
        app = site
    with TestClient(app) as client:
        reply = client.get(f"{mounted}/")  # follows
        assert str(reply.url).endswith(f"{mounted}/docs")
        page = _Page(reply.text)
        policy = reply.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
        assert "unsafe" not in policy
        assert not page.inline  # which the policy would stop
        assert {"docs/docs.js", "docs/docs.css"} <= set(page.addresses)
        for address in page.addresses:
            if address != "data:,":
                assert not re.match(r"\w+:|/", address)
                found = client.get(
                    f"{mounted}/{address}", headers={"Authorization": f"Bearer {TOKEN}"}
                )
                assert found.status_code == 200
        kinds = {"docs.js": "text/javascript", "docs.css": "text/css"}
        for name, kind in kinds.items():
            found = client.get(f"{mounted}/docs/{name}")
            assert found.headers["content-type"].startswith(kind)
            assert found.headers["x-content-type-options"] == "nosniff"
            assert "http" not in found.text


def test_what_is_open_says_nothing_of_the_model(array_model):
    with TestClient(create_app(array_model, name="secret-name", token=TOKEN)) as client:
        for path in ("/docs", "/docs/docs.js", "/docs/docs.css"):
            reply = client.get(path)
            assert reply.status_code == 200
            assert "secret-name" not in reply.text


@pytest.mark.parametrize("which", ["table_model", "array_model", "iris_model"])
def test_every_operation_shown_can_be_sent(request, which):
    model = request.getfixturevalue(which)
    with TestClient(create_app(model, name="näme <b>&\" ?#'", version="1 %")) as client:
        page = _Page(client.get("/docs/operations").text)
        paths = client.get("/openapi.json").json()["paths"]
        assert len(page.forms) == sum(map(len, paths.values())) == 10
        for form in page.forms:
            reply = client.request(
                form["data-method"],
                "/" + form["data-path"],
                content=form.get("body"),
                headers={"Content-Type": "application/json"},
            )
            assert reply.status_code == 200, (form, reply.text)


@pytest.mark.skipif(shutil.which("node") is None, reason="runs the page's script by node")
@pytest.mark.parametrize("token", [None, TOKEN])
def test_the_script_asks_for_the_token_and_sends_requests(array_model, token):
    """In a page of a few lines, with a browser's fetch replaced by this test's client."""
    with TestClient(create_app(array_model, token=token)) as client:
        process = subprocess.Popen(
            ["node", str(HERE / "docs_page.js"), client.get("/docs/docs.js").text, token or ""],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        asked, said = [], {}
        with process:
            assert process.stdin
            assert process.stdout
            for line in process.stdout:
                message = json.loads(line)
                if "path" not in message:
                    said = message
                    continue
                options = message["options"]
                asked.append((message["path"], options["headers"].get("Authorization")))
                reply = client.request(
                    options.get("method", "GET"),
                    "/" + message["path"],
                    content=options.get("body"),
                    headers=options["headers"],
                )
                answer = {"status": reply.status_code, "text": reply.text}
                process.stdin.write(json.dumps(answer) + "\n")
                process.stdin.flush()
        assert process.returncode == 0
    bearer = token and f"Bearer {token}"
    expected = [("docs/operations", bearer), ("predict", bearer)]
    assert asked == ([("docs/operations", None), *expected] if token else expected)
    assert said["asked_for_token"] is (token is not None)
    assert said["is_hidden_at_the_end"] is True
    assert 'data-path="predict"' in said["operations"]
    status, _, shown = said["shown"].partition("\n")
    assert status == "200"
    assert json.loads(shown)["predictions"][0]["label"] in (2, 7)
