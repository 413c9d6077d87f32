#!/usr/bin/env bash
# ml_dtypes 0.5.1 with NumPy 2.2.0: float64 to bfloat16 rounds twice, and float8_e4m3fn turns what is too large into NaN, not into 448.
#
# Expected: a conversion gives the nearest value of the smaller type; for e4m3 without infinities, the largest value in place of too large ones,
# as CUDA's conversions with __NV_SATFINITE do and as training in fp8 relies on.
# Behaviour: float64 goes to float32 first. 1 + 2^-8 + 2^-30 lies above the middle of 1 and 1.0078125 and becomes 1: float32 loses the last
# term, and the tie goes to even. 464 becomes 448, 465 NaN; the e5m2 type has infinities and takes them.
# Why it matters: a reference computed in float64 and rounded by NumPy is one bf16 step off where a device is right, and fp8 references need
# a clip before the cast.
# Seen with Python 3.11.7 on Debian 12:
#   1 + 2^-8 + 2^-30 as bfloat16: 1, nearest 1.0078125
#   464, 465, 1e6 as float8_e4m3fn: 448 nan nan
#   61439, 61440 as float8_e5m2: 57344 inf
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check ml_dtypes==0.5.1 numpy==2.2.0
"$folder/python/bin/python" - <<'PYTHON'
import sys

import ml_dtypes
import numpy as np


def cast(values, dtype):
    return [f"{x:.8g}" for x in np.array(values).astype(dtype).astype(np.float64)]


bf16 = cast([1 + 2.0**-8 + 2.0**-30], ml_dtypes.bfloat16)
e4m3 = cast(np.array([464, 465, 1e6], dtype=np.float32), ml_dtypes.float8_e4m3fn)
e5m2 = cast(np.array([61439, 61440], dtype=np.float32), ml_dtypes.float8_e5m2)
print(f"1 + 2^-8 + 2^-30 as bfloat16: {bf16[0]}, nearest 1.0078125")
print("464, 465, 1e6 as float8_e4m3fn:", *e4m3)
print("61439, 61440 as float8_e5m2:", *e5m2)
if (bf16, e4m3, e5m2) != (["1"], ["448", "nan", "nan"], ["57344", "inf"]):
    sys.exit("the behaviour has changed")
PYTHON
