"""Before anything imports triton: its kernels run interpreted where there is no GPU."""

import os
from importlib.util import find_spec

import torch

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

collect_ignore_glob = [] if find_spec("triton") else ["gpu/bootprob_gpu/**/triton_*.py"]
