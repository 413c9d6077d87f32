#!/usr/bin/env bash
# cuBLASLt 13.1.0 (torch 2.11.0): two kinds of unsupported fp8 product come back with two kinds of status. Needs a GPU.
#
# Expected: the heuristic answers CUBLAS_STATUS_NOT_SUPPORTED (15) for each form that it has no kernel for, and CUBLAS_STATUS_INVALID_VALUE (7) for a
# caller's mistake, such as a layout that is not set.
# Behaviour: expected: a scale or an amax pointer for a bf16 result is an invalid value (7), where the same pointers with an e4m3 result are taken; e5m2 by e5m2
# and an A that is not transposed are not supported (15). An H100 80GB HBM3 (driver 580.159.04) gave 7 for both pointers.
# Why it matters: a host that takes 15 for "try another form" and 7 for "a bug of ours, stop" stops where it should have fallen back.
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

lt, handle, preference = CDLL("libcublasLt.so.13"), c_void_p(), c_void_p()
lt.cublasLtCreate(byref(handle))
lt.cublasLtMatmulPreferenceCreate(byref(preference))
lt.cublasLtMatmulPreferenceSetAttribute(preference, 1, byref(c_uint64(32 << 20)), 8)  # bytes of workspace
value = torch.ones(1, device="cuda")
pointer = c_void_p(value.data_ptr())
e4m3, e5m2, bf16 = 28, 29, 14  # of cudaDataType_t
scale, amax = 20, 21  # CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, ..._AMAX_D_POINTER


def layout(kind, rows, columns):
    created = c_void_p()
    lt.cublasLtMatrixLayoutCreate(byref(created), kind, c_uint64(rows), c_uint64(columns), c_int64(rows))
    return created


def status_of(what, a=e4m3, b=e4m3, d=bf16, attribute=None, transposed=1):
    form = c_void_p()
    lt.cublasLtMatmulDescCreate(byref(form), 68, 0)
    lt.cublasLtMatmulDescSetAttribute(form, 3, byref(c_int(transposed)), 4)
    if attribute is not None:
        lt.cublasLtMatmulDescSetAttribute(form, attribute, byref(pointer), 8)
    layouts = layout(a, 64, 64), layout(b, 64, 64), layout(bf16, 64, 64), layout(d, 64, 64)
    results, count = (c_uint64 * 96)(), c_int()
    status = lt.cublasLtMatmulAlgoGetHeuristic(handle, form, *layouts, preference, 8, results, byref(count))
    print(f"{what}: status {status}, {count.value if status == 0 else 0} algorithms")
    return status


taken = [status_of("plain"), status_of("scale of an e4m3 result", d=e4m3, attribute=scale), status_of("amax of an e4m3 result", d=e4m3, attribute=amax)]
pointers = [status_of("scale of a bf16 result", attribute=scale), status_of("amax of a bf16 result", attribute=amax)]
forms = [status_of("e5m2 by e5m2", a=e5m2, b=e5m2), status_of("A not transposed", transposed=0)]
if not (not any(taken) and pointers == [7, 7] and 15 in forms):
    sys.exit("the behaviour has changed")
PYTHON
