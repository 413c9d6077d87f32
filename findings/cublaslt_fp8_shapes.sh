#!/usr/bin/env bash
# cuBLASLt 13.1.0 (torch 2.11.0): an fp8 product takes any n and each m that is a multiple of 8; k alone must be a multiple of 16. Needs a GPU.
#
# Expected: every dimension a multiple of 16, as torch._scaled_mm demands and as many hosts check.
# Behaviour: expected: with e4m3 inputs, A transposed and a bf16 result, m = 24, n = 1 and n = 17 have algorithms; m = 20 and k = 1032 have none. What counts
# is the 16 bytes of each leading dimension: k bytes for A and B, 2 m bytes for D. An H100 80GB HBM3 (driver 580.159.04) did the same.
# Why it matters: a host that pads tokens (n) to 16, or refuses a batch because of them, pays for a rule that its library does not have.
# Seen on:
set -euo pipefail
[[ $(nvidia-smi -L 2>/dev/null || true) == GPU* ]] || { echo "skipped: needs a GPU"; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check torch==2.11.0
"$folder/python/bin/python" - <<'PYTHON'
import sys
from ctypes import CDLL, byref, c_int, c_int64, c_uint64, c_void_p

import torch

torch.zeros(1, device="cuda")
lt, handle, preference = CDLL("libcublasLt.so.13"), c_void_p(), c_void_p()
lt.cublasLtCreate(byref(handle))
lt.cublasLtMatmulPreferenceCreate(byref(preference))
lt.cublasLtMatmulPreferenceSetAttribute(preference, 1, byref(c_uint64(32 << 20)), 8)  # bytes of workspace
desc = c_void_p()
lt.cublasLtMatmulDescCreate(byref(desc), 68, 0)  # CUBLAS_COMPUTE_32F, CUDA_R_32F
lt.cublasLtMatmulDescSetAttribute(desc, 3, byref(c_int(1)), 4)  # A is transposed


def layout(kind, rows, columns):
    created = c_void_p()
    lt.cublasLtMatrixLayoutCreate(byref(created), kind, c_uint64(rows), c_uint64(columns), c_int64(rows))
    return created


def algorithms(m, n, k):
    a, b, d = layout(28, k, m), layout(28, k, n), layout(14, m, n)  # CUDA_R_8F_E4M3, CUDA_R_16BF
    results, count = (c_uint64 * 96)(), c_int()
    status = lt.cublasLtMatmulAlgoGetHeuristic(handle, desc, a, b, d, d, preference, 8, results, byref(count))
    print(f"m {m}, n {n}, k {k}: {f'{count.value} algorithms' if status == 0 else f'status {status}'}")
    return count.value if status == 0 else 0


taken = [algorithms(*shape) for shape in ((64, 64, 1024), (24, 64, 1024), (64, 17, 1024), (64, 1, 1024), (24, 17, 1024))]
refused = [algorithms(*shape) for shape in ((20, 64, 1024), (17, 64, 1024), (64, 64, 1032))]
fp8 = [torch.ones(shape, device="cuda").to(torch.float8_e4m3fn) for shape in ((64, 1024), (24, 1024))]
scale = torch.ones((), device="cuda")
try:
    torch._scaled_mm(fp8[0], fp8[1].t(), scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16)
    print("torch._scaled_mm takes 24 columns")
except RuntimeError as error:
    print(f"torch._scaled_mm with 24 columns: {str(error).splitlines()[0]}")
if not (all(taken) and not any(refused)):
    sys.exit("the behaviour has changed")
PYTHON
