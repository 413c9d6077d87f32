#!/usr/bin/env bash
# NCCL 2.28.9 (torch 2.11.0): an all-reduce of one rank is no node of a captured graph in place, and one copy out of place. Needs a GPU.
#
# Expected: the same kernel as with more ranks, with nobody to talk to; so one GPU shows at least what the launch and the kernel cost.
# Behaviour: a sum in place captures as nothing, out of place as a copy node; an average is one kernel. An H100 80GB HBM3 (driver 580.159.04) did the same.
# Why it matters: overlap, launch cost and determinism of collectives that are "measured" on one GPU are those of nothing or of a copy; a check of a captured
# step that looks for its collective nodes finds none.
# Seen on:
set -euo pipefail
[[ $(nvidia-smi -L 2>/dev/null || true) == GPU* ]] || { echo "skipped: needs a GPU"; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check torch==2.11.0
"$folder/python/bin/python" - <<'PYTHON'
import ctypes
import sys

import torch

torch.cuda.init()
nccl, cudart = ctypes.CDLL("libnccl.so.2"), ctypes.CDLL("libcudart.so.13")
communicator, own_device = ctypes.c_void_p(), (ctypes.c_int * 1)(0)
send, receive = (torch.ones(1 << 20, device="cuda") for _ in range(2))
free = torch.cuda.mem_get_info()[0]
if nccl.ncclCommInitAll(ctypes.byref(communicator), 1, own_device) != 0:
    sys.exit("no communicator")
print(f"a communicator of one rank takes {(free - torch.cuda.mem_get_info()[0]) / 2**20:g} MiB")
stream = ctypes.c_void_p(torch.cuda.Stream().cuda_stream)
kinds = {0: "kernel", 1: "copy", 2: "memset"}


def nodes(target, operation):
    graph, count = ctypes.c_void_p(), ctypes.c_size_t()
    torch.cuda.synchronize()
    cudart.cudaStreamBeginCapture(stream, 2)  # cudaStreamCaptureModeRelaxed
    status = nccl.ncclAllReduce(ctypes.c_void_p(send.data_ptr()), ctypes.c_void_p(target.data_ptr()), ctypes.c_size_t(1 << 20), 7, operation,
                                communicator, stream)  # 7: ncclFloat32
    if cudart.cudaStreamEndCapture(stream, ctypes.byref(graph)) != 0 or status != 0:
        sys.exit("the capture failed")
    cudart.cudaGraphGetNodes(graph, None, ctypes.byref(count))
    found, kind = (ctypes.c_void_p * max(count.value, 1))(), ctypes.c_int()
    cudart.cudaGraphGetNodes(graph, found, ctypes.byref(count))
    names = []
    for node in found[: count.value]:
        cudart.cudaGraphNodeGetType(ctypes.c_void_p(node), ctypes.byref(kind))
        names.append(kinds.get(kind.value, f"type {kind.value}"))
    return names


seen = {}
for name, operation in (("sum", 0), ("average", 4)):
    for place, target in (("in place", send), ("out of place", receive)):
        seen[name, place] = nodes(target, operation)
        print(f"{name}, {place}: {', '.join(seen[name, place]) or 'no node'}")
if not (seen["sum", "in place"] == [] and seen["sum", "out of place"] == ["copy"]):
    sys.exit("the behaviour has changed")
PYTHON
