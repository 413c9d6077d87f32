#!/usr/bin/env bash
# CUDA 13.0 runtime (driver 580): cudaMallocAsync from the default pool hands its memory back to the system at each synchronization. Needs a GPU.
#
# Expected: the stream-ordered allocator caches: a block that was freed is taken again at the price of a list operation.
# Behaviour: the release threshold of the default pool is 0, so each synchronization unmaps what is free, and the next allocation maps it anew. On an
# H100 80GB HBM3 (driver 580.159.04) allocating, freeing and synchronizing took 274 us with 64 MiB, and 9.4 us with the threshold raised.
# Why it matters: a plugin that allocates inside of its step is slow for each step that synchronizes, by an amount that depends on the size and on the host's
# way of timing, not on the plugin; and a free-memory figure read between steps does not show what the step needs.
# Seen on:
set -euo pipefail
[[ $(nvidia-smi -L 2>/dev/null || true) == GPU* ]] || { echo "skipped: needs a GPU"; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check torch==2.11.0
"$folder/python/bin/python" - <<'PYTHON'
import ctypes
import statistics
import sys
import time

import torch

torch.cuda.init()
torch.zeros(1, device="cuda")
cudart = ctypes.CDLL("libcudart.so.13")
pool, threshold = ctypes.c_void_p(), ctypes.c_uint64()
release_threshold = 4  # cudaMemPoolAttrReleaseThreshold
if cudart.cudaDeviceGetDefaultMemPool(ctypes.byref(pool), 0) != 0:
    sys.exit("there is no default pool")


def cycle(size, count=200):
    times = []
    for _ in range(count):
        block = ctypes.c_void_p()
        start = time.perf_counter()
        failed = cudart.cudaMallocAsync(ctypes.byref(block), ctypes.c_size_t(size), None) or cudart.cudaFreeAsync(block, None)
        if failed or cudart.cudaStreamSynchronize(None):
            sys.exit("a call of the CUDA runtime failed")
        times.append(1e6 * (time.perf_counter() - start))
    return statistics.median(times)


cudart.cudaMemPoolGetAttribute(pool, release_threshold, ctypes.byref(threshold))
print(f"release threshold of the default pool: {threshold.value} bytes")
default = threshold.value
sizes = (1 << 20, 64 << 20, 1 << 30)
before = {size: cycle(size) for size in sizes}
threshold.value = 2**64 - 1  # of this process alone
cudart.cudaMemPoolSetAttribute(pool, release_threshold, ctypes.byref(threshold))
after = {size: cycle(size) for size in sizes}
for size in sizes:
    print(f"{size >> 20} MiB: allocate, free, synchronize {before[size]:.1f} us; with the threshold raised {after[size]:.1f} us")
if not (default == 0 and before[64 << 20] > 4 * after[64 << 20]):
    sys.exit("the behaviour has changed")
PYTHON
