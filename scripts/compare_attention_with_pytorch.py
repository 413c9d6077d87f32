#!/usr/bin/env python3
"""Times attention beside PyTorch, in one interleaved run, and prints a Markdown table.

Three pairs on the same shapes: assay's naive eager beside PyTorch's operations one by one, assay's naive graph beside
the same under torch.compile, assay's flash beside scaled_dot_product_attention. A step is a forward that keeps what the
backward needs, and the backward; each has its own time, on the device's timeline (CUDA events; on the CPU the clock).
Each round runs, one after the other: assay (a worker per pair), then PyTorch's three modes in a process that stays
alive between rounds, so that compilation is paid once and not timed; the order turns from round to round. A round's
time is the median of its steps, a cell the median over the rounds, a ratio the median over rounds of PyTorch's time
over assay's: above 1 assay is faster. "oom" and "unsupported" stand for what could not run.

Needs: pip install torch (2.x; a C++ compiler for torch.compile), and a built assay.
  scripts/compare_attention_with_pytorch.py --seqs 256 1024 --dims 64 --rounds 5 --steps 10
  scripts/compare_attention_with_pytorch.py --device cuda --dtypes bf16 --seqs 1024 4096 16384 --dims 64 128
"""
import argparse
import contextlib
import itertools
import json
import math
import os
import pathlib
import statistics
import sys
import tempfile
import time

from interleaving import ROOT, PeerProcess, print_table, run_cases

# assay's impl and execution, PyTorch's mode.
PAIRS = {"eager": ("naive", "eager", "eager"), "graph": ("naive", "graph", "compiled"),
         "flash": ("flash", "graph", "sdpa")}
PHASES = ["forward", "backward", "step"]


class TorchAttention:
    """One case in PyTorch, in each of the modes."""

    def __init__(self, case):
        import torch
        import torch.nn.functional as F
        self.torch, self.case = torch, case
        self.cuda = case["device"] == "cuda"
        if not self.cuda:
            torch.set_num_threads(case["threads"])
        torch.set_float32_matmul_precision("high" if case["dtype"] == "tf32" else "highest")
        dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(case["dtype"], torch.float32)
        shape = (case["batch"], case["heads"], case["seq"], case["dim"])
        self.q, self.k, self.v = (torch.randn(shape, device=case["device"], dtype=dtype, requires_grad=True)
                                  for _ in range(3))
        self.dout = torch.randn(shape, device=case["device"], dtype=dtype)
        mask = None
        if case["causal"]:  # added, as assay's eager does
            mask = torch.full(shape[2:3] * 2, -math.inf, device=case["device"], dtype=dtype).triu(1)

        def naive(q, k, v):
            scores = q @ k.transpose(-1, -2) / math.sqrt(case["dim"])
            if mask is not None:
                scores = scores + mask
            return torch.softmax(scores, -1) @ v

        self.modes = {"eager": naive, "compiled": torch.compile(naive, dynamic=False),
                      "sdpa": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=case["causal"])}

    def version(self):
        text = f"torch {self.torch.__version__}"
        return text + f", cuDNN {self.torch.backends.cudnn.version()}" if self.cuda else text

    def backend(self):
        """What scaled_dot_product_attention may choose from."""
        from torch.nn.attention import SDPBackend, sdpa_kernel
        if self.case["sdpa"] == "auto":
            return contextlib.nullcontext()
        return sdpa_kernel({"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION,
                            "efficient": SDPBackend.EFFICIENT_ATTENTION}[self.case["sdpa"]])

    def moment(self):
        if not self.cuda:
            return time.perf_counter()
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def step_ms(self, mode):
        begin = self.moment()
        out = self.modes[mode](self.q, self.k, self.v)
        middle = self.moment()
        self.torch.autograd.grad(out, (self.q, self.k, self.v), self.dout)
        end = self.moment()
        if not self.cuda:
            return {"forward": 1e3 * (middle - begin), "backward": 1e3 * (end - middle), "step": 1e3 * (end - begin)}
        end.synchronize()
        return {"forward": begin.elapsed_time(middle), "backward": middle.elapsed_time(end),
                "step": begin.elapsed_time(end)}

    def run(self, mode, warmup, steps):
        """The median of each phase, or why the mode cannot run."""
        try:
            if self.cuda:
                self.torch.cuda.empty_cache()
            with self.backend():
                times = [self.step_ms(mode) for _ in range(warmup + steps)][warmup:]
            return {phase: statistics.median(t[phase] for t in times) for phase in PHASES}
        except self.torch.cuda.OutOfMemoryError:
            return "oom"
        except RuntimeError as error:
            if "No available kernel" in str(error):
                return "unsupported"
            raise
        finally:
            if self.cuda:
                self.torch.cuda.empty_cache()


def peer(case):
    attention = TorchAttention(case)
    print(json.dumps(attention.version()), flush=True)
    for line in sys.stdin:
        print(json.dumps(attention.run(*json.loads(line))), flush=True)


class Peer(PeerProcess):
    """The process of a case in PyTorch."""

    def __init__(self, case):
        super().__init__([sys.executable, __file__, "--peer", json.dumps(case)],
                         case["threads"] if case["device"] == "cpu" else 0)
        self.version = self.read()

    def run(self, mode, warmup, steps):
        self.tell([mode, warmup, steps])
        return self.read()


