"""A decoder with mixtures of experts in PyTorch, as a user would write it, with its steps reported to assay.

The model of docs: RMSNorm, rotary position with interleaved pairs, grouped-query attention, with sliding windows and sinks where
the model has them (FlexAttention on a GPU, by its log-sum-exps), or latent attention, without a scaling of the rotation; a router and experts in the place of the feed-forward. No token is dropped. On a GPU rows are sorted by expert and
multiplied by PyTorch's grouped_mm; on the CPU one expert follows the other. configs/pytorch-moe.toml runs it as a workload, and
`assay ab` sets it beside assay's own (docs/performance.md). Alone it takes some steps.

On several ranks gradients are averaged, one all-reduce for each parameter, all of them started together. With --expert_parallel
each rank has its part of the experts, and their rows travel by all_to_all_single: counts first, which the host reads, then rows.

Set-up compiles, and takes five steps. `loss` is that of the last weights; `peak_mib` what the steps held, without what compiling
took: of PyTorch's tensors on a GPU, of the process on the CPU. Threads are those of OMP_NUM_THREADS.

Needs: pip install torch (2.8 or later on a GPU; a C++ compiler for the compiled modes on the CPU).
"""
import argparse
import os

from pytorch_peer import PeakMemory, assay, give_up

# Of published configurations, as far as this model has them; see the docstring for what it leaves out.
NAMES = ("d_model", "d_ff", "layers", "heads", "kv_heads", "head_dim", "vocab_size", "experts", "experts_per_token", "expert_d_ff",
         "shared_d_ff", "first_dense_layers", "rope_theta", "norm_eps", "qk_norm", "qkv_bias", "normalized_weights",
         "expert_biases", "unit_alpha", "unit_limit", "unit_offset", "sliding_window", "full_attention_every", "attention_sinks",
         "output_bias", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
REAL = ("rope_theta", "norm_eps", "unit_alpha", "unit_limit", "unit_offset")
MODELS = {
    "tiny": (64, 256, 2, 4, 2, 16, 1000, 8, 2, 64, 0, 0, 1e4, 1e-5, False, False, True, False, 1, 0, 0, 0, 0, False, False, 0, 0, 0, 0),
    "qwen3-30b-a3b": (2048, 6144, 48, 32, 4, 128, 151936, 128, 8, 768, 0, 0, 1e6, 1e-6, True, False, True, False, 1, 0, 0, 0, 0, False, False, 0, 0, 0, 0),
    "gpt-oss-20b": (2880, 2880, 24, 64, 8, 64, 201088, 32, 4, 2880, 0, 0, 1.5e5, 1e-5, False, True, True, True, 1.702, 7, 1,
                    128, 2, True, True, 0, 0, 0, 0),
    "deepseek-v2-lite": (2048, 10944, 27, 16, 16, 0, 102400, 64, 6, 1408, 2816, 1, 1e4, 1e-6, False, False, False, False, 1, 0, 0,
                         0, 0, False, False, 512, 128, 64, 128),
    "mixtral-8x7b": (4096, 14336, 32, 32, 8, 128, 32000, 8, 2, 14336, 0, 0, 1e6, 1e-5, False, False, True, False, 1, 0, 0, 0, 0, False, False, 0, 0, 0, 0),
}
MODES = {"eager": None, "compiled": "default"}  # of torch.compile


def model_of(case):
    """The dimensions of the case's model: those of its name, but for what the case says itself."""
    model = dict(zip(NAMES, MODELS[case.model], strict=True))
    for name in NAMES:
        if getattr(case, name) is not None:
            model[name] = getattr(case, name)
    return argparse.Namespace(**model)


def active_flops(m, tokens, context):
    """Of a forward and a backward, a multiply-add as two: what a token uses of the matrices, and causal attention."""
    queries, keys = m.heads * m.head_dim, m.kv_heads * m.head_dim
    attention = m.d_model * (2 * queries + 2 * keys)
    if m.kv_lora_rank:
        key_dim = m.qk_nope_head_dim + m.qk_rope_head_dim
        attention = m.d_model * (m.heads * (key_dim + m.v_head_dim) + m.kv_lora_rank + m.qk_rope_head_dim) + \
            m.kv_lora_rank * m.heads * (m.qk_nope_head_dim + m.v_head_dim)
        queries = m.heads * (key_dim + m.v_head_dim) / 2  # the mean width of both products
    windows = [window_of(m, layer, context) for layer in range(m.layers)]
    # Twice the pairs of a query and a key, by token; without a window half of all.
    pairs = sum(2 * (w * (w + 1) / 2 + (context - w) * w) / context if w else context for w in windows)
    experts = m.d_model * (m.experts + 3 * (m.experts_per_token * m.expert_d_ff + m.shared_d_ff))
    dense = 3 * m.d_model * m.d_ff
    layers = m.layers * attention + queries * pairs + m.first_dense_layers * dense + (m.layers - m.first_dense_layers) * experts
    return 6 * tokens * (layers + m.d_model * m.vocab_size)


def window_of(m, layer, context):
    """0 where the layer sees all."""
    full = m.full_attention_every and (layer + 1) % m.full_attention_every == 0
    return 0 if full or m.sliding_window >= context else m.sliding_window


def build_model(torch, m, context, attention, ranks):
    """`ranks`: over how many the experts are shared out."""
    nn, F = torch.nn, torch.nn.functional
    grouped_mm = getattr(F, "grouped_mm", None) or getattr(torch, "_grouped_mm", None)

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

    def naive(q, k, v, mask, sinks):
        k, v = (x.repeat_interleave(m.heads // m.kv_heads, 1) for x in (k, v))
        scores = ((q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5).masked_fill(mask, float("-inf"))
        if sinks is None:
            return torch.softmax(scores, -1).to(v.dtype) @ v
        last = sinks.to(scores.dtype).view(1, -1, 1, 1).expand(scores.shape[0], -1, scores.shape[2], 1)
        return torch.softmax(torch.cat((scores, last), -1), -1)[..., :-1].to(v.dtype) @ v

    by_flex = {}

    def flex(q, k, v, window, sinks):
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        if window not in by_flex:
            reach = window or context
            by_flex[window] = create_block_mask(lambda b, h, i, j: (j <= i) & (i - j < reach), None, None, context, context)
        attend = flex_attention if torch.compiler.is_compiling() else torch.compile(flex_attention, dynamic=False)
        out, lse = attend(q, k, v, block_mask=by_flex[window], enable_gqa=m.kv_heads != m.heads, return_lse=True)
        # exp(sink) joins the sum of exponentials.
        return out if sinks is None else out * torch.sigmoid(lse - sinks.view(1, -1, 1))[..., None].to(out.dtype)

    def unit(packed):
        gate, up = packed.chunk(2, -1)
        if m.unit_limit > 0:
            gate, up = gate.clamp(max=m.unit_limit), up.clamp(-m.unit_limit, m.unit_limit)
        if m.unit_alpha == 1:
            return F.silu(gate) * (up + m.unit_offset if m.unit_offset else up)
        return gate * torch.sigmoid(m.unit_alpha * gate) * (up + m.unit_offset)

    class AllToAll(torch.autograd.Function):
        """Rows to other ranks, by counts that the host has; the gradient goes the other way."""

        @staticmethod
        def forward(ctx, x, received, sent):
            ctx.counts = sent, received
            y = x.new_empty(sum(received), *x.shape[1:])
            torch.distributed.all_to_all_single(y, x.contiguous(), received, sent)
            return y

        @staticmethod
        def backward(ctx, dy):
            received, sent = ctx.counts
            dx = dy.new_empty(sum(received), *dy.shape[1:])
            torch.distributed.all_to_all_single(dx, dy.contiguous(), received, sent)
            return dx, None, None

    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.own = m.experts // ranks
            self.router = nn.Linear(m.d_model, m.experts, bias=m.expert_biases)
            self.w13 = nn.Parameter(torch.randn(self.own, m.d_model, 2 * m.expert_d_ff) * (2 / (m.d_model + m.expert_d_ff)) ** 0.5)
            self.w2 = nn.Parameter(torch.randn(self.own, m.expert_d_ff, m.d_model) * (2 / (m.d_model + m.expert_d_ff)) ** 0.5)
            if m.expert_biases:
                self.b13 = nn.Parameter(torch.zeros(self.own, 2 * m.expert_d_ff))
                self.b2 = nn.Parameter(torch.zeros(self.own, m.d_model))
            if m.shared_d_ff:
                self.shared13 = nn.Linear(m.d_model, 2 * m.shared_d_ff, bias=False)
                self.shared2 = nn.Linear(m.shared_d_ff, m.d_model, bias=False)

        def one_by_one(self, rows, experts):
            y = torch.zeros_like(rows)
            for e in range(self.own):
                which = (experts == e).nonzero().flatten()
                if len(which) == 0:
                    continue
                packed = rows[which] @ self.w13[e].to(rows.dtype)
                h = unit(packed + self.b13[e].to(rows.dtype) if m.expert_biases else packed)
                out = h @ self.w2[e].to(rows.dtype)
                y = y.index_add(0, which, out + self.b2[e].to(rows.dtype) if m.expert_biases else out)
            return y

        def grouped(self, rows, experts):
            """Rows of any order, sorted by expert; the rows of each begin at a multiple of 8, as grouped_mm wants them."""
            counts = torch.bincount(experts, minlength=self.own)
            padded = (counts + 7) // 8 * 8
            order = torch.argsort(experts, stable=True)
            by_expert = experts[order]
            begins, first = torch.cumsum(padded, 0) - padded, torch.cumsum(counts, 0) - counts
            place = torch.arange(len(order), device=rows.device) - first[by_expert] + begins[by_expert]
            sorted_rows = rows.new_zeros(rows.shape[0] + 8 * self.own, rows.shape[1]).index_copy(0, place, rows[order])
            ends = torch.cumsum(padded, 0).to(torch.int32)
            packed = grouped_mm(sorted_rows, self.w13.to(rows.dtype), offs=ends)
            if m.expert_biases:
                of_row = torch.zeros(sorted_rows.shape[0], dtype=torch.int64, device=rows.device).index_copy(0, place, by_expert)
                packed = packed + self.b13.to(rows.dtype)[of_row]
            out = grouped_mm(unit(packed), self.w2.to(rows.dtype), offs=ends)
            if m.expert_biases:
                out = out + self.b2.to(rows.dtype)[of_row]
            return torch.empty_like(rows).index_copy(0, order, out[place])

        def here(self, rows, experts):
            return self.grouped(rows, experts) if rows.is_cuda else self.one_by_one(rows, experts)

        @torch.compiler.disable
        def on_ranks(self, rows, experts):
            order = torch.argsort(experts, stable=True)
            mine = torch.bincount(experts, minlength=m.experts)
            theirs = torch.empty_like(mine)
            torch.distributed.all_to_all_single(theirs, mine)
            sent, received = (counts.view(ranks, self.own).sum(1).tolist() for counts in (mine, theirs))
            got = AllToAll.apply(rows[order], received, sent)
            local = torch.repeat_interleave(torch.arange(self.own, device=rows.device).repeat(ranks), theirs)
            back = AllToAll.apply(self.here(got, local), sent, received)
            return torch.empty_like(rows).index_copy(0, order, back)

        def forward(self, x):
            tokens = x.reshape(-1, m.d_model)
            scores = torch.softmax(self.router(tokens).float(), -1)
            weights, experts = scores.topk(m.experts_per_token, -1)
            if m.normalized_weights:
                weights = weights / weights.sum(-1, keepdim=True)
            # Autocast rounds what a product reads, and these are no products that it knows.
            half = torch.get_autocast_dtype(x.device.type) if torch.is_autocast_enabled(x.device.type) else tokens.dtype
            rows = tokens.to(half).repeat_interleave(m.experts_per_token, 0)
            y = (self.on_ranks if ranks > 1 else self.here)(rows, experts.flatten())
            y = (y.view(-1, m.experts_per_token, m.d_model) * weights[..., None].to(half)).sum(1)
            if m.shared_d_ff:
                gate, up = self.shared13(tokens).chunk(2, -1)
                y = y + self.shared2(F.silu(gate) * up)
            return y.view_as(x)

    class Dense(nn.Module):
        def __init__(self):
            super().__init__()
            self.w1, self.w3 = (nn.Linear(m.d_model, m.d_ff, bias=False) for _ in range(2))
            self.w2 = nn.Linear(m.d_ff, m.d_model, bias=False)

        def forward(self, x):
            return self.w2(F.silu(self.w1(x)) * self.w3(x))

    class LatentAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.widths = m.qk_nope_head_dim, m.qk_rope_head_dim
            self.q = nn.Linear(m.d_model, m.heads * sum(self.widths), bias=False)
            self.kv_a = nn.Linear(m.d_model, m.kv_lora_rank + m.qk_rope_head_dim, bias=False)
            self.norm = Norm(m.kv_lora_rank)
            self.kv_b = nn.Linear(m.kv_lora_rank, m.heads * (m.qk_nope_head_dim + m.v_head_dim), bias=False)
            self.o = nn.Linear(m.heads * m.v_head_dim, m.d_model, bias=False)

        def forward(self, y, cos, sin, mask):
            b, t, _ = y.shape

            def heads(x, widths):
                return x.view(b, t, -1, sum(widths)).transpose(1, 2).split(widths, -1)

            q, q_turned = heads(self.q(y), self.widths)
            latent, shared = self.kv_a(y).split((m.kv_lora_rank, m.qk_rope_head_dim), -1)
            k, v = heads(self.kv_b(self.norm(latent)), (m.qk_nope_head_dim, m.v_head_dim))
            shared = rotate(shared[:, None], cos, sin).expand(-1, m.heads, -1, -1)
            q, k = torch.cat((q, rotate(q_turned, cos, sin)), -1), torch.cat((k, shared), -1)
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True) if attention == "flash" else naive(q, k, v, mask, None)
            return self.o(a.transpose(1, 2).reshape(b, t, -1))

    class Block(nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.norm1, self.norm2 = Norm(m.d_model), Norm(m.d_model)
            self.latent = LatentAttention() if m.kv_lora_rank else None
            self.feed_forward = Dense() if layer < m.first_dense_layers else Experts()
            if self.latent:
                return
            self.q = nn.Linear(m.d_model, m.heads * m.head_dim, bias=m.qkv_bias)
            self.k, self.v = (nn.Linear(m.d_model, m.kv_heads * m.head_dim, bias=m.qkv_bias) for _ in range(2))
            self.o = nn.Linear(m.heads * m.head_dim, m.d_model, bias=m.output_bias)
            self.window = window_of(m, layer, context)
            self.sinks = nn.Parameter(torch.zeros(m.heads)) if m.attention_sinks else None
            if m.qk_norm:
                self.q_norm, self.k_norm = Norm(m.head_dim), Norm(m.head_dim)

        def attend(self, y, cos, sin, mask):
            if self.latent:
                return self.latent(y, cos, sin, mask)
            b, t, _ = y.shape
            q, k, v = (p(y).view(b, t, -1, m.head_dim) for p in (self.q, self.k, self.v))
            if m.qk_norm:
                q, k = self.q_norm(q), self.k_norm(k)
            q, k, v = (z.transpose(1, 2) for z in (q, k, v))
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
            if (self.window or m.attention_sinks) and attention == "flash" and y.is_cuda:
                a = flex(q, k, v, self.window, self.sinks)
            elif attention == "flash" and not self.window and not m.attention_sinks:
                a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=m.kv_heads != m.heads)
            else:
                a = naive(q, k, v, mask | torch.ones_like(mask).tril(-self.window) if self.window else mask, self.sinks)
            return self.o(a.transpose(1, 2).reshape(b, t, -1))

        def forward(self, x, cos, sin, mask):
            x = x + self.attend(self.norm1(x), cos, sin, mask)
            return x + self.feed_forward(self.norm2(x))

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(m.vocab_size, m.d_model)
            self.blocks = nn.ModuleList(Block(layer) for layer in range(m.layers))
            self.norm, self.head = Norm(m.d_model), nn.Linear(m.d_model, m.vocab_size, bias=False)
            needs_mask = attention == "naive" or m.sliding_window or m.attention_sinks
            turned = m.qk_rope_head_dim if m.kv_lora_rank else m.head_dim
            angle = torch.outer(torch.arange(context), m.rope_theta ** (-torch.arange(0, turned, 2) / turned))
            self.register_buffer("cos", angle.cos())
            self.register_buffer("sin", angle.sin())
            self.register_buffer("mask", torch.ones(context, context, dtype=torch.bool).triu(1) if needs_mask else None)

        def forward(self, ids):
            x = self.embedding(ids)
            for block in self.blocks:
                x = block(x, self.cos, self.sin, self.mask)
            return self.head(self.norm(x))

    return Decoder(), Experts


class Trainer:
    def __init__(self, torch, case, rank, ranks):
        self.torch, self.case, self.ranks = torch, case, ranks
        m = model_of(case)
        shared_by = ranks if case.expert_parallel else 1
        if m.experts % shared_by:
            give_up(f"experts {m.experts} is not a multiple of the {shared_by} ranks that share them")
        torch.manual_seed(case.seed)
        with torch.device(case.device):
            self.model, experts = build_model(torch, m, case.context_length, case.attention, shared_by)
            torch.manual_seed(case.seed + 1 + rank)
            self.ids, self.labels = (torch.randint(0, m.vocab_size, (case.batch_size, case.context_length)) for _ in range(2))
        if case.precision == "bf16_pure":
            self.model = self.model.bfloat16()
        mode = MODES[case.mode]
        self.run = torch.compile(self.model) if mode else self.model
        parameters = list(self.model.parameters())
        self.optimizer = torch.optim.AdamW(parameters, lr=1e-4, fused=True) if case.step == "train_step" else None
        self.cast = torch.autocast(case.device, dtype=torch.bfloat16, enabled=case.precision == "bf16")
        own = {id(p) for e in self.model.modules() if isinstance(e, experts) and shared_by > 1
               for name, p in e.named_parameters() if name in ("w13", "w2", "b13", "b2")}
        self.own, self.shared = ([p for p in parameters if (id(p) in own) == which] for which in (True, False))
        self.parameters = sum(p.numel() for p in self.shared) + shared_by * sum(p.numel() for p in self.own)

    def loss(self):
        return self.torch.nn.functional.cross_entropy(self.run(self.ids).flatten(0, 1).float(), self.labels.flatten())

    def average(self):
        """The loss is the mean over all ranks' tokens. Rows of all ranks have come to an expert, so its gradients are sums."""
        if self.ranks == 1:
            return
        waits = [self.torch.distributed.all_reduce(p.grad, async_op=True) for p in self.shared]
        for wait in waits:
            wait.wait()
        self.torch._foreach_div_([p.grad for p in self.shared + self.own], self.ranks)

    def step(self):
        self.model.zero_grad(set_to_none=True)
        with self.cast:
            loss = self.loss()
        loss.backward()
        # An expert without rows has no gradient in a loop.
        for p in self.own + self.shared:
            if p.grad is None:
                p.grad = self.torch.zeros_like(p)
        self.average()
        if self.optimizer:
            self.optimizer.step()


def boolean(text):
    if text not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r}; expected true or false")
    return text == "true"


def parser():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    p.add_argument("--model", default="tiny", choices=MODELS)
    for name, value in zip(NAMES, MODELS["tiny"]):
        kind = boolean if isinstance(value, bool) else float if name in REAL else int
        p.add_argument(f"--{name}", type=kind, help="in place of the model's")
    p.add_argument("--batch_size", type=int, default=4)
    p.add_argument("--context_length", type=int, default=128)
    p.add_argument("--step", default="train_step", choices=["forward_backward", "train_step"])
    p.add_argument("--precision", default="fp32", choices=["fp32", "bf16", "bf16_pure"])
    p.add_argument("--attention", default="flash", choices=["flash", "naive"])
    p.add_argument("--mode", default="eager", choices=MODES)
    p.add_argument("--expert_parallel", type=boolean, default=False)
    p.add_argument("--seed", type=int, default=0)
    return p


def main():
    case = parser().parse_args()
    import torch
    import torch.distributed as dist

    cuda = case.device == "cuda"
    if cuda and case.precision == "fp32":
        give_up("grouped_mm of PyTorch multiplies bf16; take precision = \"bf16\" or \"bf16_pure\" on a GPU")
    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if cuda:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    if ranks > 1:
        dist.init_process_group("nccl" if cuda else "gloo")
    synchronize = torch.cuda.synchronize if cuda else lambda: None
    trainer = Trainer(torch, case, rank, ranks)
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
    assay.result("parameters", trainer.parameters)
    m = model_of(case)
    assay.result("model_flops", active_flops(m, case.batch_size * case.context_length, case.context_length))
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, loss {loss}")
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
