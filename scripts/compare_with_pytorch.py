#!/usr/bin/env python3
"""Times the decoder beside PyTorch, in one interleaved run, and prints a Markdown table.

Each round runs, one after the other: assay (a worker process of its own) and each mode of PyTorch: eager, compiled, graphs
(compiled with CUDA graphs); they take turns at being first. The models of PyTorch stay alive between rounds, so that compilation is paid once and
not timed; on a GPU whose memory does not hold them beside assay's, each runs all its rounds alone ("apart" in the table).
A cell is the median over rounds of the round's median step; a ratio is the median over rounds of assay's time over that of
PyTorch's fastest mode in the same round. MiB are those of the steps: on a GPU of what each has allocated, its tuning and
compiling left out; on the CPU of the process, of which assay's includes its set-up.

Needs: pip install torch (2.x; a C++ compiler for the compiled modes), and a built assay.
  scripts/compare_with_pytorch.py --contexts 128 512 --rounds 5 --steps 3
  scripts/compare_with_pytorch.py --device cuda --precisions bf16 --sizes small large --modes eager graphs --steps 10
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

import interleaving
from interleaving import ROOT, print_table
from pytorch_decoder import MODES, SIZES

PASSES = ["forward", "forward_backward", "train_step"]


class Peer(interleaving.Peer):
    """One model of PyTorch."""

    def __init__(self, a, mode, case):
        super().__init__([sys.executable, str(ROOT / "scripts/pytorch_decoder.py")], dict(case, mode=mode), case["threads"])


def run_assay(a, case, folder):
    values = {"size": case["size"], "pass": case["pass"], "precision": case["precision"], "execution": a.execution,
              "attention": case["attention"]}
    experiment = (
        'schema = 1\nname = "compare"\n[workload]\nplugin = "decoder"\n[workload.params]\n'
        + "".join(f'{key} = "{value}"\n' for key, value in values.items())
        + f'batch_size = {case["batch"]}\ncontext_length = {case["context"]}\n'
        + f'[measure]\nwarmup = {case["warmup"]}\nsteps = {a.steps}\n[run]\ndevice = "{a.device}"\n'
        + (f"threads = {a.threads}\n" if a.device == "cpu" else ""))
    record = interleaving.run_assay(a.assay, experiment, folder)
    memory = record["memory"]
    peak_mib = memory["process_peak_mib"] if a.device == "cpu" else memory["step_peak_mib"]["max"]
    return {"ms": statistics.median(record["phases"]["step"]["samples_ms"]), "peak_mib": peak_mib,
            "flops": record["work"]["flops"], "device": record["device"]}


CPU_RATE = """
import statistics, time, torch
torch.set_num_threads({threads})
x, y, z = torch.randn(2048, 2048), torch.randn(2048, 2048), torch.zeros(2048)
xd, yd, zd = x.to_mkldnn(), y.to_mkldnn(), z.to_mkldnn()
rates = []
for product in (lambda: x @ y, lambda: torch.nn.functional.linear(xd, yd, zd)):
    times = []
    for _ in range(12):
        begin = time.perf_counter()
        product()
        times.append(time.perf_counter() - begin)
    rates.append(2 * 2048**3 / statistics.median(times[2:]) * 1e-9)
print(max(rates))
"""
CUDA_RATE = """
import statistics, torch
torch.set_float32_matmul_precision("high" if "{precision}" == "tf32" else "highest")
dtype = torch.float32 if "{precision}" in ("fp32", "tf32") else torch.float16 if "{precision}" == "fp16" else torch.bfloat16
x, y = (torch.randn(8192, 8192, device="cuda").to(dtype) for _ in range(2))
times = []
for _ in range(12):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record(); x @ y; end.record(); end.synchronize()
    times.append(begin.elapsed_time(end) * 1e-3)
