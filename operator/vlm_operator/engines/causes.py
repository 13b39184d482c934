"""Ways to fail that every engine has: told by what it says, and by what the cluster or the sizing knows of it."""

from vlm_operator.engines.failures import Cause, Waiting

KV_CACHE_TOO_SMALL = Cause(
    reason="KVCacheTooSmall",
    meaning="what weights and steps leave of the GPU does not hold one request of the longest context",
    seen_in="end of the engine's log",
    advice="lower spec.model.maxModelLen, raise spec.gpu.memoryUtilization, or use more or larger GPUs",
    waiting=Waiting.IS_VAIN,
)
GPU_LOST = Cause(
    reason="GpuLost",
    meaning="a GPU of the replica is broken, gone, or not to be seen from its container",
    seen_in="end of the engine's log, the container runtime's or the device plugin's words, or the health of devices in the pod",
    advice="look for Xid in the kernel log of the node and at its driver, and cordon the node: replicas then start elsewhere",
    waiting=Waiting.MAY_HELP,
    while_serving=True,
)
HOST_OUT_OF_MEMORY = Cause(
    reason="HostOutOfMemory",
    meaning="the engine or one of its processes was killed for the memory that it used on the node",
    seen_in="container reason OOMKilled, with whatever exit code (0, too), or end of the log",
    advice="raise memory in spec.podTemplate.resources, or lower spec.multimodal.processorCache or spec.engine.maxNumSeqs",
    waiting=Waiting.HELPS_ONCE,
    while_serving=True,
)
HUNG_START = Cause(
    reason="HungStart",
    meaning="the engine did not come up in time, and did not say why",
    seen_in="container state: it ran for spec.engine.startupTimeout, was never ready and was killed; or end of the log",
    advice="raise spec.engine.startupTimeout if its log shows that it was still loading; else look for a hang between GPUs,"
    " with NCCL_DEBUG set to INFO in spec.engine.env",
    waiting=Waiting.MAY_HELP,
)
ENGINE_HUNG = Cause(
    reason="EngineHung",
    meaning="the engine has requests in flight and does not go on with them",
    seen_in="end of the engine's log",
    advice="look for Xid in the kernel log of the node; another spec.engine.version may behave better",
    waiting=Waiting.MAY_HELP,
    while_serving=True,
)
