#!/usr/bin/env bash
# NVML (driver 580): one call for the total energy takes milliseconds where one for the power takes a microsecond, and the energy moves in steps of 100 ms.
# Needs a GPU; no package is needed, as the library comes with the driver.
#
# Expected: the energy counter is read like the power, in microseconds, and is as fresh as its unit, a millijoule, lets one hope.
# Behaviour: on an H100 80GB HBM3 (driver 580.159.04) nvmlDeviceGetTotalEnergyConsumption took 2.4 ms and nvmlDeviceGetPowerUsage 0 to 1 us (from a cache);
# both change each 100 ms.
# Why it matters: a sampler that reads the energy around each step adds milliseconds to it, and the difference over a step shorter than 100 ms is 0 or that of
# a neighbour; energy needs a window of many steps.
# Seen on:
set -euo pipefail
[[ $(nvidia-smi -L 2>/dev/null || true) == GPU* ]] || { echo "skipped: needs a GPU"; exit 0; }
python3 - <<'PYTHON'
import ctypes
import statistics
import sys
import time

nvml = ctypes.CDLL("libnvidia-ml.so.1")
device = ctypes.c_void_p()
if nvml.nvmlInit_v2() != 0 or nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) != 0:
    sys.exit("NVML has no device 0")
power, energy = ctypes.c_uint(), ctypes.c_ulonglong()


def microseconds(call, value):
    start = time.perf_counter()
    if call(device, ctypes.byref(value)) != 0:
        sys.exit("a call of NVML failed")
    return 1e6 * (time.perf_counter() - start)


microseconds(nvml.nvmlDeviceGetPowerUsage, power)
power_time = statistics.median(microseconds(nvml.nvmlDeviceGetPowerUsage, power) for _ in range(2000))
energy_times, changes, last = [], [], None
end = time.perf_counter() + 4
while time.perf_counter() < end:
    energy_times.append(microseconds(nvml.nvmlDeviceGetTotalEnergyConsumption, energy))
    if energy.value != last:
        changes.append(time.perf_counter())
        last = energy.value
energy_time = statistics.median(energy_times)
step = statistics.median(b - a for a, b in zip(changes, changes[1:])) if len(changes) > 2 else float("inf")
print(f"a call for the power {power_time:.2f} us, for the energy {energy_time:.0f} us (median of {len(energy_times)})")
print(f"the energy changed {len(changes) - 1} times in 4 s, each {1000 * step:.0f} ms")
if not (energy_time > 20 * power_time and len(changes) < len(energy_times) / 5):
    sys.exit("the behaviour has changed")
PYTHON
