"""The decoder in PyTorch, as a user would write it, with its steps reported to assay.

The model of docs: RMSNorm, rotary position with interleaved pairs, SwiGLU, untied head, no biases. configs/pytorch-decoder.toml
runs it as a workload, and `assay ab` sets it beside assay's own decoder (docs/performance.md). Alone it takes some steps.

Set-up compiles, and takes five steps. `loss` is that of the last weights; `peak_mib` what the steps held, without what compiling
took: of PyTorch's tensors on a GPU, of the process on the CPU. Threads are those of OMP_NUM_THREADS.

`optimizer = muon` is torch.optim.Muon over the blocks' matrices, and AdamW over embedding, head and norms.

Needs: pip install torch (2.x, muon 2.9; a C++ compiler for the compiled modes on the CPU).
"""
import argparse

from pytorch_peer import PeakMemory, assay

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


def make_optimizers(torch, model, name):
    if name == "adamw":
        return [torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)]
    matrices = [p for p in model.blocks.parameters() if p.ndim == 2]
    rest = [p for p in model.parameters() if not any(p is m for m in matrices)]
    return [torch.optim.Muon(matrices, lr=1e-3), torch.optim.AdamW(rest, lr=1e-4, fused=True)]


class Trainer:
    def __init__(self, torch, case):
        self.torch, self.case = torch, case
        torch.manual_seed(case.seed)
        torch.set_float32_matmul_precision("high" if case.precision == "tf32" else "highest")
        # In a `with`: a default device that stays is asked about at every call, 1 us each.
        with torch.device(case.device):
            self.model = build_model(torch, case.size, case.context_length, case.attention)
            self.ids, self.labels = (torch.randint(0, VOCAB, (case.batch_size, case.context_length)) for _ in range(2))
        if case.precision == "bf16_pure":
            self.model = self.model.bfloat16()
        mode = MODES[case.mode]
        self.run = torch.compile(self.model, mode=None if mode == "default" else mode) if mode else self.model
        train = case.step == "train_step"
        self.optimizers = make_optimizers(torch, self.model, case.optimizer) if train else []
        half = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(case.precision)
        self.cast = torch.autocast(case.device, dtype=half or torch.bfloat16, enabled=half is not None)
        self.scaler = torch.amp.GradScaler(case.device, enabled=case.precision == "fp16")

    def loss(self):
        return self.torch.nn.functional.cross_entropy(self.run(self.ids).flatten(0, 1).float(), self.labels.flatten())

    def step(self):
        if self.case.step == "forward":
            with self.torch.no_grad(), self.cast:
                self.run(self.ids)
            return
        self.model.zero_grad(set_to_none=True)
        with self.cast:
            loss = self.loss()
        self.scaler.scale(loss).backward()
        for optimizer in self.optimizers:
            self.scaler.step(optimizer)
        if self.optimizers:
            self.scaler.update()


def parser():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    p.add_argument("--size", default="tiny", choices=SIZES)
    p.add_argument("--batch_size", type=int, default=4)
    p.add_argument("--context_length", type=int, default=128)
    p.add_argument("--step", default="train_step", choices=["forward", "forward_backward", "train_step"])
    p.add_argument("--precision", default="fp32", choices=["fp32", "tf32", "bf16", "fp16", "bf16_pure"])
    p.add_argument("--attention", default="flash", choices=["flash", "naive"])
    p.add_argument("--optimizer", default="adamw", choices=["adamw", "muon"])
    p.add_argument("--mode", default="eager", choices=MODES)
    p.add_argument("--seed", type=int, default=0)
    return p


def main():
    case = parser().parse_args()
    import torch

    cuda = case.device == "cuda"
    synchronize = torch.cuda.synchronize if cuda else lambda: None
    trainer = Trainer(torch, case)
    for _ in range(5):
        trainer.step()
    synchronize()
    peak = PeakMemory(torch, cuda)
    for _ in assay.steps(alone=5, synchronize=synchronize):
        trainer.step()
    peak.report()
    with torch.no_grad(), trainer.cast:
        loss = trainer.loss().item()
    assay.result("loss", loss, unit="nats", better="lower")
    assay.result("parameters", sum(p.numel() for p in trainer.model.parameters()))
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, loss {loss}")


if __name__ == "__main__":
    main()
