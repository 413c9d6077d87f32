#!/usr/bin/env bash
# torch 2.11.0: a pinned tensor takes the next power of two of host memory. Needs a GPU.
#
# Expected: the size of the tensor, rounded up to a page or so, as cudaHostAlloc takes.
# Behaviour: expected: the caching host allocator rounds each block up to a power of two and keeps it: 33 MiB take 64, and 1,025 MiB would take 2 GiB.
# Why it matters: the host memory of a run with pinned batches or offloaded states can be twice what its shapes say, and cannot be had by another process.
# Seen on:
set -euo pipefail
[[ $(nvidia-smi -L 2>/dev/null || true) == GPU* ]] || { echo "skipped: needs a GPU"; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check torch==2.11.0
"$folder/python/bin/python" - <<'PYTHON'
import sys

import torch

torch.zeros(1, device="cuda")


def held():
    return max(value for name, value in torch.cuda.host_memory_stats().items() if name.endswith("bytes.current")) / 2**20


kept, taken = [], {}
for size in (32, 33, 65, 129):
    before = held()
    kept.append(torch.empty(size << 20, dtype=torch.uint8, pin_memory=True))
    taken[size] = held() - before
    print(f"a pinned tensor of {size} MiB takes {taken[size]:g} MiB")
before = held()
kept.clear()
print(f"after all are freed {held():g} of {before:g} MiB are held")
if not (taken[32] < 34 and taken[33] > 60 and taken[65] > 120):
    sys.exit("the behaviour has changed")
PYTHON
