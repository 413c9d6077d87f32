#!/usr/bin/env bash
# CUDA graphs (driver 580, torch 2.11.0): memory of a graph's allocation nodes stays taken after the graph is destroyed, until it is trimmed. Needs a GPU.
#
# Expected: a graph that allocates and frees holds memory while it runs, at most until the graph is destroyed.
# Behaviour: the first launch takes the memory, and the driver keeps it for later graphs: after the captured free, after cudaGraphExecDestroy and
# cudaGraphDestroy and after torch.cuda.empty_cache(). Only cudaDeviceGraphMemTrim gives it back. Instantiating takes none.
# Why it matters: free memory between two cases depends on graphs of an earlier one, and a graph that could be instantiated can still lack memory at its launch.
# A measurement in one process sees its own past; a process for each case does not.
# Seen on: NVIDIA H200, driver 580.159.04, 256 MiB: instantiated 0 MiB missing, launched 256, destroyed 256, trimmed 0.
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

torch.zeros(1, device="cuda")
cudart = ctypes.CDLL("libcudart.so.13")
stream = ctypes.c_void_p(torch.cuda.Stream().cuda_stream)
size = ctypes.c_size_t(256 << 20)
graph, executable, block = (ctypes.c_void_p() for _ in range(3))
missing = {}


def check(status):
    if status != 0:
        sys.exit(f"a call of the CUDA runtime failed with {status}")


def look(moment):
    torch.cuda.synchronize()
    reserved = ctypes.c_uint64()
    check(cudart.cudaDeviceGetGraphMemAttribute(0, 2, ctypes.byref(reserved)))  # cudaGraphMemAttrReservedMemCurrent
    missing[moment] = (start - torch.cuda.mem_get_info()[0]) >> 20
    print(f"{moment}: {missing[moment]} MiB missing, {reserved.value >> 20} MiB reserved for graphs")


start = torch.cuda.mem_get_info()[0]
check(cudart.cudaStreamBeginCapture(stream, 2))  # cudaStreamCaptureModeRelaxed
check(cudart.cudaMallocAsync(ctypes.byref(block), size, stream))
check(cudart.cudaMemsetAsync(block, 0, size, stream) or cudart.cudaFreeAsync(block, stream))
check(cudart.cudaStreamEndCapture(stream, ctypes.byref(graph)))
check(cudart.cudaGraphInstantiate(ctypes.byref(executable), graph, ctypes.c_ulonglong(0)))
look("instantiated")
check(cudart.cudaGraphLaunch(executable, stream))
look("launched")
check(cudart.cudaGraphExecDestroy(executable) or cudart.cudaGraphDestroy(graph))
torch.cuda.empty_cache()
look("destroyed")
check(cudart.cudaDeviceGraphMemTrim(0))
look("trimmed")
if not (missing["destroyed"] > 200 and missing["trimmed"] < 50):
    sys.exit("the behaviour has changed")
PYTHON
