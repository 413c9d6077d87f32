#!/usr/bin/env python3
"""Times a training step of the encoder-decoder beside PyTorch's nn.Transformer, in one interleaved run, and prints a
Markdown table.

Both train the same shapes with dropout 0.1, AdamW and the same mixed precision (fp16 with loss scaling, bf16, off). Each
round runs, one after the other: assay (a new process) and each mode of PyTorch, whose models stay alive between rounds:
eager, compiled (torch.compile), best-compiled (mode max-autotune-no-cudagraphs); they take turns at being first. A round's time is the median of its steps on
the host's clock with the device idle at the end of each; a cell is the median over the rounds; a ratio is the median over
rounds of PyTorch's fastest mode over assay: above 1 assay is faster.

Needs: pip install torch (2.x), and a built assay.
  scripts/compare_encoder_decoder_with_pytorch.py --batch 16 --rounds 5 --steps 3
  scripts/compare_encoder_decoder_with_pytorch.py --device cuda --presets 3.5M 220M --amps fp16 --modes eager compiled
"""
import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import time

from interleaving import ROOT, PeakMemory, Peer, print_table, ratio_text, run_assay, turns

# d_model, heads, layers, d_ff, sequence, batch: as plugins/encoder_decoder/README.md has them
PRESETS = {"3.5M": (128, 4, 3, 512, 256, 128), "60M": (512, 8, 6, 2048, 256, 128), "220M": (768, 12, 12, 3072, 256, 64),
           "2.9B": (2048, 32, 24, 8192, 512, 8)}
MODES = {"eager": None, "compiled": "default", "best-compiled": "max-autotune-no-cudagraphs"}
VOCABULARY = 8192


