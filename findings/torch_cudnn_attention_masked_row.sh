#!/usr/bin/env bash
# torch 2.11.0 with cuDNN 9.19: attention by cuDNN gives numbers to a row that a boolean mask leaves no key; other backends give zeros. Needs a GPU.
#
# Expected: scaled_dot_product_attention gives the same result by each of its backends, up to rounding; torch's math gives 0 to a row without keys.
# Behaviour: torch fills the mask for cuDNN with -65504 where the other backends get -inf. That cancels in a row that is masked as a whole, so the row attends to
# all keys, forward and backward. The same mask as numbers, with -inf, gives 0 by each backend. The last two lines are of the backend that torch takes by itself.
# Why it matters: padded rows are such rows. A verification that compares whole outputs of two peers fails, or passes, by which backend one of them took;
# a sum over all rows holds what the mask was to hide. It looks like an error of the plugin's own kernel.
# Seen on: NVIDIA H200, driver 580.159.04, cuDNN 9.19.0: by cuDNN the largest number of the row is 0.381, of its gradient of q 0.488, twice; elsewhere 0.
set -euo pipefail
[[ $(nvidia-smi -L 2>/dev/null || true) == GPU* ]] || { echo "skipped: needs a GPU"; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check torch==2.11.0
"$folder/python/bin/python" - <<'PYTHON'
import contextlib
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.manual_seed(1)
inputs = [torch.randn(2, 4, 128, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]
allowed = torch.ones(2, 1, 128, 128, device="cuda", dtype=torch.bool)
row = 5
allowed[:, :, row] = False
numbers = torch.zeros(allowed.shape, device="cuda", dtype=torch.bfloat16).masked_fill(~allowed, float("-inf"))
q, k, v = (tensor.detach().double() for tensor in inputs)
unmasked = (torch.softmax(q @ k.transpose(-1, -2) / 8, -1) @ v)[:, :, row]
largest = {}
print(f"cuDNN {torch.backends.cudnn.version()}")
for backend in (SDPBackend.MATH, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION, None):
    name = "torch's own choice" if backend is None else backend.name
    for kind, mask in (("boolean", allowed), ("-inf", numbers)):
        with contextlib.nullcontext() if backend is None else sdpa_kernel(backend):
            output = torch.nn.functional.scaled_dot_product_attention(*inputs, attn_mask=mask)
        gradient = torch.autograd.grad(output, inputs, torch.ones_like(output))[0]
        seen = output[:, :, row]
        largest[name, kind] = seen.abs().max().item()
        print(f"{name}, {kind} mask: largest of the row {largest[name, kind]:.3g}, of its gradient {gradient[:, :, row].abs().max().item():.3g}, "
              f"distance from the row without a mask {(seen - unmasked).abs().max().item():.3g}")
others = [value for key, value in largest.items() if key[0] in ("MATH", "EFFICIENT_ATTENTION")]
if not (largest["CUDNN_ATTENTION", "boolean"] > 0.01 and max(others) == 0):
    sys.exit("the behaviour has changed")
PYTHON
