#!/usr/bin/env python3
"""ncu_test.py ASSAY WORK PRETENDED_GPU CPU_DEVICE ...: [profile] ncu, with a device and an ncu that pretend. Its table has the
format of NVIDIA's manual; no ncu wrote it."""
import json
import pathlib
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True

from pretended import SMALL_DECODER, run_experiment, with_pretended_gpu  # noqa: E402

EXPERIMENT = f"""
schema = 1
name = "counted"
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
ncu = true
"""

# It says that it is of $VERSION, and does as $HOW says beside running the program.
NCU = """#!/bin/sh
[ "$1" = --version ] && { echo "Version ${VERSION:-2025.3.1.0} (build 1) (public-release)"; exit 0; }
echo "pretended ncu: $*" >&2
[ "$HOW" = refuses ] && { echo "==ERROR== unrecognised option '--graph-profiling'. Use --help for further details."; exit 1; }
while [ "${1#--}" != "$1" ]; do
  case "$1" in --csv) shift ;; --log-file) table=$2; shift 2 ;; *) shift 2 ;; esac
done
(exec 3>&- 4</dev/null 5>&-; "$@")
[ "$HOW" = dies ] && kill -KILL $$
cat "$TABLE" > "$table"
[ "$HOW" = dies_late ] && kill -KILL $$
exit 0
"""

NAMES = ["ID", "Process ID", "Kernel Name", "dram__bytes.sum", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
         "gpu__time_duration.sum", "sm__cycles_elapsed.avg.per_second", "sm__ops_path_tensor_src_bf16_dst_fp32.sum.per_cycle_elapsed",
         "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", "sm__throughput.avg.pct_of_peak_sustained_elapsed",
         "sm__warps_active.avg.pct_of_peak_sustained_active", "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
         "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum"]
UNITS = ["", "", "", "byte", "%", "ns", "hz", "1/cycle", "%", "%", "%", "inst", "inst", "inst"]
ROWS = [["0", "7", "nvjet_gemm", "3000000", "40", "2000", "1000000000", "1000", "80", "85", "12", "0", "0", "0"],
        ["1", "7", "_ZN5assay4cuda8rms_normEPf", "6000000", "90", "3000", "1000000000", "0", "0", "20", "60", "50", "100", "50"],
        ["2", "7", "nvjet_gemm", "3000000", "40", "2000", "1000000000", "1000", "80", "85", "12", "0", "0", "0"]]
TABLE = "==PROF== Connected to process 7\n" + "".join(
    ",".join(f'"{field}"' for field in row) + "\n" for row in [NAMES, UNITS, *ROWS])
DENIED = "==PROF== Connected to process 7\n==ERROR== ERR_NVGPUCTRPERM - the user may not read counters.\n"

OF_CLOCKS = ["phases", "step_metrics", "sampling", "rates", "silent", "drift", "contention", "telemetry", "validity"]


class Test:
    def __init__(self):
        self.assay, self.work, self.gpu, self.cpu = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4]
        shutil.rmtree(self.work, ignore_errors=True)
        self.bin = self.work.absolute() / "bin"
        self.bin.mkdir(parents=True)
        (self.work / "experiment.toml").write_text(EXPERIMENT)

    def run(self, *more, table=TABLE, how="", version="2025.3.1.0"):
        """The record of the case, its log, what was said, and the exit code."""
        (self.work / "table.csv").write_text(table)
        environment = with_pretended_gpu(self.gpu, self.cpu, PATH=f"{self.bin}:/usr/bin:/bin", HOW=how, VERSION=version,
                                         TABLE=str(self.work.absolute() / "table.csv"))
        done = run_experiment(self.assay, self.work, environment, *more)
        self.folder = (self.work / "results" / "counted" / "latest").resolve()
        record = json.loads((self.folder / "cases.jsonl").read_text())
        log = self.folder / "logs" / "case-0001.log"
        return record, log.read_text() if log.exists() else "", done.stdout + done.stderr, done.returncode

    def refused(self, word, *more, **how):
        """Nothing has started, and the reason says what to do."""
        record, log, said, code = self.run(*more, **how)
        assert code == 1 and record["status"] == "unsupported" and word in record["reason"], record
        assert "pretended gpu: push" not in log and record["reason"].startswith("profile.ncu: "), log
        assert word in said, said

    def failed(self, word, **how):
        record, _, said, code = self.run(**how)
        assert code == 1 and record["status"] in ("failed", "crashed") and word in record["reason"], record
        assert not [key for key in OF_CLOCKS if key in record] and "ncu" not in record, record


