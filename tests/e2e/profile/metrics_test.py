#!/usr/bin/env python3
"""metrics_test.py ASSAY WORK PRETENDED_GPU CPU_DEVICE GLOO_AS_NCCL GLOO RELEASES_IN_FINISH: what workloads report of their
communication is the same with [profile] kernels and without; an older plugin is not run after its finish."""
import json
import pathlib
import shutil
import sys

sys.dont_write_bytecode = True

from pretended import SMALL_DECODER, run_experiment, with_pretended_gpu  # noqa: E402

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
warmup = 5
steps = 4
[run]
device = "cuda"
"""


def cases(assay, work, environment, plugin, params):
    (work / "experiment.toml").write_text(EXPERIMENT.format(plugin=plugin, params=params))
    done = run_experiment(assay, work, environment, "--quiet")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (work / "results" / "metrics" / "latest" / "cases.jsonl").read_text().splitlines()
    quiet, traced = (json.loads(line) for line in lines)
    assert "kernel_trace" not in quiet and traced["kernel_trace"]["steps"] > 0, traced
    return [{name: metric["value"] for name, metric in case["metrics"].items()} for case in (quiet, traced)]


def main():
    assay, work, gpu, cpu, comm, gloo = sys.argv[1], pathlib.Path(sys.argv[2]), *sys.argv[3:7]
    older_plugin = sys.argv[7]
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    environment = with_pretended_gpu(gpu, cpu, ASSAY_COMM_PATH=str(pathlib.Path(comm).parent), GLOO_OF_PRETENDED_GPU=gloo)

    quiet, traced = cases(assay, work, environment, "ddp", SMALL_DECODER + 'strategy = "flat"\n')
    for name in ("communication_bytes", "collectives", "loss"):
        assert quiet[name] == traced[name] != 0, (name, quiet, traced)
    assert traced["communication_ms"] > 0, traced

    quiet, traced = cases(assay, work, environment, "all_reduce", "size_bytes = 4096\n")
    assert quiet.keys() == traced.keys() and quiet["message_bytes"] == traced["message_bytes"], (quiet, traced)
    assert traced["algorithm_bandwidth_gbs"] > 0, traced

    quiet, traced = cases(assay, work, environment, older_plugin, "")
    assert quiet["blocks_left"] == traced["blocks_left"] == 0, (quiet, traced)


main()
