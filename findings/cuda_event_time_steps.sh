#!/usr/bin/env bash
# CUDA 13.0 runtime (driver 580, torch 2.11.0): event times are multiples of 32 ns, and two adjacent events are a microsecond or more apart. Needs a GPU.
#
# Expected: a resolution of around 0.5 microseconds, as the documentation of cudaEventElapsedTime says; 0 where nothing lies between two events.
# Behaviour: on an H100 80GB HBM3 (driver 580.159.04, CUDA 13.0) every time is a multiple of 32 ns, so that short times take few distinct values; two events
# with nothing between are 1.25 us apart at least, and what is measured around one kernel holds that, too.
# Why it matters: ties and steps in the times of short operations are the clock, not the operation, and medians and tests of small differences must know the step.
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

value = torch.zeros(1, device="cuda")
value.add_(1)
start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)


def nanoseconds(between):
    torch.cuda.synchronize()
    torch.cuda._sleep(100_000)  # the device waits until the host has queued all of it
    start.record()
    between()
    stop.record()
    torch.cuda.synchronize()
    return 1e6 * start.elapsed_time(stop)


nothing = [nanoseconds(lambda: None) for _ in range(1000)]
kernel = [nanoseconds(lambda: value.add_(1)) for _ in range(1000)]
for name, times in (("nothing", nothing), ("one kernel", kernel)):
    print(f"{name} between two events: {min(times):.0f} to {max(times):.0f} ns, {len(set(times))} distinct times of {len(times)}")
steps = {round(time / 32) for time in nothing + kernel}
off = max(abs(time / 32 - round(time / 32)) for time in nothing + kernel)
print(f"largest distance from a multiple of 32 ns: {32 * off:.2f} ns; {sum(step % 2 for step in steps)} of {len(steps)} are odd multiples")
if not (off < 0.05 and any(step % 2 for step in steps) and min(nothing) > 500):
    sys.exit("the behaviour has changed")
PYTHON
