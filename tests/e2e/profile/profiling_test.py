#!/usr/bin/env python3
"""profiling_test.py ASSAY WORK PRETENDED_GPU CPU_DEVICE FAILING_PLUGIN LEAVING_PLUGIN: [profile] kernels and nsys, with a device and an
nsys that pretend. The pretended nsys keeps the worker's descriptors to itself."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True

from pretended import SMALL_DECODER, run_experiment, with_pretended_gpu  # noqa: E402

EXPERIMENT = f"""
schema = 1
name = "profiling"
[workload]
plugin = "decoder"
[workload.params]
{SMALL_DECODER}
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


def run(assay, work, gpu, cpu, path, *more):
    done = run_experiment(assay, work, with_pretended_gpu(gpu, cpu, PATH=path), *more)
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


def check_order(log, with_ranges=True):
    """The ranges and the external profiler's part hold the measured steps with their phases, and neither the warm-up
    nor the traced steps; tracing comes after."""
    said = [line.removeprefix("pretended gpu: ") for line in log.splitlines() if line.startswith("pretended gpu: ")]
    step = ["push step", "push forward", "pop", "push backward", "pop", "pop"]
    measured = ["profiler start", "push measure", *step, *step, "pop", "profiler stop"]
    assert said == (measured if with_ranges else []) + ["trace begin", "trace end"], said


def check_kernel_tables(assay, folder):
    """`assay kernels` prints what the record has, a row for the step and each phase."""
    done = subprocess.run([assay, "kernels", str(folder), "--format", "json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(done.stdout)
    assert rows[0]["phase"] == "step" and rows[0]["launches"] == 1 and rows[0]["products.percent"] == 100.0, rows
    assert rows[0]["longest.kernel"] == "pretended_gemm", rows


def check_step_peak(record):
    """A step of the decoder takes no memory: each one's peak is what the case held."""
    peak = record["memory"]["step_peak_mib"]
    assert peak["mean"] == peak["min"] == peak["max"], peak
    assert peak["max"] == record["memory"]["moments"][-1]["current_total_mib"] > 0, record["memory"]


def check_failed_step(assay, work, gpu, cpu, plugin):
    """A step that fails leaves no range open to the case after it: with --in-process both are of one thread."""
    (work / "experiment.toml").write_text(f"""
schema = 1
name = "profiling"
[workload]
plugin = "{plugin}"
[measure]
warmup = 0
steps = 1
[run]
device = "cuda"
""")
    done = run_experiment(assay, work, with_pretended_gpu(gpu, cpu), "--in-process")
    said = [line.removeprefix("pretended gpu: ") for line in (done.stdout + done.stderr).splitlines()
            if line.startswith("pretended gpu: ")]
    assert done.returncode == 1 and said[:3] == ["profiler start", "push measure", "push step"], done.stdout + done.stderr
    assert sum(word.startswith("push") for word in said) == said.count("pop"), said


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def descendants_of(pid):
    found, children = [], {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            children.setdefault(parent, []).append(int(entry.name))
        except OSError:
            pass  # gone meanwhile
    waiting = [pid]
    while waiting:
        found += children.get(waiting[-1], [])
        waiting += children.get(waiting.pop(), [])
    return found


def wait_until(what, reached):
    deadline = time.monotonic() + 60
    while not (answer := reached()):
        assert time.monotonic() < deadline, what
        time.sleep(0.01)
    return answer


def check_killed_host(assay, work, gpu, cpu, path, plugin):
    """Nothing is left of a host that is killed: not nsys, not the worker, its child, nor what the workload has left."""
    (work / "experiment.toml").write_text(f"""
schema = 1
name = "killed"
[workload]
plugin = "{plugin}"
[workload.params]
step_ms = 60000
[run]
device = "cuda"
[profile]
nsys = true
""")
    environment = with_pretended_gpu(gpu, cpu, PATH=path)
    with subprocess.Popen([assay, "run", "experiment.toml"], cwd=work, env=environment, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as host:
        def left_behind():
            logs = list(work.glob("results/killed/*/logs/case-0001.log"))
            return logs and re.search(r"left behind: (\d+)\n", logs[0].read_text())
        try:
            left = int(wait_until("the workload leaves a process", left_behind)[1])
            there = descendants_of(host.pid)
            assert left in there and len(there) >= 4, there  # the keeper, nsys (a shell), the worker, and that
        finally:
            host.kill()
    for pid in there:
        wait_until(f"process {pid} of {there} outlived the host", lambda pid=pid: not is_alive(pid))


def main():
    assay, work, gpu, cpu = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4]
    shutil.rmtree(work, ignore_errors=True)
    (work / "bin").mkdir(parents=True)
    (work / "experiment.toml").write_text(EXPERIMENT)

    folder, record, log, said = run(assay, work, gpu, cpu, "/usr/bin:/bin")
    check_kernels(folder, record, said)
    check_order(log)
    check_kernel_tables(assay, folder)
    check_step_peak(record)
    assert "nsys is not on the PATH" in said and "nsys profile --trace=cuda,nvtx,osrt,cublas,cudnn " in said, said
    assert "pretended nsys" not in log

    nsys = work / "bin" / "nsys"
    nsys.write_text(NSYS)
    nsys.chmod(0o755)
    folder, record, log, said = run(assay, work, gpu, cpu, f"{work.absolute() / 'bin'}:/usr/bin:/bin")
    assert record["status"] == "ok" and record["phases"]["step"]["n"] == 2
    assert "pretended nsys: profile --trace=cuda,nvtx,osrt,cublas,cudnn " in log and "nsys_case-0001" in log, log
    check_order(log)
    assert "not on the PATH" not in said, said

    path = f"{work.absolute() / 'bin'}:/usr/bin:/bin"
    _, _, log, _ = run(assay, work, gpu, cpu, path, "--set", 'profile.nsys_trace=["cuda", "mpi"]')
    assert "pretended nsys: profile --trace=cuda,mpi " in log, log

    _, _, log, _ = run(assay, work, gpu, cpu, path, "--set", "profile.nsys=false", "--set", "profile.nvtx=false")
    check_order(log, with_ranges=False)
    check_failed_step(assay, work, gpu, cpu, sys.argv[5])
    check_killed_host(assay, work, gpu, cpu, path, sys.argv[6])


main()
