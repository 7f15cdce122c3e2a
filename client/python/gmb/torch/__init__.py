"""PyTorch's memory from a gmb broker.

    import gmb.torch

    gmb.torch.enable()                      # GMB_SOCKET_DIR, or /run/gmb
    with gmb.torch.weights():               # sealed afterwards: taken without a copy
        model = Model().cuda().eval()

    @gmb.torch.active()                     # where work is submitted
    @torch.inference_mode()
    def answer(x):
        return model(x).cpu()

Outside of active() and weights() torch allocates as ever, past the broker. Memory that
was allocated inside is used inside: while the process is idle the broker may lend it to
others, and it comes back at the same addresses when a scope begins. What works how, and
what does not, is in docs/python.md.

Processes that serve the same model share its weights:

    model = Model()                         # on the "meta" device, say
    gmb.torch.share_module(model, "llm-7b", "llm-7b.safetensors")
"""

from gmb.torch._active import active
from gmb.torch._graphs import graph
from gmb.torch._out_of_memory import oom_reason
from gmb.torch._pools import Pool
from gmb.torch._session import Stats, disable, enable, enabled, pool, stats, trim
from gmb.torch._shared import drop_shared, load_shared, share_module
from gmb.torch._weights import seal, weights

__all__ = [
    "Pool",
    "Stats",
    "active",
    "disable",
    "drop_shared",
    "enable",
    "enabled",
    "graph",
    "load_shared",
    "oom_reason",
    "pool",
    "seal",
    "share_module",
    "stats",
    "trim",
    "weights",
]
