#!/usr/bin/env bash
# NVML (driver 580, load by torch 2.11.0): nvmlDeviceGetPowerUsage is an average that follows half a second behind; the field POWER_INSTANT follows at once.
# Needs a GPU.
#
# Expected: nvmlDeviceGetPowerUsage, which nvidia-smi shows, is the power now, within one sampling period.
# Behaviour: on an H100 80GB HBM3 (driver 580.159.04) it had risen by half the idle power 622 ms after the start of a load; field 186 (NVML_FI_DEV_POWER_INSTANT)
# after 23 ms. Both change each 100 ms.
# Why it matters: the power of a run of less than a few seconds that is read in the usual way is partly that of what ran before it.
# Seen on:
set -euo pipefail
[[ $(nvidia-smi -L 2>/dev/null || true) == GPU* ]] || { echo "skipped: needs a GPU"; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check torch==2.11.0
"$folder/python/bin/python" - <<'PYTHON'
import ctypes
import statistics
import sys
import time

import torch


class FieldValue(ctypes.Structure):
    _fields_ = [("field", ctypes.c_uint), ("scope", ctypes.c_uint), ("timestamp", ctypes.c_longlong), ("latency", ctypes.c_longlong),
                ("type", ctypes.c_int), ("status", ctypes.c_int), ("value", ctypes.c_ulonglong)]


nvml = ctypes.CDLL("libnvidia-ml.so.1")
device, average = ctypes.c_void_p(), ctypes.c_uint()
if nvml.nvmlInit_v2() != 0 or nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) != 0:
    sys.exit("NVML has no device 0")


def watts():
    field = FieldValue(field=186)  # NVML_FI_DEV_POWER_INSTANT
    nvml.nvmlDeviceGetPowerUsage(device, ctypes.byref(average)), nvml.nvmlDeviceGetFieldValues(device, 1, ctypes.byref(field))
    return average.value / 1000, (field.value & 0xFFFFFFFF) / 1000


matrix = torch.randn(16384, 16384, device="cuda", dtype=torch.bfloat16)
result, lags = matrix @ matrix, []
for _ in range(2):
    time.sleep(2)
    idle, start, samples = watts(), time.perf_counter(), []
    for _ in range(160):  # two seconds or so
        torch.mm(matrix, matrix, out=result)
    done = torch.cuda.current_stream().record_event()
    while not done.query():
        samples.append((time.perf_counter() - start, *watts()))
        time.sleep(0.002)
    busy = max(sample[2] for sample in samples)
    half = [next((s[0] for s in samples if s[1 + way] > (idle[way] + busy) / 2), samples[-1][0]) for way in (0, 1)]
    lags.append(half)
    print(f"idle {idle[1]:.0f} W, busy {busy:.0f} W: half way up after {1000 * half[0]:.0f} ms (PowerUsage), {1000 * half[1]:.0f} ms (POWER_INSTANT)")
if not statistics.mean(lag[0] for lag in lags) > 2 * statistics.mean(lag[1] for lag in lags):
    sys.exit("the behaviour has changed")
PYTHON
