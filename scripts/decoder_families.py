"""Decoders as families of models publish them, in PyTorch's own operations and float64: by the names and the layout of
the files of their weights. For scripts/make_decoder_reference.py; shares nothing with assay or with transformers.
"""
import dataclasses
import math

import torch
import torch.nn.functional as F


@dataclasses.dataclass(frozen=True)
class Latent:
    """Multi-head latent attention (DeepSeek-V2, V3), by the names of the published configurations."""
    kv_lora_rank: int
    q_lora_rank: int  # 0: queries are a product of the token
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int

    @property
    def qk_head_dim(self):
        return self.qk_nope_head_dim + self.qk_rope_head_dim


@dataclasses.dataclass(frozen=True)
class Family:
    layers: int = 2
    vocab: int = 53
    d: int = 24
    ff: int = 40
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 6
    theta: float = 100.0
    eps: float = 1e-5
    tied: bool = True
    # As config.json has it, of the layers that see everything.
    scaling: dict = dataclasses.field(default_factory=dict)
    # Norms before and after each branch, whose weights count from one; GeGLU; embeddings times sqrt(d).
    gemma: bool = False
    qk_norm: bool = False      # of each head of queries and keys
    query_scalar: float = 0.0  # scores are divided by its root; 0: head_dim
    full_every: int = 1        # every so many layers one sees everything; the others have local_theta
    local_theta: float = 0.0
    score_cap: float = 0.0     # scores s become cap tanh(s / cap), and logits likewise; 0: they stay
    logit_cap: float = 0.0
    window: int = 0            # tokens that they see, their own among them; 0: all before it
    latent: Latent = None      # in the place of kv_heads and head_dim


def frequencies(theta, head_dim, scaling):
    """Of each pair in radians a position, and what cosines and sines are multiplied by: by the formulas of the papers."""
    f = theta ** (-torch.arange(0, head_dim, 2).double() / head_dim)
    kind = scaling.get("rope_type", "none")
    if kind == "none":
        return f, 1.0
    if kind == "linear":
        return f / scaling["factor"], 1.0
    turns = scaling["original_max_position_embeddings"] * f / (2 * math.pi)
    if kind == "llama3":
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        kept = ((turns - low) / (high - low)).clamp(0, 1)
        return f * kept + f / scaling["factor"] * (1 - kept), 1.0
    assert kind == "yarn", kind

    def pair_that_turns(times):
        return head_dim / 2 * math.log(scaling["original_max_position_embeddings"] / (2 * math.pi * times)) / math.log(theta)

    first, last = math.floor(pair_that_turns(scaling["beta_fast"])), math.ceil(pair_that_turns(scaling["beta_slow"]))
    first, last = max(first, 0), min(last, head_dim - 1)
    kept = 1 - ((torch.arange(head_dim // 2).double() - first) / (last - first)).clamp(0, 1)
    magnitude = yarn_mscale(scaling, "mscale") / yarn_mscale(scaling, "mscale_all_dim") if "mscale" in scaling else \
        0.1 * math.log(scaling["factor"]) + 1
    return f * kept + f / scaling["factor"] * (1 - kept), magnitude


def yarn_mscale(scaling, name):
    return 0.1 * scaling[name] * math.log(scaling["factor"]) + 1


def rotate(x, theta, scaling):  # element i of a head with element i + head_dim / 2
    f, magnitude = frequencies(theta, x.shape[-1], scaling)
    angle = torch.outer(torch.arange(x.shape[-2]).double(), f)
    a, b = x.chunk(2, -1)
    return magnitude * torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -1)


def rotate_pairs(x, theta, scaling):  # element 2 i with element 2 i + 1, as complex numbers
    f, magnitude = frequencies(theta, x.shape[-1], scaling)
    angle = torch.outer(torch.arange(x.shape[-2]).double(), f)
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.full_like(angle, magnitude), angle)).flatten(-2)


def latent_attention(m, y, linear, norm):
    """What the output product reads of a layer's normed tokens."""
    a, (b, t, _) = m.latent, y.shape

    def by_heads(x, *widths):
        return x.view(b, t, -1, sum(widths)).transpose(1, 2).split(widths, -1)

    q = linear(norm(linear(y, "q_a_proj"), "q_a_layernorm"), "q_b_proj") if a.q_lora_rank else linear(y, "q_proj")
    q, q_turned = by_heads(q, a.qk_nope_head_dim, a.qk_rope_head_dim)
    latent, shared = linear(y, "kv_a_proj_with_mqa").split((a.kv_lora_rank, a.qk_rope_head_dim), -1)
    k, v = by_heads(linear(norm(latent, "kv_a_layernorm"), "kv_b_proj"), a.qk_nope_head_dim, a.v_head_dim)
    shared = rotate_pairs(shared[:, None], m.theta, m.scaling).expand(-1, m.heads, -1, -1)
    q, k = torch.cat((q, rotate_pairs(q_turned, m.theta, m.scaling)), -1), torch.cat((k, shared), -1)
    scale = a.qk_head_dim ** -0.5 * (yarn_mscale(m.scaling, "mscale_all_dim") ** 2 if m.scaling else 1)
    scores = (q @ k.transpose(-1, -2) * scale).masked_fill(torch.ones(t, t).triu(1).bool(), float("-inf"))
    return (torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, t, -1)


