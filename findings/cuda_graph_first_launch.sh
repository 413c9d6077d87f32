#!/usr/bin/env bash
# CUDA graphs (driver 580, torch 2.11.0): the first launch of an instantiated graph takes a hundred times as long as the next. Needs a GPU.
#
# Expected: cudaGraphInstantiate has done the work; a first launch costs what any launch costs.
# Behaviour: the first launch uploads the graph to the device. On an H100 80GB HBM3 (driver 580.159.04, CUDA 13.0), with 1,000 kernels, the first launch call
# took 1,223 us and later ones 5.3; after cudaGraphUpload the first took 9.6, and the upload itself as long as the launch it relieves.
# Why it matters: a warm-up that captures and instantiates is no warm-up. The first timed step pays, and every step after an update of the graph.
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

cudart = ctypes.CDLL("libcudart.so.13")
value = torch.zeros(1, device="cuda")
value.add_(1)
torch.cuda.synchronize()
captured = torch.cuda.CUDAGraph(keep_graph=True)
with torch.cuda.graph(captured):
    for _ in range(1000):
        value.add_(1)
graph = ctypes.c_void_p(captured.raw_cuda_graph())
stream = ctypes.c_void_p(torch.cuda.Stream().cuda_stream)


def microseconds(call, *arguments):
    torch.cuda.synchronize()
    start = time.perf_counter()
    if call(*arguments) != 0:
        sys.exit("a call of the CUDA runtime failed")
    return 1e6 * (time.perf_counter() - start)


first, later, upload, first_after = [], [], [], []
for uploaded in (False, True) * 5:
    executable = ctypes.c_void_p()
    if cudart.cudaGraphInstantiate(ctypes.byref(executable), graph, ctypes.c_ulonglong(0)) != 0:
        sys.exit("cudaGraphInstantiate failed")
    if uploaded:
        upload.append(microseconds(cudart.cudaGraphUpload, executable, stream))
    (first_after if uploaded else first).append(microseconds(cudart.cudaGraphLaunch, executable, stream))
    later += [microseconds(cudart.cudaGraphLaunch, executable, stream) for _ in range(20)]
    torch.cuda.synchronize()
    cudart.cudaGraphExecDestroy(executable)
for name, times in (("first launch", first), ("upload", upload), ("first launch after it", first_after), ("later launch", later)):
    print(f"{name}: {statistics.median(times):.1f} us")
if not (statistics.median(first) > 8 * statistics.median(later) and statistics.median(first_after) < 0.3 * statistics.median(first)):
    sys.exit("the behaviour has changed")
PYTHON
