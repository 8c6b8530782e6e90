"""With this folder on PYTHONPATH, Python pretends a CUDA device from when torch is loaded.

So programs that start others can be rehearsed as they are. The folder of this package must be on
PYTHONPATH too.
"""

import os
import sys
from importlib.machinery import PathFinder

os.environ["TRITON_INTERPRET"] = "1"


class _Pretending(PathFinder):
    """Finds torch, and pretends as soon as it is loaded; programs without it start at once."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname != "torch":
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        load = spec.loader.exec_module

        def pretend_when_loaded(module):
            load(module)
            from pretended_cuda import pretended_cuda

            if not module.cuda.is_available():
                cls.pretended = pretended_cuda()
                cls.pretended.__enter__()

        spec.loader.exec_module = pretend_when_loaded
        return spec


sys.meta_path.insert(0, _Pretending)
