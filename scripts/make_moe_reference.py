#!/usr/bin/env python3
"""Makes the reference tensors of parity tests of decoders with experts, with PyTorch: tests/data/moe_*/*.safetensors.

  moe_few_tokens  12 experts, 2 for each of 6 tokens, so that some have none; both losses of the router; softmax, weights that
                  add up to 1
  moe_one_token   one token that goes to all 4 experts; biases everywhere, and a gated unit whose limits are reached
  moe_sigmoid     3 of 5 experts by sigmoid scores, weights that add up to 2.5, a shared expert, a dense first layer, an
                  ignored label

The model is written from its definition in PyTorch's own operations, one expert after the other, and runs in float64; weights
are rounded to float32 first, so that both start from the same numbers. Which experts are chosen must not hang on rounding: the
script refuses weights where the last one that is chosen is not clearly before the first one that is not.
Needs: pip install torch numpy safetensors. Run from anywhere; the files are committed, so nobody has to.
"""
import argparse
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

DATA = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data"
CLEARLY = 1e-3  # of scores

COMMON = dict(vocab=41, d=24, heads=3, kv_heads=1, d_ff=40, layers=2, first_dense=0, shared=0, biases=False, score="softmax",
              normalized=True, factor=1.0, alpha=1.0, limit=0.0, offset=0.0, balance=0.0, z=0.0, ignored=None)
CASES = {
    "moe_few_tokens": dict(experts=12, k=2, ff=12, batch=1, context=6, balance=0.05, z=0.01, seed=40),
    "moe_one_token": dict(experts=4, k=4, ff=12, batch=1, context=1, biases=True, alpha=1.702, limit=0.8, offset=1.0,
                          normalized=False, seed=40),
    "moe_sigmoid": dict(experts=5, k=3, ff=20, batch=2, context=9, layers=3, first_dense=1, shared=16, score="sigmoid",
                        factor=2.5, balance=0.05, ignored=(1, 4), seed=40),
}


def make_weights(c):
    g = torch.Generator().manual_seed(c.seed)
    w = {}

    def tensor(name, *shape, std, mean=0.0):
        w[name] = (mean + torch.randn(*shape, generator=g) * std).double()

    head = c.d // c.heads
    tensor("token_embeddings.weight", c.vocab, c.d, std=1.0)
    for i in range(c.layers):
        p = f"layers.{i}."
        for n, width in (("q", c.d), ("k", c.kv_heads * head), ("v", c.kv_heads * head)):
            tensor(f"{p}attn.{n}_proj.weight", width, c.d, std=0.2)
            if c.biases:
                tensor(f"{p}attn.{n}_proj.bias", width, std=0.3)
        tensor(f"{p}attn.output_proj.weight", c.d, c.d, std=0.2)
        for n in ("ln1", "ln2"):
            tensor(f"{p}{n}.weight", c.d, std=0.2, mean=1.0)
        if i < c.first_dense:
            for n, rows, columns in (("w1", c.d_ff, c.d), ("w3", c.d_ff, c.d), ("w2", c.d, c.d_ff)):
                tensor(f"{p}ffn.{n}.weight", rows, columns, std=0.15)
            continue
        p += "moe."
        tensor(f"{p}router.weight", c.experts, c.d, std=0.4)
        tensor(f"{p}experts.w13.weight", c.experts, 2 * c.ff, c.d, std=0.2)
        tensor(f"{p}experts.w2.weight", c.experts, c.d, c.ff, std=0.2)
        if c.biases:
            tensor(f"{p}router.bias", c.experts, std=0.3)
            tensor(f"{p}experts.w13.bias", c.experts, 2 * c.ff, std=0.3)
            tensor(f"{p}experts.w2.bias", c.experts, c.d, std=0.3)
        if c.shared:
            for n, rows, columns in (("w1", c.shared, c.d), ("w3", c.shared, c.d), ("w2", c.d, c.shared)):
                tensor(f"{p}shared.{n}.weight", rows, columns, std=0.2)
    tensor("ln_final.weight", c.d, std=0.2, mean=1.0)
    tensor("lm_head.weight", c.vocab, c.d, std=0.2)
    return w


def norm(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * weight


def rotate(x):  # interleaved pairs, theta 10000
    d = x.shape[-1]
    angle = torch.outer(torch.arange(x.shape[-2]).double(), 10000.0 ** (-torch.arange(0, d, 2).double() / d))
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()), -1).flatten(-2)


def swiglu(x, w, p):
    return (F.silu(x @ w[p + "w1.weight"].T) * (x @ w[p + "w3.weight"].T)) @ w[p + "w2.weight"].T


