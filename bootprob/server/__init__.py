"""A fitted model over HTTP: the Open Inference Protocol for tensors, JSON records by name.

`create_app` makes an ASGI application; ``bootprob serve`` runs one. docs/server.md has every limit.
Needs the extra ``bootprob[server]``.
"""

from importlib.util import find_spec

_NEEDED = ("fastapi", "uvicorn", "pydantic", "prometheus_client")

if _missing := [name for name in _NEEDED if find_spec(name) is None]:
    raise ImportError(
        f'The server needs {", ".join(_missing)}, not installed: pip install "bootprob[server]".'
    )

from bootprob.server.app import create_app  # noqa: E402
from bootprob.server.limits import Limits  # noqa: E402

__all__ = ["Limits", "create_app"]