def make_weights(m, seed):
    g = torch.Generator().manual_seed(seed)
    w = {}
    one = 0.0 if m.gemma else 1.0

    def tensor(name, *shape, std, mean=0.0):
        w[name + ".weight"] = (mean + torch.randn(*shape, generator=g) * std).double()

    tensor("model.embed_tokens", m.vocab, m.d, std=0.3)
    norms = ("input_layernorm", "post_attention_layernorm")
    if m.gemma:
        norms += ("pre_feedforward_layernorm", "post_feedforward_layernorm")
    for i in range(m.layers):
        p = f"model.layers.{i}."
        if a := m.latent:
            if a.q_lora_rank:
                tensor(f"{p}self_attn.q_a_proj", a.q_lora_rank, m.d, std=0.3)
                tensor(f"{p}self_attn.q_a_layernorm", a.q_lora_rank, std=0.2, mean=one)
            tensor(f"{p}self_attn." + ("q_b_proj" if a.q_lora_rank else "q_proj"), m.heads * a.qk_head_dim,
                   a.q_lora_rank or m.d, std=0.3)
            tensor(f"{p}self_attn.kv_a_proj_with_mqa", a.kv_lora_rank + a.qk_rope_head_dim, m.d, std=0.3)
            tensor(f"{p}self_attn.kv_a_layernorm", a.kv_lora_rank, std=0.2, mean=one)
            tensor(f"{p}self_attn.kv_b_proj", m.heads * (a.qk_nope_head_dim + a.v_head_dim), a.kv_lora_rank, std=0.3)
        for n, heads in () if m.latent else (("q", m.heads), ("k", m.kv_heads), ("v", m.kv_heads)):
            tensor(f"{p}self_attn.{n}_proj", heads * m.head_dim, m.d, std=0.3)
        tensor(f"{p}self_attn.o_proj", m.d, m.heads * (m.latent.v_head_dim if m.latent else m.head_dim), std=0.2)
        tensor(f"{p}mlp.gate_proj", m.ff, m.d, std=0.2)
        tensor(f"{p}mlp.up_proj", m.ff, m.d, std=0.2)
        tensor(f"{p}mlp.down_proj", m.d, m.ff, std=0.2)
        for n in norms:
            tensor(p + n, m.d, std=0.2, mean=one)
        for n in ("q", "k") if m.qk_norm else ():
            tensor(f"{p}self_attn.{n}_norm", m.head_dim, std=0.2, mean=one)
    tensor("model.norm", m.d, std=0.2, mean=one)
    if not m.tied:
        tensor("lm_head", m.vocab, m.d, std=0.2)
    return w


def capped(x, cap):
    return cap * torch.tanh(x / cap) if cap else x


