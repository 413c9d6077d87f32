#!/usr/bin/env bash
# CUDA graphs (driver 580, torch 2.11.0): each event record node between the kernels of a graph costs microseconds. Needs a GPU.
#
# Expected: an event is a timestamp that the device writes on its way, as in a stream; to time each part of a captured step costs next to nothing.
# Behaviour: a plain event record in a capture is no node at all. One made with external=True (cudaEventRecordExternal) is a node, and the device works each
# such node off by itself: an H100 80GB HBM3 (driver 580.159.04, CUDA 13.0) took 0.79 us for each of 1,000 empty kernels and 4.3 us with a node before each.
# Why it matters: a benchmark host that times the operations inside of its captured step measures its own event nodes.
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

import torch

cudart = ctypes.CDLL("libcudart.so.13")
kernels = 500
value = torch.zeros(1, device="cuda")
events = {
    "no events": None,
    "plain events": [torch.cuda.Event(enable_timing=True) for _ in range(kernels)],
    "external events": [torch.cuda.Event(enable_timing=True, external=True) for _ in range(kernels)],
}
nodes, times = {}, {}
for name, own in events.items():
    for event in own or []:
        event.record()  # an event is created when it is first recorded
    value.add_(1)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        for kernel in range(kernels):
            if own:
                own[kernel].record()
            value.add_(1)
    count = ctypes.c_size_t()
    cudart.cudaGraphGetNodes(ctypes.c_void_p(graph.raw_cuda_graph()), None, ctypes.byref(count))
    nodes[name] = count.value
    graph.instantiate()
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    samples = []
    for _ in range(30):
        start.record()
        graph.replay()
        stop.record()
        torch.cuda.synchronize()
        samples.append(start.elapsed_time(stop) * 1000 / kernels)
    times[name] = statistics.median(samples)
    print(f"{name}: {nodes[name]} nodes, {times[name]:.2f} us for each of {kernels} kernels")
if not (nodes["plain events"] == kernels and nodes["external events"] == 2 * kernels
        and times["external events"] > 1.6 * times["no events"] and times["plain events"] < 1.3 * times["no events"]):
    sys.exit("the behaviour has changed")
PYTHON
