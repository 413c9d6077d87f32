#!/usr/bin/env bash
# cuBLAS 13.1.0 on Hopper (torch 2.11.0): an fp8 product with a float32 result does not sum in float32: small terms beside a large one are lost. Needs a GPU.
#
# Expected: CUBLAS_COMPUTE_32F sums in float32, so 448 * 448 and 1,023 ones give 201,727, as they do in bf16.
# Behaviour: expected: the tensor core of Hopper aligns the terms of an fp8 sum to the largest and keeps some 14 bits, so that with fast accumulation all the ones
# are lost; without it (use_fast_accum=False) partial sums are moved to float32 from time to time, and those beside the large term alone are lost.
# Why it matters: the tolerance of an fp8 product cannot be taken from float32 and the rounding of its inputs, and the two settings differ in results, not in
# speed only.
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

size, depth = 64, 1024
ones = torch.ones(size, depth, device="cuda")
ones[:, 0] = 448
scale = torch.ones((), device="cuda")
fp8 = ones.to(torch.float8_e4m3fn)
exact = 448 * 448 + depth - 1
errors = {}
for fast in (True, False):
    result = torch._scaled_mm(fp8, fp8.t(), scale_a=scale, scale_b=scale, out_dtype=torch.float32, use_fast_accum=fast)
    errors[f"fp8, use_fast_accum={fast}"] = exact - result[0, 0].item()
for kind in (torch.bfloat16, torch.float16):
    result = torch.mm(ones.to(kind), ones.to(kind).t(), out_dtype=torch.float32)
    errors[str(kind)] = exact - result[0, 0].item()
for name, error in errors.items():
    print(f"{name}: {exact - error:.0f} where {exact} is exact; {error:.0f} of the {depth - 1} ones are lost")
if not (errors["fp8, use_fast_accum=True"] >= 100 and errors["torch.bfloat16"] == 0 and errors["torch.float16"] == 0):
    sys.exit("the behaviour has changed")
PYTHON