def peer():
    """One model of PyTorch, told by a line of JSON."""
    import torch
    from torch import nn
    import torch.nn.functional as F
    case = json.loads(sys.stdin.readline())
    d_model, heads, layers, d_ff, sequence, _ = PRESETS[case["preset"]]
    cuda = case["device"] == "cuda"
    if not cuda:
        torch.set_num_threads(case["threads"])

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.pos = nn.Embedding(VOCABULARY, d_model), nn.Embedding(sequence, d_model)
            self.core = nn.Transformer(d_model, heads, layers, layers, d_ff, 0.1, batch_first=True)
            self.out = nn.Linear(d_model, VOCABULARY)

        def embed(self, tokens):
            return self.emb(tokens) + self.pos(torch.arange(tokens.shape[1], device=tokens.device))

        def forward(self, source, target):
            mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1], device=target.device)
            return self.out(self.core(self.embed(source), self.embed(target), tgt_mask=mask, tgt_is_causal=True))

    try:
        model = Model().to(case["device"])
        run = torch.compile(model, mode=MODES[case["mode"]]) if MODES[case["mode"]] else model
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        scaler = torch.amp.GradScaler(case["device"], enabled=case["amp"] == "fp16")
        dtype = torch.float16 if case["amp"] == "fp16" else torch.bfloat16
        source, target = (torch.randint(0, VOCABULARY, (case["batch"], sequence), device=case["device"]) for _ in range(2))

        def step():
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(case["device"], dtype=dtype, enabled=case["amp"] != "off"):
                loss = F.cross_entropy(run(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten())
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

        wait = torch.cuda.synchronize if cuda else lambda: None
        for _ in range(case["warmup"]):
            step()
        print(json.dumps({"ready": torch.__version__}), flush=True)
        for line in sys.stdin:
            times = []
            for number in range(2 + int(line)):  # two to warm up what the other processes have cooled down
                wait()
                if number == 2:
                    peak = PeakMemory(torch, cuda)
                begin = time.perf_counter()
                step()
                wait()
                if number >= 2:
                    times.append((time.perf_counter() - begin) * 1e3)
            print(json.dumps({"ms": times, "peak_mib": peak.mib()}), flush=True)
    except torch.cuda.OutOfMemoryError:
        print(json.dumps({"oom": 1}), flush=True)


def experiment(a, case):
    return (f'schema = 1\nname = "compare"\n[workload]\nplugin = "encoder_decoder"\n[workload.params]\n'
            f'preset = "{case["preset"]}"\nbatch_size = {case["batch"]}\namp = "{case["amp"]}"\nunit = "step"\n'
            f'execution = "{a.execution}"\n[measure]\nwarmup = {case["warmup"]}\nsteps = {a.steps}\ntimeout = "1h"\n'
            f'[run]\nranks = 1\ndevice = "{a.device}"\n' + (f"threads = {a.threads}\n" if a.device == "cpu" else ""))


def compare(a, case):
    """One row of the table, as a dictionary, and what ran."""
    with tempfile.TemporaryDirectory() as name:
        peers = {mode: Peer([sys.executable, __file__, "--peer"], dict(case, mode=mode), case["threads"]) for mode in a.modes}
        records = []
        for parties in turns([None, *peers.values()], a.rounds):
            for each in parties:
                if each is None:
                    records.append(run_assay(a.assay, experiment(a, case), pathlib.Path(name)))
                else:
                    each.run(a.steps)
        for each in peers.values():
            each.close()
    ours = [statistics.median(record["phases"]["step"]["samples_ms"]) for record in records]
    fitting = [each for each in peers.values() if each.fits]
    ms = statistics.median(ours)
    row = {"preset": case["preset"], "batch": str(case["batch"]), "amp": case["amp"], "assay ms": f"{ms:.3f}"}
    for mode, each in peers.items():
        row[f"{mode} ms"] = f"{statistics.median(each.ms):.3f}" if each.fits else "oom"
    row["ratio to the fastest"] = ratio_text([min(p.ms[i] for p in fitting) / mine for i, mine in enumerate(ours)]) if fitting else "-"
    if "eager" in peers and peers["eager"].fits:
        row["ratio to eager"] = ratio_text([peers["eager"].ms[i] / mine for i, mine in enumerate(ours)])
    row["assay samples/s"] = f"{case['batch'] / ms * 1e3:.0f}"
    if a.device == "cuda":
        row["assay MiB"] = f"{max(record['memory']['step_peak_mib']['max'] for record in records):.0f}"
        for mode, each in peers.items():
            row[f"{mode} MiB"] = f"{each.peak_mib:.0f}" if each.fits else "oom"
    return row, next((each.version for each in fitting), ""), records[0]["device"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--assay", default=str(ROOT / "build/release/bin/assay"))
    p.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    p.add_argument("--presets", nargs="+", default=["3.5M"], choices=PRESETS)
    p.add_argument("--batch", type=int, default=0, help="0: each preset's own")
    p.add_argument("--amps", nargs="+", default=[], choices=["fp16", "bf16", "off"], help="default: fp16 on cuda, off on the cpu")
    p.add_argument("--modes", nargs="+", default=["eager", "compiled"], choices=MODES)
    p.add_argument("--execution", default="graph", choices=["graph", "eager"])
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--steps", type=int, default=3)
    p.add_argument("--threads", type=int, default=2, help="of both, on the CPU")
    p.add_argument("--json", metavar="FILE", help="appends a line per row")
    a = p.parse_args()
    rows, version, device = [], "", {}
    for preset in a.presets:
        for amp in a.amps or (["fp16"] if a.device == "cuda" else ["off"]):
            case = {"device": a.device, "preset": preset, "batch": a.batch or PRESETS[preset][5], "amp": amp,
                    "threads": a.threads if a.device == "cpu" else 0, "warmup": 5 if a.device == "cuda" else 2}
            row, version, device = compare(a, case)
            rows.append(row)
            print(f"done: {row}", file=sys.stderr, flush=True)
            if a.json:
                with open(a.json, "a") as out:
                    print(json.dumps(row), file=out)
    print(f"{a.rounds} rounds of {a.steps} steps, execution {a.execution}; torch {version}; {device['name']}, "
          f"{device['libraries']}" + (f"; {a.threads} threads" if a.device == "cpu" else "") + "\n")
    print_table(rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        peer()
    else:
        main()
