#!/usr/bin/env bash
# cuBLAS 13.1.0 (torch 2.11.0): the rate of a bf16 matrix product depends on the values in it, and weights of training are the slow case. Needs a GPU.
#
# Expected: a dense product does the same work on any data, so a peak that was measured with any fill is the peak.
# Behaviour: the data sets how many bits toggle, that the power, and that, under the power cap, the clock. An H100 80GB HBM3 (driver 580.159.04) ran the
# 8192 cube at 820 TFLOP/s on zeros, 715 on N(0, 1) and 598 on N(0, 0.02).
# Why it matters: a measured peak depends on its fill, and so does each efficiency that is a share of it; synthetic zero inputs flatter a plugin.
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

import torch

size, repeats = 8192, 200
fills = {
    "zeros": lambda matrix: matrix.zero_(),
    "N(0, 1)": lambda matrix: matrix.normal_(0, 1),
    "N(0, 0.02)": lambda matrix: matrix.normal_(0, 0.02),
}
a, b, result = (torch.empty(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(3))
start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
rates = {name: [] for name in fills}
for _ in range(4):
    for name, fill in fills.items():
        fill(a), fill(b)
        for _ in range(repeats):  # the clock settles
            torch.mm(a, b, out=result)
        start.record()
        for _ in range(repeats):
            torch.mm(a, b, out=result)
        stop.record()
        torch.cuda.synchronize()
        rates[name].append(2 * size**3 * repeats / start.elapsed_time(stop) / 1e9)
median = {name: statistics.median(values) for name, values in rates.items()}
for name in fills:
    print(f"{name}: {median[name]:.0f} TFLOP/s (rounds {', '.join(f'{rate:.0f}' for rate in rates[name])})")
if not median["zeros"] > 1.05 * min(median.values()):
    sys.exit("the behaviour has changed")
PYTHON
