"""How the log is written: a line of text each, or a JSON object."""

from __future__ import annotations

from typing import Any, Literal

from bootprob.exceptions import DataError

__all__ = ["LogFormat", "log_config"]

LogFormat = Literal["text", "json"]
_OF_JSON = "pythonjsonlogger.json.JsonFormatter"
_FORMATTERS: dict[str, dict[str, Any]] = {
    "text": {"format": "%(asctime)s %(process)d %(levelname)s %(message)s"},
    "json": {
        "()": _OF_JSON,
        "format": "%(asctime)s %(process)d %(levelname)s %(message)s",
        "rename_fields": {"asctime": "time", "levelname": "level"},
        "rename_fields_keep_missing": False,
    },
}


def log_config(form: LogFormat) -> dict[str, Any]:
    """What `logging.config.dictConfig` and uvicorn take.

    Of a request the JSON object has "request_id", "method", "route", "status" and "milliseconds"
    beside time, process, level and message.

    Raises
    ------
    DataError
        For another format, or "json" without the package python-json-logger.
    """
    if form not in _FORMATTERS:
        raise DataError(f"The log is {form!r}; give 'text' or 'json'.")
    if form == "json":
        try:
            import pythonjsonlogger  # noqa: F401
        except ImportError:
            raise DataError(
                'A log of JSON needs python-json-logger: pip install "bootprob[server]".'
            ) from None
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": _FORMATTERS[form]},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "loggers": {
            name: {"handlers": ["stderr"], "level": "INFO", "propagate": False}
            for name in ("uvicorn", "bootprob.server")
        },
    }
