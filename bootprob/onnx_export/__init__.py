"""Models as ONNX graphs. Needs the extra ``bootprob[onnx]``."""

from typing import TYPE_CHECKING

from bootprob.runtime.late_names import late_names

if TYPE_CHECKING:
    from bootprob.onnx_export.export import export_onnx
    from bootprob.onnx_export.skl2onnx_converter import register_skl2onnx

__all__ = ["export_onnx", "register_skl2onnx"]

__getattr__ = late_names(
    __name__,
    {
        "export_onnx": "export",
        "register_skl2onnx": "skl2onnx_converter",
    },
)
