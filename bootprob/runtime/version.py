"""The version of this package, also where it is not installed."""

__all__ = ["__version__"]

__version__ = "0.3.0.dev0"
