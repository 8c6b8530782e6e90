"""Pages for a browser: / and /docs, from files of this package and nowhere else.

/docs itself tells nothing of the model and is open. Its script asks for a token if there is one,
and with it for ``/docs/operations``, which is made here from the OpenAPI document.
"""

from __future__ import annotations

import json
from functools import partial
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter
from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

__all__ = ["PAGE_HEADERS", "operations_page", "pages"]

PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_ASSETS = files("bootprob.server") / "assets"
_FILES = {
    "/docs": ("docs.html", "text/html"),
    "/docs/docs.js": ("docs.js", "text/javascript"),
    "/docs/docs.css": ("docs.css", "text/css"),
}


def pages() -> APIRouter:
    """What needs no token."""
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    async def root(request: Request) -> Response:
        return RedirectResponse(f"{request.scope.get('root_path', '').rstrip('/')}/docs")

    async def page(content: bytes, kind: str) -> Response:
        return Response(content, media_type=kind, headers=PAGE_HEADERS)

    for path, (name, kind) in _FILES.items():
        content = (_ASSETS / name).read_bytes()
        router.get(path)(partial(page, content, kind))
    return router


def operations_page(document: dict[str, Any]) -> str:
    """Every operation of an OpenAPI document, with an example to send."""
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(
        (_ASSETS / "operations.html.jinja").read_text(encoding="utf-8")
    )
    found = [
        _operation(document, path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    info = document["info"]
    return template.render(title=info["title"], version=info["version"], operations=found)


def _operation(
    document: dict[str, Any], path: str, method: str, operation: dict[str, Any]
) -> dict[str, Any]:
    address = path.removeprefix("/")  # relative to the page: it may be mounted anywhere
    for parameter in operation.get("parameters", ()):
        value = quote(parameter["schema"]["const"], safe="")
        address = address.replace(f"{{{parameter['name']}}}", value)
    example = form = None
    if "requestBody" in operation:
        content = operation["requestBody"]["content"]["application/json"]
        example = json.dumps(content["example"], indent=1, ensure_ascii=False)
        name = content["schema"]["$ref"].rpartition("/")[2]
        form = json.dumps(document["components"]["schemas"][name], indent=1, ensure_ascii=False)
    return {
        "method": method.upper(),
        "path": path,
        "address": address,
        "description": operation["description"],
        "example": example,
        "form": form,
        "replies": [
            (status, reply["description"]) for status, reply in operation["responses"].items()
        ],
    }