def check_counts(test):
    record, log, said, code = test.run()
    assert code == 0 and record["status"] == "ok", record
    # One step after the measured ones is the range, and none of them.
    heard = [line.removeprefix("pretended gpu: ") for line in log.splitlines() if line.startswith("pretended gpu: ")]
    assert heard[-2:] == ["profiler start", "profiler stop"] and heard.count("profiler start") == 1, heard
    assert heard[0] == "push measure" and heard[-3] == "pop", heard
    assert "pretended ncu: --target-processes application-only --profile-from-start off" in log, log
    assert f"--log-file {test.folder}/ncu_case-0001.csv" in log and "--launch-count 1000 " in log, log

    assert not [key for key in OF_CLOCKS if key in record], record
    notes = [note for note in record["notes"] if not note.startswith("not optimised: ")]  # as the build is
    assert len(notes) == 1 and "no measurement" in notes[0], record["notes"]
    ncu = record["ncu"]
    assert (ncu["version"], ncu["launches"], ncu["at_limit"]) == ("2025.3.1.0", 3, False), ncu
    gemm, norm = ncu["kernels"]
    assert (gemm["name"], gemm["class"], gemm["count"], gemm["time_us"]) == ("nvjet_gemm", "matrix products", 2, 4.0), gemm
    assert (gemm["dram_bytes"], gemm["flops"], gemm["bound"]) == (6e6, 4e6, "tensor cores"), gemm
    assert (norm["name"], norm["flops"], norm["bound"]) == ("rms_norm", 300, "memory"), norm
    table = (test.folder / ncu["file"]).read_text()
    assert "| norms | `rms_norm` | 1 | 3.0 | 6.00 | 2,000 |" in table, table
    assert (test.folder / ncu["table"]).read_text() == TABLE
    assert "nvjet_gemm" in said and "GFLOP counted" in said, said
    done = subprocess.run([test.assay, "kernels", str(test.folder), "--format", "json"], capture_output=True, text=True)
    rows = json.loads(done.stdout)
    assert [(row["kernel"], row["launches"], row["gbytes_per_s"]) for row in rows] == [
        ("nvjet_gemm", 2, 1500), ("rms_norm", 1, 2000)], done.stdout + done.stderr
    done = subprocess.run([test.assay, "kernels", str(test.folder), "--by", "plan", "--format", "json"], capture_output=True,
                          text=True)
    kinds = {row["operations"]: row for row in json.loads(done.stdout)}
    assert list(kinds) == ["products", "attention", "other", "all"], done.stdout
    products = kinds["products"]
    assert products["launches"] == 2 and products["dram_mb"] == 6 and products["gflop"] == 0.004, products
    # By hand: 2 * tokens * (weights of a layer and the head) forward, and twice that backward.
    tokens, d, ff, vocabulary = 2 * 16, 32, 64, 50
    flops = 3 * 2 * tokens * (4 * d * d + 3 * d * ff + d * vocabulary)
    assert abs(products["planned.gflop"] - flops * 1e-9) < 1e-12, (products, flops)
    assert abs(products["gflop.ratio"] - 4e6 / flops) < 1e-6 and kinds["all"]["planned.mb"] > 0, products
    return test.folder


def check_kept_apart(test, counted):
    """A run that was counted does not measure a step, unlike one that was measured."""
    _, _, _, code = test.run("--set", "profile.ncu=false")
    assert code == 0
    done = subprocess.run([test.assay, "compare", str(counted), str(test.folder)], capture_output=True, text=True)
    said = done.stdout + done.stderr
    assert not [word for word in ("faster", "slower", "same") if word in said], said


def main():
    test = Test()
    test.refused("ncu is not on the PATH; install Nsight Compute")
    ncu = test.bin / "ncu"
    ncu.write_text(NCU)
    ncu.chmod(0o755)
    test.refused("is of version 2022.4.1.6, and assay needs 2023.1 or later", version="2022.4.1.6")
    test.refused("runs on the cpu device", "--set", 'run.device="cpu"')
    counted = check_counts(test)
    record, _, said, _ = test.run("--set", "profile.ncu_launches=3")
    assert record["ncu"]["at_limit"] and "ncu_launches" in said, said
    test.failed("NVreg_RestrictProfilingToAdminUsers=0", table=DENIED)
    test.failed("ncu_case-0001.csv cannot be used: it ends within a row", table=TABLE[:-40])
    test.failed("it was not written", how="dies")
    test.failed("may lack kernels", how="dies_late")
    test.failed("this ncu does not know an option", how="refuses")
    check_kept_apart(test, counted)


main()
