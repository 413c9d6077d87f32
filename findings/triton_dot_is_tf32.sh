#!/usr/bin/env bash
# Triton 3.6.0 (torch 2.11.0): tl.dot on float32 rounds its inputs to TF32, whatever torch is told about TF32. Needs a GPU.
#
# Expected: float32 by float32 is float32, as torch.matmul on the same card, where torch.backends.cuda.matmul.allow_tf32 is False by default.
# Behaviour: expected: input_precision of tl.dot is "tf32" by default, where the card has it: 10 bits of mantissa, an error a thousand times that of torch.matmul,
# and no switch of torch reaches it; input_precision="ieee" does.
# Why it matters: a Triton kernel that wins over cuBLAS in float32 by a factor may have computed something else; a comparison must hold both to one tolerance.
# Seen on:
set -euo pipefail
[[ $(nvidia-smi -L 2>/dev/null || true) == GPU* ]] || { echo "skipped: needs a GPU"; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check torch==2.11.0
cat >"$folder/kernel.py" <<'PYTHON'
import sys

import torch
import triton
import triton.language as tl


@triton.jit
def product(a, b, c, size: tl.constexpr, precision: tl.constexpr):
    index = tl.arange(0, size)
    at = index[:, None] * size + index[None, :]
    if precision == "default":
        result = tl.dot(tl.load(a + at), tl.load(b + at))
    else:
        result = tl.dot(tl.load(a + at), tl.load(b + at), input_precision=precision)
    tl.store(c + at, result)


torch.manual_seed(1)
a, b = (torch.randn(64, 64, device="cuda") for _ in range(2))
exact = a.double() @ b.double()
errors = {}
for precision in ("default", "tf32", "ieee"):
    c = torch.empty(64, 64, device="cuda")
    product[(1,)](a, b, c, 64, precision)
    errors[precision] = ((c - exact).norm() / exact.norm()).item()
errors["torch.matmul"] = ((a @ b - exact).norm() / exact.norm()).item()
print(f"Triton {triton.__version__}, torch's allow_tf32 {torch.backends.cuda.matmul.allow_tf32}")
for name, error in errors.items():
    print(f"{name if name.startswith('torch') else f'tl.dot, {name}'}: relative error {error:.2g}")
if not (errors["default"] > 50 * errors["torch.matmul"] and errors["ieee"] < 10 * errors["torch.matmul"]):
    sys.exit("the behaviour has changed")
PYTHON
"$folder/python/bin/python" "$folder/kernel.py"
