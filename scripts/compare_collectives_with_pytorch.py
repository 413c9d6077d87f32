#!/usr/bin/env python3
"""Times collectives beside torch.distributed, in one interleaved run, and prints a Markdown table.

Both move the same bytes with the same number of ranks on this machine, Gloo over the loopback interface (--device cuda: NCCL),
with the same OMP_NUM_THREADS in each rank, warm-up and number of steps. Each round runs, one after the other: assay (new
processes each time), then the ranks of PyTorch, which stay alive between rounds and sleep meanwhile; the order turns from
round to round. The ranks meet once before the steps and then run them back to back; a step's time is that of its slowest
rank, from the call until the result is there. A round's time is the median of its steps, a cell the median over the rounds
(bus bandwidth from it), a ratio the median over rounds of PyTorch's time over assay's: above 1 assay is faster.

Needs: pip install torch (2.x), and a built assay.
  scripts/compare_collectives_with_pytorch.py --sizes 1 10 100 --ranks 2 4 --rounds 7 --steps 20
  scripts/compare_collectives_with_pytorch.py --device cuda --sizes 1 10 100 1024 --ranks 2 4 --steps 50
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import interleaving
from interleaving import ROOT, print_table

COLLECTIVES = ["all_reduce", "reduce_scatter", "all_gather", "broadcast"]
MIB = 1 << 20


def bus_factor(collective, ranks):
    """Bus bandwidth over algorithm bandwidth, as plugins/all_reduce/README.md has it."""
    share = (ranks - 1) / ranks
    return {"all_reduce": 2 * share, "reduce_scatter": share, "all_gather": share, "broadcast": 1.0}[collective]


def peer(case):
    """One rank of PyTorch: reads a number of steps from standard input, runs them, answers with their times."""
    import torch
    import torch.distributed as dist
    cuda = case["device"] == "cuda"
    if cuda:
        torch.cuda.set_device(case["rank"])
    else:
        torch.set_num_threads(case["threads"])
    dist.init_process_group("nccl" if cuda else "gloo", init_method="file://" + case["meeting"], rank=case["rank"],
                            world_size=case["ranks"])
    place = torch.device("cuda", case["rank"]) if cuda else torch.device("cpu")
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[case["dtype"]]
    count = int(case["size"] * MIB) // dtype.itemsize // case["ranks"] * case["ranks"]
    whole = torch.ones(count, dtype=dtype, device=place)
    part = torch.ones(count // case["ranks"], dtype=dtype, device=place)
    step = {"all_reduce": lambda: dist.all_reduce(whole),
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, whole),
            "all_gather": lambda: dist.all_gather_into_tensor(whole, part),
            "broadcast": lambda: dist.broadcast(whole, 0)}[case["collective"]]
    wait = torch.cuda.synchronize if cuda else lambda: None
    nccl = "NCCL " + ".".join(map(str, torch.cuda.nccl.version())) if cuda else "its own Gloo"
    print(json.dumps({"ready": f"torch {torch.__version__} with {nccl}"}), flush=True)
    for line in sys.stdin:
        warmup, steps = json.loads(line)
        times = []
        wait()
        dist.barrier()
        for _ in range(warmup + steps):
            begin = time.perf_counter()
            step()
            wait()
            times.append((time.perf_counter() - begin) * 1e3)
        print(json.dumps(times[warmup:]), flush=True)
    dist.destroy_process_group()


class Peers:
    """The ranks of one case in PyTorch."""

    def __init__(self, a, case, folder):
        self.ranks = []
        environment = dict(os.environ, OMP_NUM_THREADS=str(case["threads"]))
        if a.device == "cpu":
            environment["GLOO_SOCKET_IFNAME"] = a.interface
        for rank in range(case["ranks"]):
            told = json.dumps(dict(case, rank=rank, meeting=str(folder / "meeting")))
            self.ranks.append(subprocess.Popen([sys.executable, __file__, "--peer", told], stdin=subprocess.PIPE,
                                               stdout=subprocess.PIPE, text=True, env=environment))
        self.version = [self.read(process)["ready"] for process in self.ranks][0]

    @staticmethod
    def read(process):
        line = process.stdout.readline()
        if not line:
            sys.exit(f"a rank of PyTorch ended with code {process.wait()}; its message is above")
        return json.loads(line)

    def run(self, a):
        """The round's time in ms."""
        for process in self.ranks:
            print(json.dumps([a.warmup, a.steps]), file=process.stdin, flush=True)
        per_rank = [self.read(process) for process in self.ranks]
        return statistics.median(max(times) for times in zip(*per_rank))

    def close(self):
        for process in self.ranks:
            process.stdin.close()
        for process in self.ranks:
            process.wait()


