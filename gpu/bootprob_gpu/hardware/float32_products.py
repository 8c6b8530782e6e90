"""Matrix products of float32 numbers in float32, whatever less the process allows for them.

A program may let torch round the factors of such products to TF32 or bfloat16
(``torch.set_float32_matmul_precision``). Scores that are rounded like that flip votes, and
distances, which are differences of products, lose their digits.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch

from bootprob_gpu.hardware.process_setting import ProcessSetting

__all__ = ["ieee_products"]

# Since torch 2.9 each kind of device has a setting of its own; the one for all cannot even be read
# where a program uses those.
_SETTINGS: tuple[Any, ...] = ()
if hasattr(torch.backends.cuda.matmul, "fp32_precision"):
    _SETTINGS = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul  # type: ignore[attr-defined]


def _hold() -> Callable[[], None]:
    """Hold products to float32; what is returned restores the settings."""
    before = ExitStack()
    if not _SETTINGS:
        before.callback(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision())
        torch.set_float32_matmul_precision("highest")
    for setting in _SETTINGS:
        precision = setting.fp32_precision
        if precision not in ("none", "ieee"):
            before.callback(_restore, setting, precision)
            setting.fp32_precision = "ieee"
    return before.close


def _restore(setting: Any, precision: str) -> None:
    setting.fp32_precision = "none"
    # What was not said for all kinds of devices at once was said for this one.
    if setting.fp32_precision != precision:
        setting.fp32_precision = precision


ieee_products = ProcessSetting(_hold)
