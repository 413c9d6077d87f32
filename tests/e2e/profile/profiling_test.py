#!/usr/bin/env python3
"""profiling_test.py ASSAY WORK PRETENDED_GPU CPU_DEVICE: [profile] kernels and nsys, with a device and an nsys that
pretend. The pretended nsys keeps the worker's descriptors to itself."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

EXPERIMENT = """
schema = 1
name = "profiling"
[workload]
plugin = "decoder"
[workload.params]
d_model = 32
d_ff = 64
layers = 1
heads = 2
vocab_size = 50
batch_size = 2
context_length = 16
[measure]
warmup = 1
steps = 2
[run]
device = "cuda"
[profile]
nsys = true
kernels = true
"""

NSYS = """#!/bin/sh
[ "$1" = profile ] || exit 9
echo "pretended nsys: $*" >&2
while [ "${1#/}" = "$1" ]; do shift; done
(exec 3>&- 4</dev/null 5>&-; "$@")
exit $?
"""


def run(assay, work, gpu, cpu, path):
    environment = dict(os.environ, PATH=path, ASSAY_DEVICE_PATH=str(pathlib.Path(gpu).parent), PRETENDED_GPU_CPU=cpu)
    done = subprocess.run([assay, "run", "experiment.toml"], cwd=work, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    folder = work / "results" / "profiling" / "latest"
    return (folder, json.loads((folder / "cases.jsonl").read_text()), (folder / "logs" / "case-0001.log").read_text(),
            done.stdout + done.stderr)


def check_kernels(folder, record, said):
    """Of three steps, the one whose work does not lie within its marks is left out."""
    assert record["kernel_trace"]["steps"] == 2 and record["kernel_trace"]["in_graph"] is False
    left_out = [note for note in record["notes"] if "not in the table of kernels" in note]
    assert len(left_out) == 1 and left_out[0].startswith("1 of 3 traced steps"), record["notes"]
    rows = [k for rows in record["kernels"].values() for k in rows]
    assert {k["name"] for k in rows} == {"pretended_gemm"} and sum(k["count"] for k in rows) == 1, rows
    table = (folder / record["kernel_trace"]["file"]).read_text()
    assert "`pretended_gemm`" in table and "pretended_late" not in table, table
    assert "launches" in said and "matrix products" in said, said


def check_order(log):
    """The range and the external profiler's part hold the measured steps; tracing comes after."""
    said = [line.removeprefix("pretended gpu: ") for line in log.splitlines() if line.startswith("pretended gpu: ")]
    assert said == ["profiler start", "push measure", "pop", "profiler stop", "trace begin", "trace end"], said


def main():
    assay, work, gpu, cpu = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4]
    shutil.rmtree(work, ignore_errors=True)
    (work / "bin").mkdir(parents=True)
    (work / "experiment.toml").write_text(EXPERIMENT)

    folder, record, log, said = run(assay, work, gpu, cpu, "/usr/bin:/bin")
    check_kernels(folder, record, said)
    check_order(log)
    assert "nsys is not on the PATH" in said and "nsys profile --trace=cuda,nvtx,cublas,cudnn" in said, said
    assert "pretended nsys" not in log

    nsys = work / "bin" / "nsys"
    nsys.write_text(NSYS)
    nsys.chmod(0o755)
    folder, record, log, said = run(assay, work, gpu, cpu, f"{work.absolute() / 'bin'}:/usr/bin:/bin")
    assert record["status"] == "ok" and record["phases"]["step"]["n"] == 2
    assert "pretended nsys: profile" in log and "nsys_case-0001" in log, log
    check_order(log)
    assert "not on the PATH" not in said, said


main()