print(2 * 8192**3 / statistics.median(times[2:]) * 1e-9)
"""


def product_gflops(a, precision):
    """The machine's own rate for a large product: what 'of product' is measured by. On the CPU the better of the two
    libraries that PyTorch carries, MKL and oneDNN."""
    code = CPU_RATE.format(threads=a.threads) if a.device == "cpu" else CUDA_RATE.format(precision=precision)
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def interleaved(a, case, folder):
    peers = {m: Peer(a, m, case) for m in a.modes}
    ours = []
    for parties in interleaving.turns([None, *peers.values()], a.rounds):
        for peer in parties:
            if peer is None:
                ours.append(run_assay(a, case, folder))
            else:
                peer.run(a.steps)
    for peer in peers.values():
        peer.close()
    return ours, peers


def apart(a, case, folder):
    peers = {}
    for m in a.modes:
        peers[m] = Peer(a, m, case)
        for _ in range(a.rounds):
            peers[m].run(a.steps)
        peers[m].close()
    return [run_assay(a, case, folder) for _ in range(a.rounds)], peers


def compare(a, case):
    """One row of the table, as a dictionary."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        together = f'{case["size"]}/{case["batch"]}x{case["context"]}' not in a.apart
        ours, peers = (interleaved if together else apart)(a, case, folder)
    ratios = []
    for i, mine in enumerate(ours):
        best = min((p.ms[i] for p in peers.values() if p.fits), default=math.nan)
        ratios.append(mine["ms"] / best)
    ms = statistics.median(mine["ms"] for mine in ours)
    gflops = ours[0]["flops"] / ms * 1e-6
    best_peak = min((p.peak_mib for m, p in peers.items() if p.fits and m != "eager"),
                    default=min((p.peak_mib for p in peers.values() if p.fits), default=math.nan))
    peak = max(mine["peak_mib"] for mine in ours)
    row = {"size": case["size"], "batch x context": f'{case["batch"]} x {case["context"]}', "precision": case["precision"],
           "attention": case["attention"], "pass": case["pass"], "assay ms": f"{ms:.3f}"}
    for m, p in peers.items():
        row[f"{m} ms"] = f"{statistics.median(p.ms):.3f}" if p.fits else "oom"
    row["ratio to the fastest"] = f"{statistics.median(ratios):.3f} ({min(ratios):.2f} to {max(ratios):.2f})"
    row["GFLOP/s"], row["of product"] = f"{gflops:.0f}", f"{gflops / a.rate[case['precision']]:.2f}"
    row["assay MiB"] = f"{peak:.0f}"
    for m, p in peers.items():
        row[f"{m} MiB"] = f"{p.peak_mib:.0f}" if p.fits else "oom"
    row["MiB ratio to compiled"] = f"{peak / best_peak:.2f}"
    row["run"] = "interleaved" if together else "apart"
    versions = {p.version for p in peers.values() if p.version}
    return row, {"device": ours[0]["device"], "torch": ", ".join(versions),
                 "imported_mib": max(p.last.get("imported_mib", 0) for p in peers.values())}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--assay", default=str(ROOT / "build/release/bin/assay"))
    p.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    p.add_argument("--sizes", nargs="+", default=["small"], choices=SIZES)
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--contexts", type=int, nargs="+", default=[128, 512])
    p.add_argument("--passes", nargs="+", default=PASSES, choices=PASSES)
    p.add_argument("--precisions", nargs="+", default=["fp32"])
    p.add_argument("--attention", default="flash", choices=["flash", "naive"])
    p.add_argument("--modes", nargs="+", default=["eager", "compiled"], choices=MODES)
    p.add_argument("--execution", default="graph", choices=["graph", "eager"])
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--steps", type=int, default=3)
    p.add_argument("--threads", type=int, default=2, help="of both, on the CPU")
    p.add_argument("--apart", nargs="+", default=["2.7B/16x1024", "xl/16x1024"], metavar="SIZE/BATCHxCONTEXT",
                   help="cases too large to stand beside each other in the GPU's memory")
    p.add_argument("--json", metavar="FILE", help="appends a line per row")
    a = p.parse_args()
    a.rate = {precision: product_gflops(a, precision) for precision in a.precisions}
    rows, info = [], {}
    for size in a.sizes:
        for precision in a.precisions:
            for context in a.contexts:
                for step in a.passes:
                    case = {"device": a.device, "size": size, "batch": a.batch, "context": context, "pass": step,
                            "precision": precision, "attention": a.attention,
                            "threads": a.threads if a.device == "cpu" else 0,
                            "warmup": 5 if a.device == "cuda" else 2}
                    row, info = compare(a, case)
                    rows.append(row)
                    print(f"done: {size}, {precision}, context {context}, {step}: {row['assay ms']} ms, ratio "
                          f"{row['ratio to the fastest']}", file=sys.stderr, flush=True)
                    if a.json:
                        with open(a.json, "a") as out:
                            print(json.dumps(row), file=out)
    device = info["device"]
    print(f"{a.rounds} rounds of {a.steps} steps, execution {a.execution}; torch {info['torch']}; {device['name']}, "
          f"{device['libraries']}; rate of a large product "
          + ", ".join(f"{precision} {rate * 1e-3:.1f} TFLOP/s" for precision, rate in a.rate.items())
          + (f"; {a.threads} threads; PyTorch takes {info['imported_mib']:.0f} MiB before it has a model"
             if a.device == "cpu" else "") + "\n")
    print_table(rows)


if __name__ == "__main__":
    main()
