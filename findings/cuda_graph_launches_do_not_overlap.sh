#!/usr/bin/env bash
# CUDA graphs (driver 580, torch 2.11.0): launches of one executable graph never overlap, whatever streams they are in. Needs a GPU.
#
# Expected: what two streams hold overlaps where the device has room, as kernels do.
# Behaviour: a launch waits for the end of the launch before it of the same executable graph, in any stream. Two executable graphs of one content overlap.
# Why it matters: micro-batches or two steps in flight by one captured graph run one after the other without an error or a wait of the host; only the
# time shows it. A second instantiation is what it takes.
# Seen on: NVIDIA H200, driver 580.159.04: one launch 3.04 to 3.09 ms, in two streams 6.07 to 6.13; two executable graphs in two streams 3.04 to 3.08,
# in one stream 6.07 to 6.10; three runs.
set -euo pipefail
[[ $(nvidia-smi -L 2>/dev/null || true) == GPU* ]] || { echo "skipped: needs a GPU"; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check torch==2.11.0
"$folder/python/bin/python" - <<'PYTHON'
import ctypes
import sys
import time

import torch

torch.cuda._sleep(1)  # loads the kernel
cudart = ctypes.CDLL("libcudart.so.13")
streams = [torch.cuda.Stream(), torch.cuda.Stream()]
torch.cuda.synchronize()
captured = torch.cuda.CUDAGraph(keep_graph=True)
with torch.cuda.graph(captured):
    for _ in range(3):
        torch.cuda._sleep(2_000_000)  # one thread that spins for a millisecond
executables = [ctypes.c_void_p(), ctypes.c_void_p()]
for executable in executables:
    if cudart.cudaGraphInstantiate(ctypes.byref(executable), ctypes.c_void_p(captured.raw_cuda_graph()), ctypes.c_ulonglong(0)) != 0:
        sys.exit("cudaGraphInstantiate failed")


def milliseconds(launches):
    times = []
    for _ in range(8):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for executable, stream in launches:
            if cudart.cudaGraphLaunch(executables[executable], ctypes.c_void_p(streams[stream].cuda_stream)) != 0:
                sys.exit("cudaGraphLaunch failed")
        torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - start))
    return min(times)


one = milliseconds([(0, 0)])
same = milliseconds([(0, 0), (0, 1)])
two = milliseconds([(0, 0), (1, 1)])
print(f"one launch {one:.2f} ms")
print(f"one executable graph in two streams {same:.2f} ms, two executable graphs in two streams {two:.2f} ms")
print(f"two executable graphs in one stream {milliseconds([(0, 0), (1, 0)]):.2f} ms")
if not (same > 1.6 * one and two < 1.4 * one):
    sys.exit("the behaviour has changed")
PYTHON
