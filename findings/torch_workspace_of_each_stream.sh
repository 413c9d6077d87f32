#!/usr/bin/env bash
# torch 2.11.0 on Hopper: the first small product on each stream keeps tens of MiB of device memory. Needs a GPU.
#
# Expected: a 16 x 16 product allocates its result; memory_allocated() counts tensors.
# Behaviour: expected: torch gives cuBLAS a workspace for each pair of handle and stream, 32 MiB on Hopper, from its caching allocator; it counts as allocated and
# stays for as long as the process lives.
# Why it matters: the peak memory of a peer holds a part that grows with its streams and not with its model, and depends on CUBLAS_WORKSPACE_CONFIG; a baseline
# that is read before the first product does not hold it.
# Seen on:
set -euo pipefail
[[ $(nvidia-smi -L 2>/dev/null || true) == GPU* ]] || { echo "skipped: needs a GPU"; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check torch==2.11.0
"$folder/python/bin/python" - <<'PYTHON'
import os
import sys

import torch

matrix = torch.ones(16, 16, device="cuda", dtype=torch.bfloat16)
results, taken = [], []
print(f"CUBLAS_WORKSPACE_CONFIG: {os.environ.get('CUBLAS_WORKSPACE_CONFIG', 'not set')}")
for stream in [torch.cuda.default_stream(), *(torch.cuda.Stream() for _ in range(4))]:
    for repeat in range(2):
        before = torch.cuda.memory_allocated()
        with torch.cuda.stream(stream):
            results.append(matrix @ matrix)
        torch.cuda.synchronize()
        taken.append((torch.cuda.memory_allocated() - before) / 2**20)
    print(f"{'default stream' if stream == torch.cuda.default_stream() else 'another stream'}: "
          f"first product {taken[-2]:.3f} MiB, second {taken[-1]:.3f} MiB")
if not (all(first > 2 for first in taken[::2]) and all(second < 0.01 for second in taken[1::2])):
    sys.exit("the behaviour has changed")
PYTHON
