#!/usr/bin/env python3
"""Makes the reference tensors of the decoder's parity tests, tests/data/decoder/*.safetensors, with PyTorch.

The model is written from its definition in PyTorch's own operations and runs in float64, so that what the tests see is
assay's rounding alone; weights are rounded to float32 first, so that both start from the same numbers.
Needs: pip install torch numpy safetensors. Run from anywhere; the files are committed, so nobody has to.
"""
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

VOCAB, D, FF, LAYERS, HEADS, BATCH, CONTEXT = 97, 48, 112, 2, 3, 2, 21
OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "decoder"


def make_weights():
    g = torch.Generator().manual_seed(20)
    w = {}

    def matrix(name, rows, cols, std):
        w[name] = (torch.randn(rows, cols, generator=g) * std).double()

    matrix("token_embeddings.weight", VOCAB, D, 1.0)
    for i in range(LAYERS):
        p = f"layers.{i}."
        for n in ("q", "k", "v", "output"):
            matrix(f"{p}attn.{n}_proj.weight", D, D, 0.2)
        matrix(f"{p}ffn.w1.weight", FF, D, 0.15)
        matrix(f"{p}ffn.w2.weight", D, FF, 0.15)
        matrix(f"{p}ffn.w3.weight", FF, D, 0.15)
        for n in ("ln1", "ln2"):
            w[f"{p}{n}.weight"] = (1 + 0.2 * torch.randn(D, generator=g)).double()
    w["ln_final.weight"] = (1 + 0.2 * torch.randn(D, generator=g)).double()
    matrix("lm_head.weight", VOCAB, D, 0.1)
    return w


def rms_norm(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * weight


def rotate(x):  # interleaved pairs, theta 10000
    d = x.shape[-1]
    angle = torch.outer(torch.arange(x.shape[-2]).double(), 10000.0 ** (-torch.arange(0, d, 2).double() / d))
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()), -1).flatten(-2)


def forward(w, ids):
    b, t = ids.shape
    x = w["token_embeddings.weight"][ids]
    for i in range(LAYERS):
        p = f"layers.{i}."
        y = rms_norm(x, w[p + "ln1.weight"])
        q, k, v = ((y @ w[f"{p}attn.{n}_proj.weight"].T).view(b, t, HEADS, -1).transpose(1, 2) for n in "qkv")
        a = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
        x = x + a.transpose(1, 2).reshape(b, t, D) @ w[p + "attn.output_proj.weight"].T
        y = rms_norm(x, w[p + "ln2.weight"])
        h = F.silu(y @ w[p + "ffn.w1.weight"].T) * (y @ w[p + "ffn.w3.weight"].T)
        x = x + h @ w[p + "ffn.w2.weight"].T
    return rms_norm(x, w["ln_final.weight"]) @ w["lm_head.weight"].T


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    w = make_weights()
    g = torch.Generator().manual_seed(21)
    ids = torch.randint(0, VOCAB, (BATCH, CONTEXT), generator=g)
    labels = torch.randint(0, VOCAB, (BATCH, CONTEXT), generator=g)
    labels[0, 3] = -100  # an ignored label
    save_file({k: v.float() for k, v in w.items()}, OUT / "weights.safetensors")
    save_file({"input_ids": ids, "labels": labels}, OUT / "inputs.safetensors")

    params = {k: torch.nn.Parameter(v.float().double()) for k, v in w.items()}
    optimizer = torch.optim.AdamW(params.values(), lr=1e-2)
    expected = {}
    for step in range(3):
        optimizer.zero_grad()
        logits = forward(params, ids)
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        loss.backward()
        if step == 0:
            expected["logits"], expected["loss"] = logits.detach().clone(), loss.detach().clone()
            expected.update({f"grad.{k}": p.grad.clone() for k, p in params.items()})
        optimizer.step()
    expected.update({f"weight.{k}": p.detach().clone() for k, p in params.items()})
    save_file({k: v.float().contiguous() for k, v in expected.items()}, OUT / "expected.safetensors",
              metadata={"made_by": f"scripts/make_decoder_reference.py, torch {torch.__version__}, float64"})


if __name__ == "__main__":
    main()
