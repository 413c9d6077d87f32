#!/usr/bin/env python3
"""metrics_test.py ASSAY WORK PRETENDED_GPU CPU_DEVICE GLOO_AS_NCCL GLOO: what workloads tell of their communication is the
same with [profile] kernels and without."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

SMALL_DECODER = """
d_model = 32
d_ff = 64
layers = 1
heads = 2
vocab_size = 50
batch_size = 2
context_length = 16
"""
EXPERIMENT = """
schema = 1
name = "metrics"
[workload]
plugin = "{plugin}"
[workload.params]
{params}
[sweep]
"profile.kernels" = [false, true]
[measure]
warmup = 2
steps = 4
[run]
device = "cuda"
"""


def cases(assay, work, environment, plugin, params):
    (work / "experiment.toml").write_text(EXPERIMENT.format(plugin=plugin, params=params))
    done = subprocess.run([assay, "run", "experiment.toml", "--quiet"], cwd=work, env=environment, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (work / "results" / "metrics" / "latest" / "cases.jsonl").read_text().splitlines()
    quiet, traced = (json.loads(line) for line in lines)
    assert "kernel_trace" not in quiet and traced["kernel_trace"]["steps"] > 0, traced
    return [{name: metric["value"] for name, metric in case["metrics"].items()} for case in (quiet, traced)]


def main():
    assay, work, gpu, cpu, comm, gloo = sys.argv[1], pathlib.Path(sys.argv[2]), *sys.argv[3:7]
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    environment = dict(os.environ, ASSAY_DEVICE_PATH=str(pathlib.Path(gpu).parent), PRETENDED_GPU_CPU=cpu,
                       ASSAY_COMM_PATH=str(pathlib.Path(comm).parent), GLOO_OF_PRETENDED_GPU=gloo)

    quiet, traced = cases(assay, work, environment, "ddp", SMALL_DECODER + 'strategy = "flat"\n')
    for name in ("communication_bytes", "collectives", "loss"):
        assert quiet[name] == traced[name] != 0, (name, quiet, traced)
    assert traced["communication_ms"] > 0, traced

    quiet, traced = cases(assay, work, environment, "all_reduce", "size_bytes = 4096\n")
    assert quiet.keys() == traced.keys() and quiet["message_bytes"] == traced["message_bytes"], (quiet, traced)
    assert traced["algorithm_bandwidth_gbs"] > 0, traced


main()