class Model:
    def __init__(self, c):
        self.c = c
        self.router_loss, self.margin, self.counts = 0, float("inf"), []

    def experts(self, w, p, x):
        c = self.c
        n = x.shape[0]
        logits = F.linear(x, w[p + "router.weight"], w.get(p + "router.bias"))
        scores = torch.softmax(logits, -1) if c.score == "softmax" else torch.sigmoid(logits)
        best = scores.sort(-1, descending=True).values
        if c.k < c.experts:
            self.margin = min(self.margin, (best[:, c.k - 1] - best[:, c.k]).min().item())
        chosen = scores.topk(c.k, -1)
        weights = chosen.values * c.factor
        if c.normalized:
            weights = weights / chosen.values.sum(-1, keepdim=True)
        counts = torch.bincount(chosen.indices.flatten(), minlength=c.experts)
        self.counts.append(counts.tolist())
        self.router_loss = (self.router_loss + c.balance * c.experts * (counts / (n * c.k) * scores.sum(0) / n).sum()
                            + c.z * torch.logsumexp(logits, -1).pow(2).sum() / n)
        y = torch.zeros_like(x)
        for e in range(c.experts):
            tokens, which = (chosen.indices == e).nonzero(as_tuple=True)
            gate, up = F.linear(x[tokens], w[p + "experts.w13.weight"][e],
                                w[p + "experts.w13.bias"][e] if c.biases else None).chunk(2, -1)
            if c.limit > 0:
                gate, up = gate.clamp(max=c.limit), up.clamp(-c.limit, c.limit)
            h = gate * torch.sigmoid(c.alpha * gate) * (up + c.offset)
            out = F.linear(h, w[p + "experts.w2.weight"][e], w[p + "experts.w2.bias"][e] if c.biases else None)
            y = y.index_add(0, tokens, weights[tokens, which, None] * out)
        return y + swiglu(x, w, p + "shared.") if c.shared else y

    def __call__(self, w, ids):
        c = self.c
        b, t = ids.shape
        self.router_loss, self.counts = 0, []
        x = w["token_embeddings.weight"][ids]
        for i in range(c.layers):
            p = f"layers.{i}."
            y = norm(x, w[p + "ln1.weight"])
            q, k, v = (F.linear(y, w[f"{p}attn.{n}_proj.weight"], w.get(f"{p}attn.{n}_proj.bias"))
                       .view(b, t, -1, c.d // c.heads).transpose(1, 2) for n in "qkv")
            k, v = (z.repeat_interleave(c.heads // c.kv_heads, 1) for z in (rotate(k), v))
            a = F.scaled_dot_product_attention(rotate(q), k, v, is_causal=True)
            x = x + a.transpose(1, 2).reshape(b, t, c.d) @ w[p + "attn.output_proj.weight"].T
            y = norm(x, w[p + "ln2.weight"])
            if i < c.first_dense:
                x = x + swiglu(y, w, p + "ffn.")
            else:
                x = x + self.experts(w, p + "moe.", y.reshape(-1, c.d)).view_as(x)
        return norm(x, w["ln_final.weight"]) @ w["lm_head.weight"].T


def write(name, c):
    out = DATA / name
    out.mkdir(parents=True, exist_ok=True)
    g = torch.Generator().manual_seed(21)
    ids, labels = (torch.randint(0, c.vocab, (c.batch, c.context), generator=g) for _ in range(2))
    if c.ignored:
        labels[c.ignored] = -100
    w = make_weights(c)
    save_file({k: v.float().contiguous() for k, v in w.items()}, out / "weights.safetensors")
    save_file({"input_ids": ids, "labels": labels}, out / "inputs.safetensors")
    params = {k: torch.nn.Parameter(v.float().double()) for k, v in w.items()}
    optimizer = torch.optim.AdamW(params.values(), lr=1e-3)
    model, expected = Model(c), {}
    for step in range(3):
        optimizer.zero_grad()
        logits = model(params, ids)
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        (loss + model.router_loss).backward()
        if step == 0:
            expected["logits"], expected["loss"] = logits.detach().clone(), loss.detach().clone()
            expected |= {f"grad.{k}": p.grad.clone() for k, p in params.items()}
            print(name, "tokens by expert:", model.counts)
        optimizer.step()
    if model.margin < CLEARLY:
        raise SystemExit(f"{name}: scores differ by {model.margin:.1e} alone where experts are chosen; take another seed")
    expected |= {f"weight.{k}": p.detach() for k, p in params.items()}
    save_file({k: v.float().contiguous() for k, v in expected.items()}, out / "expected.safetensors",
              metadata={"made_by": f"scripts/make_moe_reference.py, torch {torch.__version__}, float64"})


def main():
    for name, case in CASES.items():
        write(name, argparse.Namespace(**(COMMON | case)))


if __name__ == "__main__":
    main()
