"""Makes an interpreter look like that of a machine lent for its GPU: few packages, no bootprob.

Python imports this at its start where this folder is on PYTHONPATH. What is not named here can be
neither imported nor found, installed or not.
"""

import sys
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder

PACKAGES = {
    "torch", "torchgen", "functorch", "triton", "numpy", "scipy", "sklearn", "pytest", "_pytest",
    "py",
    # What these need.
    "filelock", "typing_extensions", "sympy", "mpmath", "networkx", "jinja2", "markupsafe",
    "fsspec", "setuptools", "_distutils_hack", "pkg_resources",
    "joblib", "cloudpickle", "narwhals", "threadpoolctl",
    "iniconfig", "packaging", "pluggy", "pygments",
}  # fmt: skip
DISTRIBUTIONS = {"scikit-learn"} | PACKAGES - {"sklearn"}


class Bare(PathFinder):
    """Finds the packages named above, the standard library, and the files of the tree itself."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        spec = PathFinder.find_spec(fullname, path, target)
        installed = spec is not None and "site-packages" in str(spec.origin)
        return None if installed and fullname.split(".")[0] not in PACKAGES else spec

    @classmethod
    def find_distributions(cls, *args, **kwargs):
        found = PathFinder.find_distributions(*args, **kwargs)
        return (each for each in found if each.name.lower() in DISTRIBUTIONS)


sys.meta_path[:] = [BuiltinImporter, FrozenImporter, Bare]