def run_assay(a, case, folder):
    """The round's time in ms, and the record."""
    experiment = (
        'schema = 1\nname = "compare"\n[workload]\nplugin = "all_reduce"\n[workload.params]\n'
        f'collective = "{case["collective"]}"\ndtype = "{case["dtype"]}"\nsize_mb = {case["size"]:.6f}\n'
        f'in_place = {"true" if case["collective"] in ("all_reduce", "broadcast") else "false"}\n'
        f'[measure]\nwarmup = {a.warmup}\nsteps = {a.steps}\n[run]\ndevice = "{a.device}"\nranks = {case["ranks"]}\n'
        + (f'threads = {case["threads"]}\n' if a.device == "cpu" else ""))
    record = interleaving.run_assay(a.assay, experiment, folder)
    return statistics.median(record["phases"]["step"]["samples_ms"]), record


def compare(a, case):
    """One row of the table, as a dictionary, and what ran."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        peers = Peers(a, case, folder)
        ours, theirs, record = [], [], {}
        for turn in range(a.rounds):
            for side in ("assay", "torch") if turn % 2 == 0 else ("torch", "assay"):
                if side == "torch":
                    theirs.append(peers.run(a))
                elif not a.torch_only:
                    ms, record = run_assay(a, case, folder)
                    ours.append(ms)
        peers.close()
    rate = case["size"] * MIB * bus_factor(case["collective"], case["ranks"]) * 1e-6  # GB/s times ms
    row = {"collective": case["collective"], "ranks": str(case["ranks"]), "MiB": f"{case['size']:g}", "dtype": case["dtype"]}
    if ours:
        ratios = [t / o for o, t in zip(ours, theirs)]
        row["assay ms"] = f"{statistics.median(ours):.3f}"
    row["torch ms"] = f"{statistics.median(theirs):.3f}"
    if ours:
        row["assay bus GB/s"] = f"{rate / statistics.median(ours):.3f}"
    row["torch bus GB/s"] = f"{rate / statistics.median(theirs):.3f}"
    if ours:
        row["ratio"] = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    return row, peers.version, record


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--assay", default=str(ROOT / "build/release/bin/assay"))
    p.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    p.add_argument("--sizes", type=float, nargs="+", default=[1, 10, 100], help="MiB of the larger buffer")
    p.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    p.add_argument("--collectives", nargs="+", default=["all_reduce"], choices=COLLECTIVES)
    p.add_argument("--dtype", default="fp32", choices=["fp32", "bf16", "fp16"])
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--warmup", type=int, default=5)
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--threads", type=int, default=0, help="of a rank of either, on the CPU; 0: cores by ranks")
    p.add_argument("--interface", default="lo", help="that PyTorch's Gloo uses")
    p.add_argument("--torch-only", action="store_true", help="PyTorch's figures alone")
    p.add_argument("--json", metavar="FILE", help="appends a line per row")
    a = p.parse_args()
    rows, version, record = [], "", {}
    for collective in a.collectives:
        for ranks in a.ranks:
            for size in a.sizes:
                threads = a.threads or max(1, len(os.sched_getaffinity(0)) // ranks)
                case = {"device": a.device, "collective": collective, "ranks": ranks, "size": size, "dtype": a.dtype,
                        "threads": threads}
                row, version, record = compare(a, case)
                rows.append(row)
                print(f"done: {row}", file=sys.stderr, flush=True)
                if a.json:
                    with open(a.json, "a") as out:
                        print(json.dumps(row), file=out)
    print(f"{a.rounds} rounds of {a.steps} steps after {a.warmup}; {version}; {len(os.sched_getaffinity(0))} cores"
          + (f"; {record['device']['name']}" if record else "") + "\n")
    print_table(rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        peer(json.loads(sys.argv[2]))
    else:
        main()
