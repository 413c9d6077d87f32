#!/usr/bin/env python3
"""Makes the reference tensors of the decoder's parity tests with PyTorch: tests/data/decoder/*.safetensors, and of
models as people train them: tests/data/decoder_grouped/*.safetensors (Qwen2: grouped-query attention, biases of q, k and
v, tied embeddings, another base of the rotation and another epsilon), tests/data/decoder_qk_norm/*.safetensors (Qwen3:
norms of the heads of q and k in place of the biases, and a head_dim other than d_model / heads),
tests/data/decoder_windows/*.safetensors (sliding windows in some layers, sinks, capped scores and a bias of the output
product), tests/data/decoder_documents/*.safetensors (that model over documents packed in sequences), and those of decoder_families.py, by their names.

The model is written from its definition in PyTorch's own operations and runs in float64, so that what the tests see is
assay's rounding alone; weights are rounded to float32 first, so that both start from the same numbers.
Needs: pip install torch numpy safetensors. Run from anywhere; the files are committed, so nobody has to.
"""
import dataclasses
import functools
import pathlib

import decoder_families
import torch
import torch.nn.functional as F
from safetensors.torch import save_file

VOCAB, D, FF, LAYERS, HEADS, BATCH, CONTEXT = 97, 48, 112, 2, 3, 2, 21
DATA = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data"


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


# ---- the model as people train them, by the names and the layout of the files in which its weights are published -------

THETA, EPS = 1e6, 1e-6


@dataclasses.dataclass
class Published:
    seed: int
    d: int
    ff: int
    heads: int
    kv_heads: int
    head_dim: int
    qkv_bias: bool = False
    qk_norm: bool = False
    qk_std: float = 0.2  # of the weights of q and k


QWEN2 = Published(30, D, FF, 6, 2, D // 6, qkv_bias=True)
# Queries and keys so small that the epsilon shows.
QWEN3 = Published(31, 24, 40, 4, 2, 10, qk_norm=True, qk_std=0.01)
OURS = {"self_attn.q_norm": "attn.q_norm", "self_attn.k_norm": "attn.k_norm",
        "self_attn.q_proj": "attn.q_proj", "self_attn.k_proj": "attn.k_proj", "self_attn.v_proj": "attn.v_proj",
        "self_attn.o_proj": "attn.output_proj", "mlp.gate_proj": "ffn.w1", "mlp.up_proj": "ffn.w3", "mlp.down_proj": "ffn.w2",
        "input_layernorm": "ln1", "post_attention_layernorm": "ln2"}


def make_published_weights(m):
    g = torch.Generator().manual_seed(m.seed)
    w = {}

    def tensor(name, *shape, std, mean=0.0):
        w[name] = (mean + torch.randn(*shape, generator=g) * std).double()

    # So small that the epsilon shows.
    tensor("model.embed_tokens.weight", VOCAB, m.d, std=0.02)
    for i in range(LAYERS):
        p = f"model.layers.{i}."
        for n, heads, std in (("q", m.heads, m.qk_std), ("k", m.kv_heads, m.qk_std), ("v", m.kv_heads, 0.2)):
            tensor(f"{p}self_attn.{n}_proj.weight", heads * m.head_dim, m.d, std=std)
            if m.qkv_bias:
                tensor(f"{p}self_attn.{n}_proj.bias", heads * m.head_dim, std=0.3)
        if m.qk_norm:
            tensor(f"{p}self_attn.q_norm.weight", m.head_dim, std=0.2, mean=1.0)
            tensor(f"{p}self_attn.k_norm.weight", m.head_dim, std=0.2, mean=1.0)
        tensor(f"{p}self_attn.o_proj.weight", m.d, m.heads * m.head_dim, std=0.02)
        tensor(f"{p}mlp.gate_proj.weight", m.ff, m.d, std=0.15)
        tensor(f"{p}mlp.up_proj.weight", m.ff, m.d, std=0.15)
        tensor(f"{p}mlp.down_proj.weight", m.d, m.ff, std=0.02)
        tensor(f"{p}input_layernorm.weight", m.d, std=0.2, mean=1.0)
        tensor(f"{p}post_attention_layernorm.weight", m.d, std=0.2, mean=1.0)
    tensor("model.norm.weight", m.d, std=0.2, mean=1.0)
    return w


def rotate_halves(x):  # element i of a head with element i + D / 2
    d = x.shape[-1]
    angle = torch.outer(torch.arange(x.shape[-2]).double(), THETA ** (-torch.arange(0, d, 2).double() / d))
    a, b = x.chunk(2, -1)
    return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -1)


