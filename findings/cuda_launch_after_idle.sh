#!/usr/bin/env bash
# CUDA (driver 580, torch 2.11.0): a small graph takes several times as long after 50 ms without work, also where the host never slept. Needs a GPU.
#
# Expected: launch and synchronize of a graph of one kernel take the same at any time; if not, the host had gone to sleep, and spinning cures it.
# Behaviour: on an H100 80GB HBM3 (driver 580.159.04, CUDA 13.0) launch and synchronize took 7.2 us in a loop, 9 to 20 after an idle gap of 1 ms, 20 to 46
# after 10 ms and 57 to 61 after 50 ms, while the host spun in the gap: the device is slow to wake.
# Why it matters: a latency measured in a tight loop is not what a step sees that waits for its data, and pauses between repetitions add to what they surround.
# Seen on:
set -euo pipefail
[[ $(nvidia-smi -L 2>/dev/null || true) == GPU* ]] || { echo "skipped: needs a GPU"; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check torch==2.11.0
"$folder/python/bin/python" - <<'PYTHON'
import statistics
import sys
import time

import torch

value = torch.zeros(1, device="cuda")
value.add_(1)
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    value.add_(1)


def after(gap, count):
    times = []
    for _ in range(count):
        wake = time.perf_counter() + gap
        while time.perf_counter() < wake:
            pass
        start = time.perf_counter()
        graph.replay()
        torch.cuda.synchronize()
        times.append(1e6 * (time.perf_counter() - start))
    return statistics.median(times)


after(0, 2000)
times = {gap: after(gap, count) for gap, count in ((0, 2000), (0.001, 300), (0.01, 100), (0.05, 60))}
for gap, value in times.items():
    print(f"idle gap of {1000 * gap:g} ms, host spinning: {value:.1f} us for a graph of one kernel")
if not times[0.05] > 2 * times[0]:
    sys.exit("the behaviour has changed")
PYTHON
