#!/usr/bin/env bash
# NVML (driver 580, load by torch 2.11.0): a healthy card at stock settings reports a reason for slowed clocks all through a large matrix product. Needs a GPU.
#
# Expected: nvmlDeviceGetCurrentClocksEventReasons (once "throttle reasons") is zero unless the card is hot, capped by somebody or ill.
# Behaviour: expected: SW_POWER_CAP (4) in most samples, with the SM clock hundreds of MHz below its maximum. An H100 80GB HBM3 ran a bf16 8192 cube on random
# data at 1,460 MHz under its own power cap.
# Why it matters: a validity check that rejects every run with a clock event reason rejects every good run of large products; what counts is whether the
# reason differs between the runs that are compared.
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

nvml = ctypes.CDLL("libnvidia-ml.so.1")
device, reasons, clock, most, limit, usual = ctypes.c_void_p(), ctypes.c_ulonglong(), *(ctypes.c_uint() for _ in range(4))
if nvml.nvmlInit_v2() != 0 or nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) != 0:
    sys.exit("NVML has no device 0")
nvml.nvmlDeviceGetMaxClockInfo(device, 1, ctypes.byref(most))  # 1: NVML_CLOCK_SM
nvml.nvmlDeviceGetEnforcedPowerLimit(device, ctypes.byref(limit))
nvml.nvmlDeviceGetPowerManagementDefaultLimit(device, ctypes.byref(usual))
matrix = torch.randn(16384, 16384, device="cuda", dtype=torch.bfloat16)
result = matrix @ matrix
torch.cuda.synchronize()
for _ in range(250):  # three seconds or so
    torch.mm(matrix, matrix, out=result)
done, begin, seen, clocks = torch.cuda.Event(), time.perf_counter(), [], []
done.record()
while not done.query():
    if time.perf_counter() > begin + 0.5:
        if nvml.nvmlDeviceGetCurrentClocksEventReasons(device, ctypes.byref(reasons)) or nvml.nvmlDeviceGetClockInfo(device, 1, ctypes.byref(clock)):
            sys.exit("a call of NVML failed")
        seen.append(reasons.value)
        clocks.append(clock.value)
    time.sleep(0.005)
capped = sum(bool(value & 4) for value in seen) / len(seen)
print(f"power limit {limit.value / 1000:.0f} W, default {usual.value / 1000:.0f} W; reasons seen: {', '.join(map(hex, sorted(set(seen))))}")
print(f"SW_POWER_CAP in {100 * capped:.0f}% of {len(seen)} samples, median SM clock {statistics.median(clocks):.0f} MHz of {most.value}")
if not (limit.value == usual.value and capped > 0.3 and statistics.median(clocks) < 0.97 * most.value):
    sys.exit("the behaviour has changed")
PYTHON
