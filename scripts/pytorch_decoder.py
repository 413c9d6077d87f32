"""The decoder in PyTorch, as a user would write it, with its steps reported to assay.

The model of docs: RMSNorm, rotary position with interleaved pairs, SwiGLU, untied head, no biases; or a published one of assay's
presets: grouped queries, norms of queries and keys, tied embeddings. configs/pytorch-decoder.toml runs it as a workload, and
`assay ab` sets it beside assay's own decoder (docs/performance.md). Alone it takes some steps.

Set-up compiles, and takes five steps. `loss` is that of the last weights; `peak_mib` what the steps held, without what compiling
took: of PyTorch's tensors on a GPU, of the process on the CPU. Threads are those of OMP_NUM_THREADS.

`optimizer = muon` is torch.optim.Muon over the blocks' matrices, and AdamW over embedding, head and norms.

Needs: pip install torch (2.x, muon 2.9; a C++ compiler for the compiled modes on the CPU).
"""
import argparse

from pytorch_peer import PeakMemory, assay

# The names and the defaults of assay's parameters.
NAMES = ("d_model", "d_ff", "layers", "heads")
DEFAULTS = {"kv_heads": 0, "head_dim": 0, "vocab_size": 10_000, "qkv_bias": False, "qk_norm": False, "tied_embeddings": False,
            "rope_theta": 1e4, "norm_eps": 1e-5}
# Without the scaling of the rotation, which changes a table and no time.
LLAMA32 = {"kv_heads": 8, "vocab_size": 128_256, "tied_embeddings": True, "rope_theta": 5e5}
QWEN3 = {"kv_heads": 8, "head_dim": 128, "vocab_size": 151_936, "qk_norm": True, "rope_theta": 1e6, "norm_eps": 1e-6}
SIZES = {"tiny": (128, 512, 2, 4), "small": (768, 3072, 12, 12), "medium": (1024, 4096, 24, 16),
         "large": (1280, 5120, 36, 20), "xl": (1600, 6400, 48, 25), "2.7B": (2560, 10240, 32, 32),
         "qwen3-0.6b": (1024, 3072, 28, 16, QWEN3 | {"tied_embeddings": True}),
         "qwen3-1.7b": (2048, 6144, 28, 16, QWEN3 | {"tied_embeddings": True}),
         "qwen3-4b": (2560, 9728, 36, 32, QWEN3 | {"tied_embeddings": True}),
         "qwen3-8b": (4096, 12288, 36, 32, QWEN3),
         "llama3.2-1b": (2048, 8192, 16, 32, LLAMA32),
         "llama3.2-3b": (3072, 8192, 28, 24, LLAMA32)}
MODES = {"eager": None, "compiled": "default", "graphs": "reduce-overhead"}  # of torch.compile


def model_of(case):
    """The dimensions of the case's model: those of its size, but for what the case says itself."""
    numbers, more = SIZES[case.size][:4], SIZES[case.size][4:]
    model = argparse.Namespace(**(DEFAULTS | dict(zip(NAMES, numbers, strict=True)) | (more[0] if more else {})))
    for name in ("layers", "vocab_size"):
        if getattr(case, name):
            setattr(model, name, getattr(case, name))
    model.kv_heads = model.kv_heads or model.heads
    model.head_dim = model.head_dim or model.d_model // model.heads
    return model


def build_model(torch, m, context, attention):
    nn, F = torch.nn, torch.nn.functional
    queries, keys = m.heads * m.head_dim, m.kv_heads * m.head_dim

    class Norm(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width))

        def forward(self, x):
            if not x.is_cuda:
                return F.rms_norm(x, (x.shape[-1],), self.weight, m.norm_eps)
            wide = x.float()
            return (self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + m.norm_eps))).to(x.dtype)

    def rotate(x, cos, sin):
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2).to(x.dtype)

    def naive(q, k, v, mask):
        k, v = (x.repeat_interleave(m.heads // m.kv_heads, 1) for x in (k, v))
        scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
        return torch.softmax(scores.masked_fill(mask, float("-inf")), -1).to(v.dtype) @ v

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = Norm(m.d_model), Norm(m.d_model)
            self.q = nn.Linear(m.d_model, queries, bias=m.qkv_bias)
            self.k, self.v = (nn.Linear(m.d_model, keys, bias=m.qkv_bias) for _ in range(2))
            self.o = nn.Linear(queries, m.d_model, bias=False)
            if m.qk_norm:
                self.q_norm, self.k_norm = Norm(m.head_dim), Norm(m.head_dim)
            self.w1, self.w3 = (nn.Linear(m.d_model, m.d_ff, bias=False) for _ in range(2))
            self.w2 = nn.Linear(m.d_ff, m.d_model, bias=False)

        def forward(self, x, cos, sin, mask):
            b, t, _ = x.shape
            y = self.norm1(x)
            q, k, v = (p(y).view(b, t, -1, m.head_dim) for p in (self.q, self.k, self.v))
            if m.qk_norm:
                q, k = self.q_norm(q), self.k_norm(k)
            q, k, v = (z.transpose(1, 2) for z in (q, k, v))
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
            if attention == "flash":
                a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=m.kv_heads != m.heads)
            else:
                a = naive(q, k, v, mask)
            x = x + self.o(a.transpose(1, 2).reshape(b, t, queries))
            y = self.norm2(x)
            return x + self.w2(F.silu(self.w1(y)) * self.w3(y))

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(m.vocab_size, m.d_model)
            self.blocks = nn.ModuleList(Block() for _ in range(m.layers))
            self.norm, self.head = Norm(m.d_model), nn.Linear(m.d_model, m.vocab_size, bias=False)
            if m.tied_embeddings:
                nn.init.normal_(self.head.weight, std=(2 / (m.d_model + m.vocab_size)) ** 0.5)
                self.embedding.weight = self.head.weight
            angle = torch.outer(torch.arange(context), m.rope_theta ** (-torch.arange(0, m.head_dim, 2) / m.head_dim))
            self.register_buffer("cos", angle.cos())
            self.register_buffer("sin", angle.sin())
            self.register_buffer("mask", torch.ones(context, context, dtype=torch.bool).triu(1) if attention == "naive" else None)

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
            m = model_of(case)
            self.model = build_model(torch, m, case.context_length, case.attention)
            shape = (case.batch_size, case.context_length)
            self.ids, self.labels = (torch.randint(0, m.vocab_size, shape) for _ in range(2))
        if case.precision == "bf16_pure":
            self.model = self.model.bfloat16()
        mode = MODES[case.mode]
        self.run, self.loss_of = self.model, self.whole_loss
        if mode:
            mode = None if mode == "default" else mode
            # The loss with the model: a compiler then makes one pass of what is read in fp32.
            self.run, self.loss_of = torch.compile(self.model, mode=mode), torch.compile(self.whole_loss, mode=mode)
        train = case.step == "train_step"
        self.optimizers = make_optimizers(torch, self.model, case.optimizer) if train else []
        half = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(case.precision)
        self.cast = torch.autocast(case.device, dtype=half or torch.bfloat16, enabled=half is not None)
        self.scaler = torch.amp.GradScaler(case.device, enabled=case.precision == "fp16")

    def whole_loss(self, ids, labels):
        return self.torch.nn.functional.cross_entropy(self.model(ids).flatten(0, 1).float(), labels.flatten())

    def loss(self):
        return self.loss_of(self.ids, self.labels)

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
    p.add_argument("--layers", type=int, help="in place of the size's")
    p.add_argument("--vocab_size", type=int, help="in place of the size's")
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