def run_assay(a, case, folder):
    """Each pair's median of each phase, or its status where that is not ok; and a record."""
    impls, executions = zip(*(PAIRS[pair][:2] for pair in a.pairs))
    experiment = (
        'schema = 1\nname = "compare"\n[workload]\nplugin = "attention"\n[workload.params]\n'
        f'batch_size = {case["batch"]}\nheads = {case["heads"]}\nseq = {case["seq"]}\nhead_dim = {case["dim"]}\n'
        f'causal = {json.dumps(case["causal"])}\ndtype = "{case["dtype"]}"\npass = "both"\n'
        f"[[sweep.zip]]\nimpl = {json.dumps(impls)}\nexecution = {json.dumps(executions)}\n"
        f"[measure]\nwarmup = {a.warmup}\nsteps = {a.steps}\n"
        f'[run]\ndevice = "{a.device}"\nallow = ["oom", "unsupported"]\n'
        + (f"threads = {a.threads}\n" if a.device == "cpu" else ""))
    records = run_cases(a.assay, experiment, folder, ("ok", "oom", "unsupported"))
    results = {}
    for pair, record in zip(a.pairs, records, strict=True):
        if record["status"] == "ok":
            results[pair] = {phase: statistics.median(record["phases"][phase]["samples_ms"]) for phase in PHASES}
        else:
            results[pair] = record["status"]
    return results, records[-1]


def cell(rounds, phase):
    reasons = [r for r in rounds if isinstance(r, str)]
    return reasons[0] if reasons else f"{statistics.median(r[phase] for r in rounds):.4g}"


def ratio_cell(ours, theirs, phase):
    if any(isinstance(r, str) for r in ours + theirs):
        return "-"
    ratios = [t[phase] / o[phase] for o, t in zip(ours, theirs)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def compare(a, case):
    """The rows of a case, one for each phase, and what ran."""
    ours, theirs = {pair: [] for pair in a.pairs}, {pair: [] for pair in a.pairs}
    record = {}
    with tempfile.TemporaryDirectory() as name:
        other = Peer(case)
        for turn in range(a.rounds):
            for side in ("assay", "torch") if turn % 2 == 0 else ("torch", "assay"):
                if side == "assay":
                    results, record = run_assay(a, case, pathlib.Path(name))
                for pair in a.pairs:
                    if side == "assay":
                        ours[pair].append(results[pair])
                    else:
                        theirs[pair].append(other.run(PAIRS[pair][2], a.warmup, a.steps))
        other.close()
    rows = []
    for phase in PHASES:
        row = {"dtype": case["dtype"], "batch x heads": f'{case["batch"]} x {case["heads"]}', "seq": str(case["seq"]),
               "head dim": str(case["dim"]), "phase": "end to end" if phase == "step" else phase}
        for pair in a.pairs:
            impl, execution, mode = PAIRS[pair]
            row[f"{impl} {execution} ms" if impl == "naive" else "flash ms"] = cell(ours[pair], phase)
            row[f"torch {mode} ms"] = cell(theirs[pair], phase)
            row[f"{mode} / ours"] = ratio_cell(ours[pair], theirs[pair], phase)
        rows.append(row)
    return rows, other.version, record


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--assay", default=str(ROOT / "build/release/bin/assay"))
    p.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--heads", type=int, default=1)
    p.add_argument("--seqs", type=int, nargs="+", default=[256, 1024])
    p.add_argument("--dims", type=int, nargs="+", default=[64])
    p.add_argument("--dtypes", nargs="+", default=["fp32"], choices=["fp32", "tf32", "bf16", "fp16"])
    p.add_argument("--full", action="store_true", help="without the causal mask")
    p.add_argument("--pairs", nargs="+", default=list(PAIRS), choices=list(PAIRS))
    p.add_argument("--sdpa", default="auto", choices=["auto", "cudnn", "flash", "efficient"],
                   help="what PyTorch's scaled_dot_product_attention runs on CUDA")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--warmup", type=int, default=5)
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of both, on the CPU")
    p.add_argument("--json", metavar="FILE", help="appends a line per row")
    a = p.parse_args()
    rows, version, record = [], "", {}
    for dtype, dim, seq in itertools.product(a.dtypes, a.dims, a.seqs):
        case = {"device": a.device, "batch": a.batch, "heads": a.heads, "seq": seq, "dim": dim, "dtype": dtype,
                "causal": not a.full, "sdpa": a.sdpa, "threads": a.threads}
        more, version, record = compare(a, case)
        rows += more
        print(f"done: {more[-1]}", file=sys.stderr, flush=True)
        if a.json:
            with open(a.json, "a") as out:
                for row in more:
                    print(json.dumps(row), file=out)
    device = record["device"]
    print(f"{a.rounds} rounds of {a.steps} steps after {a.warmup}; {version}, sdpa {a.sdpa}; {device['name']}, "
          f"{device['libraries']}" + (f"; {a.threads} threads" if a.device == "cpu" else "") + "\n")
    print_table(rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        peer(json.loads(sys.argv[2]))
    else:
        main()