def published_forward(m, w, ids):
    b, t = ids.shape

    def norm(x, name):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * w[name + ".weight"]

    x = w["model.embed_tokens.weight"][ids]
    for i in range(LAYERS):
        p = f"model.layers.{i}."
        y = norm(x, p + "input_layernorm")
        q, k, v = (F.linear(y, w[f"{p}self_attn.{n}_proj.weight"], w.get(f"{p}self_attn.{n}_proj.bias"))
                   .view(b, t, -1, m.head_dim).transpose(1, 2) for n in "qkv")
        if m.qk_norm:
            q, k = norm(q, p + "self_attn.q_norm"), norm(k, p + "self_attn.k_norm")
        k, v = (z.repeat_interleave(m.heads // m.kv_heads, 1) for z in (rotate_halves(k), v))
        a = F.scaled_dot_product_attention(rotate_halves(q), k, v, is_causal=True)
        x = x + F.linear(a.transpose(1, 2).reshape(b, t, -1), w[p + "self_attn.o_proj.weight"])
        y = norm(x, p + "post_attention_layernorm")
        h = F.silu(F.linear(y, w[p + "mlp.gate_proj.weight"])) * F.linear(y, w[p + "mlp.up_proj.weight"])
        x = x + F.linear(h, w[p + "mlp.down_proj.weight"])
    return F.linear(norm(x, "model.norm"), w["model.embed_tokens.weight"])


def to_ours(m, name, value):
    """The name and the layout of the tests: rotated elements of a head, or their rows, lie in pairs."""
    if name == "model.embed_tokens.weight":
        return "token_embeddings.weight", value
    if name == "model.norm.weight":
        return "ln_final.weight", value
    _, _, layer, *middle, kind = name.split(".")
    middle = ".".join(middle)
    if middle in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.q_norm", "self_attn.k_norm"):
        value = value.view(-1, 2, m.head_dim // 2, *value.shape[1:]).transpose(1, 2).reshape(value.shape)
    return f"layers.{layer}.{OURS[middle]}.{kind}", value


# ---- sliding windows, sinks and capped scores -------------------------------------------------------------------------

W_D, W_FF, W_VOCAB, W_LAYERS, W_HEADS, W_KV_HEADS, WINDOW, FULL_EVERY, CAP = 32, 40, 61, 3, 4, 2, 6, 3, 1.5


def make_windows_weights():
    g = torch.Generator().manual_seed(40)
    w = {}

    def tensor(name, *shape, std, mean=0.0):
        w[name] = (mean + torch.randn(*shape, generator=g) * std).double()

    tensor("token_embeddings.weight", W_VOCAB, W_D, std=1.0)
    tensor("lm_head.weight", W_VOCAB, W_D, std=0.1)
    tensor("ln_final.weight", W_D, std=0.2, mean=1.0)
    for i in range(W_LAYERS):
        p, kv = f"layers.{i}.", W_D // W_HEADS * W_KV_HEADS
        for n, width in (("q", W_D), ("k", kv), ("v", kv), ("output", W_D)):
            tensor(f"{p}attn.{n}_proj.weight", width, W_D, std=0.3)
            tensor(f"{p}attn.{n}_proj.bias", width, std=0.3)
        tensor(f"{p}attn.sinks", W_HEADS, std=1.0)
        tensor(f"{p}ffn.w1.weight", W_FF, W_D, std=0.15)
        tensor(f"{p}ffn.w2.weight", W_D, W_FF, std=0.15)
        tensor(f"{p}ffn.w3.weight", W_FF, W_D, std=0.15)
        for n in ("ln1", "ln2"):
            tensor(f"{p}{n}.weight", W_D, std=0.2, mean=1.0)
    return w


def windows_forward(w, ids):
    b, t = ids.shape
    back = torch.arange(t)[:, None] - torch.arange(t)[None, :]  # how far a key lies behind a query
    x = w["token_embeddings.weight"][ids]
    for i in range(W_LAYERS):
        p = f"layers.{i}."
        y = rms_norm(x, w[p + "ln1.weight"])
        q, k, v = (F.linear(y, w[f"{p}attn.{n}_proj.weight"], w[f"{p}attn.{n}_proj.bias"])
                   .view(b, t, -1, W_D // W_HEADS).transpose(1, 2) for n in "qkv")
        k, v = (z.repeat_interleave(W_HEADS // W_KV_HEADS, 1) for z in (rotate(k), v))
        scores = CAP * torch.tanh(rotate(q) @ k.transpose(-1, -2) / (W_D // W_HEADS) ** 0.5 / CAP)
        hidden = back < 0
        if (i + 1) % FULL_EVERY:
            hidden = hidden | (back >= WINDOW)
        scores = scores.masked_fill(hidden, float("-inf"))
        sinks = w[p + "attn.sinks"].view(1, -1, 1, 1).expand(b, -1, t, 1)
        a = torch.softmax(torch.cat((scores, sinks), -1), -1)[..., :-1] @ v
        x = x + F.linear(a.transpose(1, 2).reshape(b, t, W_D), w[p + "attn.output_proj.weight"], w[p + "attn.output_proj.bias"])
        y = rms_norm(x, w[p + "ln2.weight"])
        h = F.silu(y @ w[p + "ffn.w1.weight"].T) * (y @ w[p + "ffn.w3.weight"].T)
        x = x + h @ w[p + "ffn.w2.weight"].T
    return rms_norm(x, w["ln_final.weight"]) @ w["lm_head.weight"].T


DOCUMENTS = (1, 9, 3, 8)


def documents_forward(w, ids):
    """Each document by itself, with its own positions: what a packed sequence must come to."""
    return torch.cat([windows_forward(w, part) for part in ids.split(DOCUMENTS, 1)], 1)


def same(name, value):
    return name, value


# ---- what both have -----------------------------------------------------------------------------------------------------


def write(folder, w, model, renamed, lr, vocab=VOCAB, context=CONTEXT, documents=()):
    out = DATA / folder
    out.mkdir(parents=True, exist_ok=True)
    g = torch.Generator().manual_seed(21)
    ids = torch.randint(0, vocab, (BATCH, context), generator=g)
    labels = torch.randint(0, vocab, (BATCH, context), generator=g)
    labels[0, 3] = -100  # an ignored label
    for i in range(1, len(documents)):
        labels[:, sum(documents[:i]) - 1] = -100  # of a token that the next document follows
    stored = {}
    for name, value in w.items():
        ours, value = renamed(name, value)
        stored[ours] = value.float().contiguous()
    save_file(stored, out / "weights.safetensors")
    save_file({"input_ids": ids, "labels": labels}, out / "inputs.safetensors")

    params = {k: torch.nn.Parameter(v.float().double()) for k, v in w.items()}
    optimizer = torch.optim.AdamW(params.values(), lr=lr)
    expected = {}

    def keep(what, values):
        for name, value in values:
            ours, value = renamed(name, value)
            expected[f"{what}.{ours}"] = value.clone()

    for step in range(3):
        optimizer.zero_grad()
        logits = model(params, ids)
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        loss.backward()
        if step == 0:
            expected["logits"], expected["loss"] = logits.detach().clone(), loss.detach().clone()
            keep("grad", ((k, p.grad) for k, p in params.items()))
        optimizer.step()
    keep("weight", ((k, p.detach()) for k, p in params.items()))
    save_file({k: v.float().contiguous() for k, v in expected.items()}, out / "expected.safetensors",
              metadata={"made_by": f"scripts/make_decoder_reference.py, torch {torch.__version__}, float64"})


def main():
    write("decoder", make_weights(), forward, same, lr=1e-2)
    for folder, m in (("decoder_grouped", QWEN2), ("decoder_qk_norm", QWEN3)):
        weights = make_published_weights(m)
        # Small weights, and the gradients by the keys' biases cancel: an update of AdamW is the sign of a gradient.
        write(folder, weights, functools.partial(published_forward, m), functools.partial(to_ours, m), lr=1e-4)
        # The same weights as such models are published.
        save_file({k: v.float() for k, v in weights.items()}, DATA / folder / "published.safetensors")
    write("decoder_windows", make_windows_weights(), windows_forward, same, lr=1e-4, vocab=W_VOCAB)
    write("decoder_documents", make_windows_weights(), documents_forward, same, lr=1e-4, vocab=W_VOCAB,
          documents=DOCUMENTS)
    for folder, family in decoder_families.FAMILIES.items():
        weights = decoder_families.make_weights(family, seed=40)
        write(folder, weights, functools.partial(decoder_families.forward, family),
              functools.partial(decoder_families.to_ours, family), lr=1e-3, vocab=family.vocab, context=13)


if __name__ == "__main__":
    main()
