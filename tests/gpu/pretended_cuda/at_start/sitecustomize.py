"""With this folder on PYTHONPATH, Python pretends a CUDA device from its start to its end.

So programs that start others can be rehearsed as they are. The folder of this package must be on
PYTHONPATH too.
"""

import os

os.environ["TRITON_INTERPRET"] = "1"

import torch
from pretended_cuda import pretended_cuda

if not torch.cuda.is_available():
    _pretended = pretended_cuda()
    _pretended.__enter__()
