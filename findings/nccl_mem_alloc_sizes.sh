#!/usr/bin/env bash
# NCCL 2.28.9 (torch 2.11.0): ncclMemAlloc takes 2 MiB or more for one byte, each time, and gives success and no pointer for none. Needs a GPU.
#
# Expected: what cudaMalloc does: blocks of 512 bytes, many small ones within one 2 MiB page.
# Behaviour: each allocation has a physical handle of its own, rounded up to the granularity; an H100 80GB HBM3 (driver 580.159.04) took 2 MiB for 1 byte.
# Why it matters: a communication plugin that allocates each small buffer (a loss, a norm, a flag) with ncclMemAlloc for the sake of registered memory takes
# megabytes each; a size of 0, as of the last shard, must not be registered, as it has no address.
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

torch.zeros(1, device="cuda")
nccl, cudart = ctypes.CDLL("libnccl.so.2"), ctypes.CDLL("libcudart.so.13")
version = ctypes.c_int()
nccl.ncclGetVersion(ctypes.byref(version))
print(f"NCCL {version.value}")


def taken(allocate, size, count):
    free, pointers = torch.cuda.mem_get_info()[0], []
    for _ in range(count):
        pointers.append(ctypes.c_void_p(0))
        if allocate(ctypes.byref(pointers[-1]), ctypes.c_size_t(size)) != 0:
            sys.exit("an allocation failed")
    return (free - torch.cuda.mem_get_info()[0]) / 2**20, pointers


taken(nccl.ncclMemAlloc, 1, 1)  # what the first call sets up is not counted
nothing, pointers = taken(nccl.ncclMemAlloc, 0, 1)
print(f"ncclMemAlloc of 0 bytes: success, pointer {pointers[0].value}, {nothing:g} MiB")
ours, pointers_of_nccl = taken(nccl.ncclMemAlloc, 1, 16)
plain, pointers_of_cuda = taken(cudart.cudaMalloc, 1, 16)
print(f"16 times 1 byte: ncclMemAlloc takes {ours:g} MiB, cudaMalloc {plain:g} MiB")
for pointer in pointers_of_nccl:
    nccl.ncclMemFree(pointer)
for pointer in pointers_of_cuda:
    cudart.cudaFree(pointer)
if not (pointers[0].value is None and ours >= 32 and plain <= 4):
    sys.exit("the behaviour has changed")
PYTHON
