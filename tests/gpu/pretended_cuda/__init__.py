"""A pretended CUDA device: its tensors say cuda:0, lie in the host's memory, obey CUDA's rules.

So code takes the branches that it takes on a GPU, on any machine. Errors as on a GPU: operands on
two devices, a tensor of the host given to a Triton kernel, `numpy()` of a tensor of the device, a
wait for the device while a graph is captured, more memory than there is. Made visible, where a GPU
would give wrong numbers now and then: results read before they have arrived (poison), pinned memory
changed under a copy, a replayed graph whose operands are gone, memory read before it is written.

It has one stream of time: work is done at once, whatever its stream. So races between streams are
not seen, nor time, nor what the memory of a real device would hold.
"""

from pretended_cuda.driver import Driver
from pretended_cuda.installation import pretended_cuda
from pretended_cuda.tensor import CudaTensor

__all__ = ["CudaTensor", "Driver", "pretended_cuda"]
