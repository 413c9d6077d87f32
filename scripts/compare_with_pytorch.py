#!/usr/bin/env python3
"""Times the decoder on the CPU beside PyTorch, in one interleaved run, and prints a Markdown table.

Each round runs, one after the other: assay (a worker process of its own), PyTorch eager, PyTorch compiled. The models
of PyTorch stay alive between rounds, so that compilation is paid once and not timed. A cell is the median over rounds of
the round's median step; a ratio is the median over rounds of assay's time over PyTorch's faster mode in the same round.

Needs: pip install torch (2.x; a C++ compiler for the compiled mode), and a built assay.
  scripts/compare_with_pytorch.py --contexts 128 512 --rounds 5 --steps 3
"""
import argparse
import json
import math
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIZES = {"tiny": (128, 512, 2, 4), "small": (768, 3072, 12, 12), "medium": (1024, 4096, 24, 16)}
VOCAB = 10_000


# ---- the PyTorch side: a child process that keeps one model and answers one line of JSON per request ------------------


def build_model(torch, size, context):
    nn, F = torch.nn, torch.nn.functional
    d, ff, layers, heads = SIZES[size]

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(d))

        def forward(self, x):
            return F.rms_norm(x, (d,), self.weight, 1e-5)

    def rotate(x, cos, sin):
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = Norm(), Norm()
            self.q, self.k, self.v, self.o = (nn.Linear(d, d, bias=False) for _ in range(4))
            self.w1, self.w3 = nn.Linear(d, ff, bias=False), nn.Linear(d, ff, bias=False)
            self.w2 = nn.Linear(ff, d, bias=False)

        def forward(self, x, cos, sin):
            b, t, _ = x.shape
            y = self.norm1(x)
            q, k, v = (m(y).view(b, t, heads, -1).transpose(1, 2) for m in (self.q, self.k, self.v))
            a = F.scaled_dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v, is_causal=True)
            x = x + self.o(a.transpose(1, 2).reshape(b, t, d))
            y = self.norm2(x)
            return x + self.w2(F.silu(self.w1(y)) * self.w3(y))

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(VOCAB, d)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm, self.head = Norm(), nn.Linear(d, VOCAB, bias=False)
            angle = torch.outer(torch.arange(context), 10000.0 ** (-torch.arange(0, d // heads, 2) / (d // heads)))
            self.register_buffer("cos", angle.cos())
            self.register_buffer("sin", angle.sin())

        def forward(self, ids):
            x = self.embedding(ids)
            for block in self.blocks:
                x = block(x, self.cos, self.sin)
            return self.head(self.norm(x))

    return Decoder()


def torch_child(a):
    import time

    import torch

    torch.set_num_threads(a.threads)
    imported_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    torch.manual_seed(0)
    model = build_model(torch, a.size, a.context)
    run = torch.compile(model) if a.mode == "compiled" else model
    ids = torch.randint(0, VOCAB, (a.batch, a.context))
    labels = torch.randint(0, VOCAB, (a.batch, a.context))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True) if a.step == "train_step" else None

    def step():
        if a.step == "forward":
            with torch.no_grad():
                run(ids)
            return
        model.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(run(ids).flatten(0, 1), labels.flatten()).backward()
        if optimizer:
            optimizer.step()

    for _ in range(3):
        step()
    print(json.dumps({"ready": torch.__version__}), flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            begin = time.perf_counter()
            step()
            times.append((time.perf_counter() - begin) * 1e3)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"ms": times, "peak_mib": peak, "imported_mib": imported_mib}), flush=True)


class TorchPeer:
    def __init__(self, mode, a, context, step):
        command = [sys.executable, __file__, "--child", "--mode", mode, "--size", a.size, "--batch", str(a.batch),
                   "--context", str(context), "--step", step, "--threads", str(a.threads)]
        environment = dict(os.environ, OMP_NUM_THREADS=str(a.threads))
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.version = self.read()["ready"]

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"the PyTorch process ended with code {self.process.wait()}; its message is above")
        return json.loads(line)

    def run(self, steps):
        print(steps, file=self.process.stdin, flush=True)
        return self.read()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# ---- the assay side ----------------------------------------------------------------------------------------------------


