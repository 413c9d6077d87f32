#!/usr/bin/env bash
# cuBLASLt 13.1.0 (torch 2.11.0): each algorithm of a product that splits k repeats bit for bit, and the algorithms differ from one another. Needs a GPU.
#
# Expected: splitting k means atomic additions, so results differ from run to run; to be safe from that is to forbid the split.
# Behaviour: on an H100 80GB HBM3 (driver 580.159.04), 256 x 256 over k = 65,536, none of the repeats of an algorithm differed in a bit, and the eight algorithms
# gave five different results.
# Why it matters: what breaks repeatability is the choice. A tuner that picks the fastest may pick another one tomorrow; the record of a run must name it.
# Seen on:
set -euo pipefail
[[ $(nvidia-smi -L 2>/dev/null || true) == GPU* ]] || { echo "skipped: needs a GPU"; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check torch==2.11.0
"$folder/python/bin/python" - <<'PYTHON'
import sys
from ctypes import CDLL, byref, c_float, c_int, c_int64, c_size_t, c_uint64, c_void_p

import torch

lt = CDLL("libcublasLt.so.13")
lt.cublasLtMatmul.argtypes = [c_void_p] * 14 + [c_size_t, c_void_p]
handle, desc, preference = (c_void_p() for _ in range(3))
lt.cublasLtCreate(byref(handle)), lt.cublasLtMatmulDescCreate(byref(desc), 68, 0)  # CUBLAS_COMPUTE_32F, CUDA_R_32F
lt.cublasLtMatmulDescSetAttribute(desc, 3, byref(c_int(1)), 4)  # A is transposed
lt.cublasLtMatmulPreferenceCreate(byref(preference))
lt.cublasLtMatmulPreferenceSetAttribute(preference, 1, byref(c_size_t(64 << 20)), 8)  # bytes of workspace
workspace = torch.empty(64 << 20, device="cuda", dtype=torch.uint8)
one, zero, m, n, k = c_float(1), c_float(0), 256, 256, 65536


def layout(kind, rows, columns):
    created = c_void_p()
    lt.cublasLtMatrixLayoutCreate(byref(created), kind, c_uint64(rows), c_uint64(columns), c_int64(rows))
    return created


a, b = (torch.randn(rows, k, device="cuda", dtype=torch.bfloat16) for rows in (m, n))
d = torch.empty(n, m, device="cuda", dtype=torch.float32)
layouts = layout(14, k, m), layout(14, k, n), layout(0, m, n)  # CUDA_R_16BF, CUDA_R_32F
results, count = (c_uint64 * 96)(), c_int()  # eight of cublasLtMatmulHeuristicResult_t, of 96 bytes
lt.cublasLtMatmulAlgoGetHeuristic(handle, desc, layouts[0], layouts[1], layouts[2], layouts[2], preference, 8, results, byref(count))
differing, outcomes, workspaces = 0, [], []
for index in range(count.value):
    seen = []
    for _ in range(30):
        d.fill_(float("nan"))
        if lt.cublasLtMatmul(handle, desc, byref(one), a.data_ptr(), layouts[0], b.data_ptr(), layouts[1], byref(zero), d.data_ptr(), layouts[2],
                             d.data_ptr(), layouts[2], byref(results, 96 * index), workspace.data_ptr(), 64 << 20, None) != 0:
            sys.exit("a product failed")
        seen.append(d.clone())
    differing += sum(not torch.equal(seen[0], other) for other in seen[1:])
    workspaces.append(results[12 * index + 8])
    outcomes += [] if any(torch.equal(seen[0], outcome) for outcome in outcomes) else seen[:1]
print(f"{count.value} algorithms (workspace {', '.join(map(str, workspaces))} bytes): {differing} of {29 * count.value} repeats differ in a bit; "
      f"{len(outcomes)} different results between the algorithms")
if not (count.value > 1 and differing == 0 and len(outcomes) > 1):
    sys.exit("the behaviour has changed")
PYTHON