def forward(m, w, ids):
    b, t = ids.shape

    def norm(x, name):
        weight = w[name + ".weight"] + (1 if m.gemma else 0)
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + m.eps) * weight

    def linear(x, name):
        return F.linear(x, w[name + ".weight"])

    def attention(p, i, y):
        if m.latent:
            return latent_attention(m, y, lambda x, n: linear(x, f"{p}self_attn.{n}"), lambda x, n: norm(x, f"{p}self_attn.{n}"))
        sees_all = (i + 1) % m.full_every == 0
        theta, scaling = (m.theta, m.scaling) if sees_all else (m.local_theta, {})
        q, k, v = (linear(y, f"{p}self_attn.{n}_proj").view(b, t, -1, m.head_dim).transpose(1, 2) for n in "qkv")
        if m.qk_norm:
            q, k = norm(q, p + "self_attn.q_norm"), norm(k, p + "self_attn.k_norm")
        q, k = (rotate(z, theta, scaling) for z in (q, k))
        k, v = (z.repeat_interleave(m.heads // m.kv_heads, 1) for z in (k, v))
        behind = torch.arange(t)[:, None] - torch.arange(t)
        seen = (behind >= 0) & (behind < (t if sees_all or m.window == 0 else m.window))
        scores = capped(q @ k.transpose(-1, -2) * (m.query_scalar or m.head_dim) ** -0.5, m.score_cap)
        a = scores.masked_fill(~seen, -math.inf).softmax(-1) @ v
        return a.transpose(1, 2).reshape(b, t, -1)

    x = w["model.embed_tokens.weight"][ids] * (m.d ** 0.5 if m.gemma else 1)
    for i in range(m.layers):
        p = f"model.layers.{i}."
        a = linear(attention(p, i, norm(x, p + "input_layernorm")), p + "self_attn.o_proj")
        x = x + (norm(a, p + "post_attention_layernorm") if m.gemma else a)
        y = norm(x, p + ("pre_feedforward_layernorm" if m.gemma else "post_attention_layernorm"))
        gate = linear(y, p + "mlp.gate_proj")
        gate = F.gelu(gate, approximate="tanh") if m.gemma else F.silu(gate)
        h = linear(gate * linear(y, p + "mlp.up_proj"), p + "mlp.down_proj")
        x = x + (norm(h, p + "post_feedforward_layernorm") if m.gemma else h)
    logits = F.linear(norm(x, "model.norm"), w["model.embed_tokens.weight" if m.tied else "lm_head.weight"])
    return capped(logits, m.logit_cap)


OURS = {"self_attn.q_proj": "attn.q_proj", "self_attn.k_proj": "attn.k_proj", "self_attn.v_proj": "attn.v_proj",
        "self_attn.o_proj": "attn.output_proj", "self_attn.q_norm": "attn.q_norm", "self_attn.k_norm": "attn.k_norm",
        "self_attn.q_a_proj": "attn.q_a_proj", "self_attn.q_a_layernorm": "attn.q_a_norm", "self_attn.q_b_proj": "attn.q_b_proj",
        "self_attn.kv_a_proj_with_mqa": "attn.kv_a_proj", "self_attn.kv_a_layernorm": "attn.kv_a_norm",
        "self_attn.kv_b_proj": "attn.kv_b_proj", "mlp.gate_proj": "ffn.w1", "mlp.up_proj": "ffn.w3",
        "mlp.down_proj": "ffn.w2", "input_layernorm": "ln1"}
OURS_OF_MODEL = {"model.embed_tokens.weight": "token_embeddings.weight", "model.norm.weight": "ln_final.weight",
                 "lm_head.weight": "lm_head.weight"}
NORMS = {"post_attention_layernorm": "ln2"}
GEMMA_NORMS = {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ln2",
               "post_feedforward_layernorm": "post_ffw_norm"}


def to_ours(m, name, value):
    """The name and the layout of the tests: rows of a head that are rotated against each other lie in pairs, as those of
    latent attention do in the published files."""
    if name in OURS_OF_MODEL:
        return OURS_OF_MODEL[name], value
    _, _, layer, *middle, kind = name.split(".")
    middle = ".".join(middle)
    if not m.latent and middle.startswith(("self_attn.q_", "self_attn.k_")):
        value = value.view(-1, 2, m.head_dim // 2, *value.shape[1:]).transpose(1, 2).reshape(value.shape)
    return f"layers.{layer}.{(OURS | (GEMMA_NORMS if m.gemma else NORMS))[middle]}.{kind}", value


FAMILIES = {
    # Of three pairs one stays, one is between, and one is divided by the factor.
    "decoder_llama3": Family(scaling={"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0,
                                      "high_freq_factor": 4.0, "original_max_position_embeddings": 32}),
    "decoder_yarn": Family(tied=False, head_dim=8, theta=1e4,
                           scaling={"rope_type": "yarn", "factor": 8.0, "beta_fast": 4.0, "beta_slow": 0.25,
                                    "original_max_position_embeddings": 64}),
    # Of two layers the first one has the local rotation.
    "decoder_gemma": Family(gemma=True, qk_norm=True, query_scalar=10.0, full_every=2, window=5, local_theta=20.0, eps=1e-3,
                            scaling={"rope_type": "linear", "factor": 4.0}),
    # Both caps, near the largest score and logit.
    "decoder_gemma2": Family(gemma=True, query_scalar=10.0, full_every=2, window=5, local_theta=100.0, score_cap=1.5,
                             logit_cap=4.0),
    # DeepSeek-V3's form, with a rotation whose magnitude is not 1, and V2-Lite's.
    "decoder_latent": Family(tied=False, heads=3, theta=1e4, eps=1e-6, latent=Latent(10, 9, 5, 8, 7),
                             scaling={"rope_type": "yarn", "factor": 8.0, "beta_fast": 4.0, "beta_slow": 0.25,
                                      "original_max_position_embeddings": 64, "mscale": 0.5, "mscale_all_dim": 0.9}),
    "decoder_latent_lite": Family(heads=3, eps=1e-6, latent=Latent(11, 0, 7, 6, 5)),
}
