"""The decoder in PyTorch, as a user would write it, and a process that times it on request.

The model of docs: RMSNorm, rotary position with interleaved pairs, SwiGLU, untied head, no biases. As a program it reads
one line of JSON on its standard input (the case), prints {"ready": version}, and then, for each number n that it reads,
runs n steps and prints their times and its peak memory. scripts/compare_with_pytorch.py drives it.
"""
import json
import resource
import sys
import time

import interleaving

SIZES = {"tiny": (128, 512, 2, 4), "small": (768, 3072, 12, 12), "medium": (1024, 4096, 24, 16),
         "large": (1280, 5120, 36, 20), "xl": (1600, 6400, 48, 25), "2.7B": (2560, 10240, 32, 32)}
VOCAB = 10_000
MODES = {"eager": None, "compiled": "default", "graphs": "reduce-overhead"}  # of torch.compile


def build_model(torch, size, context, attention):
    nn, F = torch.nn, torch.nn.functional
    d, ff, layers, heads = SIZES[size]

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(d))

        def forward(self, x):
            if not x.is_cuda:
                return F.rms_norm(x, (d,), self.weight, 1e-5)
            wide = x.float()
            return (self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5))).to(x.dtype)

    def rotate(x, cos, sin):
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2).to(x.dtype)

    def naive(q, k, v, mask):
        scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
        return torch.softmax(scores.masked_fill(mask, float("-inf")), -1).to(v.dtype) @ v

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = Norm(), Norm()
            self.q, self.k, self.v, self.o = (nn.Linear(d, d, bias=False) for _ in range(4))
            self.w1, self.w3 = nn.Linear(d, ff, bias=False), nn.Linear(d, ff, bias=False)
            self.w2 = nn.Linear(ff, d, bias=False)

        def forward(self, x, cos, sin, mask):
            b, t, _ = x.shape
            y = self.norm1(x)
            q, k, v = (m(y).view(b, t, heads, -1).transpose(1, 2) for m in (self.q, self.k, self.v))
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True) if attention == "flash" else naive(q, k, v, mask)
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
            self.register_buffer("mask", torch.ones(context, context, dtype=torch.bool).triu(1))

        def forward(self, ids):
            x = self.embedding(ids)
            for block in self.blocks:
                x = block(x, self.cos, self.sin, self.mask)
            return self.head(self.norm(x))

    return Decoder()


class Trainer:
    def __init__(self, torch, case):
        self.torch, self.case = torch, case
        device = case["device"]
        torch.manual_seed(0)
        torch.set_default_device(device)
        torch.set_float32_matmul_precision("high" if case["precision"] == "tf32" else "highest")
        self.model = build_model(torch, case["size"], case["context"], case["attention"])
        if case["precision"] == "bf16_pure":
            self.model = self.model.bfloat16()
        mode = MODES[case["mode"]]
        self.run = torch.compile(self.model, mode=None if mode == "default" else mode) if mode else self.model
        self.ids = torch.randint(0, VOCAB, (case["batch"], case["context"]))
        self.labels = torch.randint(0, VOCAB, (case["batch"], case["context"]))
        train = case["pass"] == "train_step"
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True) if train else None
        half = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(case["precision"])
        self.cast = torch.autocast(device, dtype=half or torch.bfloat16, enabled=half is not None)
        self.scaler = torch.amp.GradScaler(device, enabled=case["precision"] == "fp16")

    def step(self):
        if self.case["pass"] == "forward":
            with self.torch.no_grad(), self.cast:
                self.run(self.ids)
            return
        self.model.zero_grad(set_to_none=True)
        with self.cast:
            loss = self.torch.nn.functional.cross_entropy(self.run(self.ids).flatten(0, 1).float(), self.labels.flatten())
        self.scaler.scale(loss).backward()
        if self.optimizer:
            self.scaler.step(self.optimizer)
            self.scaler.update()


def main():
    import torch

    case = json.loads(sys.stdin.readline())
    cuda = case["device"] == "cuda"
    if case["threads"]:
        torch.set_num_threads(case["threads"])
    imported_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    synchronize = torch.cuda.synchronize if cuda else lambda: None
    try:
        trainer = Trainer(torch, case)
        for _ in range(5):
            trainer.step()
        synchronize()
        name = torch.cuda.get_device_name() if cuda else "cpu"
        print(json.dumps({"ready": torch.__version__, "device": name}), flush=True)
        for line in sys.stdin:
            # As assay's process does before its steps: clocks and caches come from another program's turn.
            for _ in range(case["warmup"]):
                trainer.step()
            synchronize()
            peak = interleaving.PeakMemory(torch, cuda)
            times = []
            for _ in range(int(line)):
                begin = time.perf_counter()
                trainer.step()
                synchronize()
                times.append((time.perf_counter() - begin) * 1e3)
            print(json.dumps({"ms": times, "peak_mib": peak.mib(), "imported_mib": imported_mib}), flush=True)
    except torch.cuda.OutOfMemoryError as error:
        print(json.dumps({"oom": str(error).splitlines()[0]}), flush=True)


if __name__ == "__main__":
    main()
