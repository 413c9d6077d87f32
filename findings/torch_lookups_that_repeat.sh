#!/usr/bin/env bash
# torch 2.11.0: two ways to take rows of a table have gradients that repeat bit for bit, or never do. Needs a GPU.
#
# Expected: embedding(index, table), table[index] and table.index_select(0, index) are one operation; where sums go by atomics none of their gradients repeats;
# a sum over a row, as cumsum, has no race.
# Behaviour: the backward of embedding and table[index] sorts the indices and repeats; that of index_select adds with atomics and differs in each run, in half
# of the time. scatter_add_ and index_add_ differ as well, index_put_ with accumulate does not. cumsum over one long vector differs in each run.
# Why it matters: whether a training run repeats depends on how its author spelled a lookup; and a peer is faster for the spelling that does not repeat.
# Seen on: NVIDIA H200, driver 580.159.04: 12 results in 12 runs of index_select's backward, scatter_add_, index_add_ and cumsum, 1 of the others, fp32 and bf16 alike;
# fp32, two runs: 163 and 167 us for index_select's backward, 398 and 355 for table[index]'s.
set -euo pipefail
[[ $(nvidia-smi -L 2>/dev/null || true) == GPU* ]] || { echo "skipped: needs a GPU"; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check torch==2.11.0
"$folder/python/bin/python" - <<'PYTHON'
import sys

import torch

torch.manual_seed(0)
counts = {}
for dtype in (torch.float32, torch.bfloat16):
    index = torch.randint(0, 1000, (1 << 17,), device="cuda")
    source = torch.randn(1 << 17, 64, device="cuda").to(dtype)
    table = torch.randn(1000, 64, device="cuda").to(dtype).requires_grad_()

    def zeros():
        return torch.zeros(1000, 64, device="cuda", dtype=dtype)

    operations = {
        "embedding, backward": lambda: torch.autograd.grad(torch.nn.functional.embedding(index, table), table, source)[0],
        "table[index], backward": lambda: torch.autograd.grad(table[index], table, source)[0],
        "index_select, backward": lambda: torch.autograd.grad(table.index_select(0, index), table, source)[0],
        "index_put_ with accumulate": lambda: zeros().index_put_((index,), source, accumulate=True),
        "index_add_": lambda: zeros().index_add_(0, index, source),
        "scatter_add_": lambda: zeros().scatter_add_(0, index[:, None].expand(-1, 64), source),
        "cumsum": lambda: source.flatten().cumsum(0),
        "sum": lambda: source.sum(),
    }
    for name, operation in operations.items():
        seen, start, stop = [], torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        for _ in range(12):
            start.record()
            result = operation()
            stop.record()
            if not any(torch.equal(result, other) for other in seen):
                seen.append(result)
        torch.cuda.synchronize()
        counts[name, dtype] = len(seen)
        print(f"{dtype}, {name}: {len(seen)} different results in 12 runs, the last took {1000 * start.elapsed_time(stop):.0f} us")
repeat = ("embedding, backward", "table[index], backward", "index_put_ with accumulate")
if not all(counts[name, torch.float32] == 1 for name in repeat) or counts["index_select, backward", torch.float32] == 1:
    sys.exit("the behaviour has changed")
PYTHON