def run_assay(a, context, step, execution, folder):
    experiment = folder / "compare.toml"
    experiment.write_text(f"""schema = 1
name = "compare"
[workload]
plugin = "decoder"
[workload.params]
size = "{a.size}"
batch_size = {a.batch}
context_length = {context}
pass = "{step}"
execution = "{execution}"
[measure]
warmup = 2
steps = {a.steps}
[run]
device = "cpu"
threads = {a.threads}
""")
    subprocess.run([a.assay, "run", str(experiment), "--output", str(folder), "--quiet"], check=True)
    lines = (folder / "compare" / "latest" / "cases.jsonl").read_text().splitlines()
    record = json.loads(lines[-1])
    if record["status"] != "ok":
        sys.exit(f"assay: {record['status']}: {record['reason']}")
    return {"ms": record["phases"]["step"]["samples_ms"], "peak_mib": record["memory"]["process_peak_mib"],
            "flops": record["work"]["flops"], "device": record["device"]}


SGEMM = """
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


def sgemm_gflops(a):
    """The machine's own rate for a large fp32 product: the better of the two libraries that PyTorch carries, MKL and
    oneDNN. What 'of sgemm' is measured by."""
    code = SGEMM.format(threads=a.threads)
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--assay", default=str(ROOT / "build/release/bin/assay"))
    p.add_argument("--size", default="small", choices=SIZES)
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--contexts", type=int, nargs="+", default=[128, 512])
    p.add_argument("--passes", nargs="+", default=["forward", "forward_backward", "train_step"])
    p.add_argument("--modes", nargs="+", default=["eager", "compiled"])
    p.add_argument("--execution", default="graph")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--steps", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    for hidden in ("--mode", "--step"):
        p.add_argument(hidden, help=argparse.SUPPRESS)
    p.add_argument("--context", type=int, help=argparse.SUPPRESS)
    p.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.child:
        return torch_child(a)

    heading = ["context", "pass", "assay ms"] + [f"{m} ms" for m in a.modes] + [
        "ratio to the faster", "GFLOP/s", "of sgemm", "assay MiB"] + [f"{m} MiB" for m in a.modes]
    rows, info = [], {}
    for context in a.contexts:
        for step in a.passes:
            peers = {m: TorchPeer(m, a, context, step) for m in a.modes}
            ours, theirs, ratios, gemm = [], {m: [] for m in a.modes}, [], []
            memory = {m: 0.0 for m in a.modes}
            ours_memory, flops = 0.0, 0
            with tempfile.TemporaryDirectory() as folder:
                for _ in range(a.rounds):
                    mine = run_assay(a, context, step, a.execution, pathlib.Path(folder))
                    ours.append(statistics.median(mine["ms"]))
                    ours_memory, flops = max(ours_memory, mine["peak_mib"]), mine["flops"]
                    info["device"] = mine["device"]
                    best = math.inf
                    for m, peer in peers.items():
                        result = peer.run(a.steps)
                        theirs[m].append(statistics.median(result["ms"]))
                        best = min(best, theirs[m][-1])
                        memory[m] = max(memory[m], result["peak_mib"])
                        info["imported_mib"] = result["imported_mib"]
                    ratios.append(ours[-1] / best)
                    gemm.append(sgemm_gflops(a))
            info["torch"] = next(iter(peers.values())).version
            for peer in peers.values():
                peer.close()
            ms = statistics.median(ours)
            rate = flops / ms * 1e-6
            rows.append([str(context), step, f"{ms:.1f}"] + [f"{statistics.median(theirs[m]):.1f}" for m in a.modes] +
                        [f"{statistics.median(ratios):.3f} ({min(ratios):.2f} to {max(ratios):.2f})", f"{rate:.0f}",
                         f"{rate / statistics.median(gemm):.2f}", f"{ours_memory:.0f}"] + [f"{memory[m]:.0f}" for m in a.modes])
            print(f"done: context {context}, {step}", file=sys.stderr, flush=True)
    device = info["device"]
    print(f"decoder {a.size}, batch {a.batch}, fp32, {a.threads} threads, execution {a.execution}; {a.rounds} rounds of "
          f"{a.steps} steps; torch {info['torch']}, {device['name']}, {device['libraries']}; PyTorch takes "
          f"{info['imported_mib']:.0f} MiB before it has a model\n")
    print("| " + " | ".join(heading) + " |\n|" + "---|" * len(heading))
    for row in rows:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
