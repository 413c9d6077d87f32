#!/usr/bin/env bash
# cuDNN 9.19 (torch 2.11.0): the backward of attention repeats dK and dV bit for bit, and not dQ. Needs a GPU.
#
# Expected: all three gradients vary from run to run, or none; so a look at one tells whether the backward is deterministic.
# Behaviour: dQ is summed with atomic additions over the blocks of keys, dK and dV are not. On an H100 80GB HBM3 (driver 580.159.04) 12 runs gave 9 different dQ,
# and one dK and one dV. The deterministic variant took 528 us for 451, and 537 MB of workspace for 34.
# Why it matters: a determinism check that compares the gradients of late weights alone passes; and memory, not time, is the price of determinism.
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
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.manual_seed(1)
inputs = [torch.randn(4, 16, 4096, 128, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]
grad = torch.randn(4, 16, 4096, 128, device="cuda", dtype=torch.bfloat16)


def different(backend, runs=12):
    seen = [[], [], []]
    for _ in range(runs):
        with sdpa_kernel(backend):
            output = torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=True)
        for own, gradient in zip(seen, torch.autograd.grad(output, inputs, grad)):
            if not any(torch.equal(gradient, other) for other in own):
                own.append(gradient)
    return [len(own) for own in seen]


print(f"cuDNN {torch.backends.cudnn.version()}")
counts = different(SDPBackend.CUDNN_ATTENTION)
print(f"cuDNN: different dQ, dK, dV in 12 runs: {counts}")
print(f"FlashAttention 2 of torch: {different(SDPBackend.FLASH_ATTENTION)}")
try:
    torch.use_deterministic_algorithms(True)
    print(f"cuDNN, use_deterministic_algorithms(True): {different(SDPBackend.CUDNN_ATTENTION)}")
except RuntimeError as error:
    print(f"cuDNN, use_deterministic_algorithms(True): {str(error).splitlines()[0]}")
if not (counts[0] > 1 and counts[1:] == [1, 1]):
    sys.exit("the behaviour has changed")
PYTHON
