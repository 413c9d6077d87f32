"""Attention in PyTorch, beside the workload `attention`, with its steps reported to assay.

softmax(q k' / sqrt(head_dim)) v and its gradients, of random normal q, k, v [batch_size, heads, seq, head_dim], causal or not,
with a sliding window of the last tokens or without, and with documents of one length packed in the sequence or without; with
--value_dim v and the result have so many columns (latent attention).
configs/pytorch-attention.toml runs it, and `assay ab` sets it beside assay's own (docs/performance.md). The parameters have the
names that they have there:

  impl naive, execution eager   products, scale, mask and softmax one by one, with the matrix of all scores
  impl naive, execution graph   the same under torch.compile
  impl flash                    scaled_dot_product_attention; --sdpa says by which of its kernels, auto: PyTorch chooses; flex:
                                compiled FlexAttention. With a window or documents the former gets a mask of booleans, the latter a
                                block mask. varlen: torch.nn.attention.varlen over the documents (CUDA, 16-bit types)
  pass forward                  keeps nothing for a backward; backward: the forward ran once in set-up; both: one after the other

--capture yes replays a step as a CUDA graph, whose parts are not timed; else `forward` and `backward` are. The last step's results are held against float64, by the
formulas, in the first and the last head: `error_share` is the largest error over the one that the dtype may have. Threads are those
of OMP_NUM_THREADS. Alone it takes some steps.

Needs: pip install torch (2.x; a C++ compiler for torch.compile on the CPU).
"""
import argparse
import contextlib
import math

from pytorch_peer import Parts, PeakMemory, assay, captured, give_up

# The norm of the error over the norm of what is right.
TOLERANCES = {"fp32": 1e-5, "tf32": 5e-3, "fp16": 3e-3, "bf16": 2e-2}


def parser():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    p.add_argument("--batch_size", type=int, default=8)
    p.add_argument("--heads", type=int, default=1)
    p.add_argument("--seq", type=int, default=256)
    p.add_argument("--head_dim", type=int, default=64)
    p.add_argument("--value_dim", type=int, default=0, help="columns of v and of the result; 0: head_dim")
    p.add_argument("--causal", default="true", choices=["true", "false"])
    p.add_argument("--window", type=int, default=0, help="with causal: a query sees so many tokens up to its own; 0: all")
    p.add_argument("--document_tokens", type=int, default=0,
                   help="with causal: a query sees no token of other documents, each of so many; 0: all are of one")
    p.add_argument("--dtype", default="fp32", choices=TOLERANCES)
    p.add_argument("--impl", default="flash", choices=["naive", "flash"])
    p.add_argument("--execution", default="graph", choices=["eager", "graph"])
    p.add_argument("--pass", dest="passes", default="both", choices=["forward", "backward", "both"])
    p.add_argument("--sdpa", default="auto", choices=["auto", "math", "flash", "efficient", "cudnn", "flex", "varlen"])
    p.add_argument("--capture", default="no", choices=["no", "yes"])
    p.add_argument("--seed", type=int, default=0)
    return p


def reference(torch, q, k, v, dout, causal, window, documents):
    """out, dq, dk, dv of one head in float64, by the formulas and without autograd, some queries at a time."""
    q, k, v, dout = (x.detach().double() for x in (q, k, v, dout))
    seq, scale = q.shape[0], q.shape[1] ** -0.5
    out, dq, dk, dv = (torch.zeros_like(x) for x in (dout, q, k, v))
    count = max(1, 2**22 // seq)
    for first in range(0, seq, count):
        rows = slice(first, min(first + count, seq))
        scores = q[rows] @ k.T * scale
        if causal:
            scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu(first + 1), -math.inf)
        if window:
            scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).tril(first - window), -math.inf)
        if documents:
            document = torch.arange(seq, device=q.device) // documents
            scores.masked_fill_(document[rows, None] != document, -math.inf)
        weights = torch.softmax(scores, -1)
        out[rows] = weights @ v
        of_weights = dout[rows] @ v.T
        of_scores = weights * (of_weights - (of_weights * weights).sum(-1, keepdim=True)) * scale
        dq[rows] = of_scores @ k
        dk += of_scores.T @ q[rows]
        dv += weights.T @ dout[rows]
    return out, dq, dk, dv


class Attention:
    def __init__(self, torch, case):
        self.torch, self.case = torch, case
        self.cuda, self.causal = case.device == "cuda", case.causal == "true"
        torch.manual_seed(case.seed)
        torch.set_float32_matmul_precision("high" if case.dtype == "tf32" else "highest")
        dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(case.dtype, torch.float32)

        def drawn(columns):
            if not case.document_tokens:
                return torch.randn(case.batch_size, case.heads, case.seq, columns, dtype=dtype)
            # token by token, as assay has them then
            return torch.randn(case.batch_size, case.seq, case.heads, columns, dtype=dtype).transpose(1, 2)

        value_dim = case.value_dim or case.head_dim
        with torch.device(case.device):
            self.inputs = [drawn(columns).requires_grad_() for columns in (case.head_dim, case.head_dim, value_dim)]
            self.dout = drawn(value_dim)
            # 0 and -infinity, made once and added, as assay's eager does
            hidden = torch.ones((case.seq, case.seq), dtype=torch.bool).triu(1)
            if case.window:
                hidden |= torch.ones_like(hidden).tril(-case.window)
            if case.document_tokens:
                document = torch.arange(case.seq) // case.document_tokens
                hidden |= document[:, None] != document
            self.mask = torch.zeros_like(hidden, dtype=dtype).masked_fill_(hidden, -math.inf) if self.causal else None
            self.visible = ~hidden if case.window or case.document_tokens else None
        self.run = self.sdpa if case.impl == "flash" else self.naive
        if case.impl == "flash" and case.sdpa == "flex":
            self.run = self.flex()
        if case.impl == "flash" and case.sdpa == "varlen":
            self.run = self.varlen()
        if case.impl == "naive" and case.execution == "graph":
            if case.passes == "backward":  # its buffers are used again in each step
                import torch._functorch.config
                torch._functorch.config.donated_buffer = False
            self.run = torch.compile(self.naive, dynamic=False)
        self.parts = Parts(torch, self.cuda)
        self.is_captured = case.capture == "yes"
        self.out, self.gradients = None, []

    def naive(self, q, k, v):
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.case.head_dim)
        if self.causal:
            scores = scores + self.mask
        return self.torch.softmax(scores, -1) @ v

    def sdpa(self, q, k, v):
        return self.torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=self.visible,
                                                                     is_causal=self.causal and self.visible is None)

    def flex(self):
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        seq = self.case.seq
        window, tokens = self.case.window or seq, self.case.document_tokens or seq

        def visible(batch, head, query, key):
            return (key <= query) & (query - key < window) & (query // tokens == key // tokens)

        mask = create_block_mask(visible, None, None, seq, seq, device=self.case.device) if self.causal else None
        compiled = self.torch.compile(flex_attention, dynamic=False)
        return lambda q, k, v: compiled(q, k, v, block_mask=mask)

    def varlen(self):
        from torch.nn.attention.varlen import varlen_attn
        case = self.case
        tokens = min(case.document_tokens or case.seq, case.seq)
        starts = [s * case.seq + first for s in range(case.batch_size) for first in range(0, case.seq, tokens)]
        starts = self.torch.tensor([*starts, case.batch_size * case.seq], dtype=self.torch.int32, device=case.device)
        window = (case.window - 1 if case.window else -1, 0 if self.causal else -1)

        def run(*inputs):
            packed = (x.transpose(1, 2).reshape(-1, case.heads, case.head_dim) for x in inputs)
            out = varlen_attn(*packed, starts, starts, tokens, tokens, window_size=window)
            return out.view(case.batch_size, case.seq, case.heads, case.head_dim).transpose(1, 2)

        return run

    def kernels(self):
        """Those that scaled_dot_product_attention may choose from."""
        from torch.nn.attention import SDPBackend, sdpa_kernel
        only = {"math": SDPBackend.MATH, "flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION,
                "cudnn": SDPBackend.CUDNN_ATTENTION}
        return contextlib.nullcontext() if self.case.sdpa in ("auto", "flex", "varlen") else sdpa_kernel(only[self.case.sdpa])

    def part(self, name):
        return contextlib.nullcontext() if self.is_captured else self.parts.part(name)

    def forward(self):
        self.out = self.run(*self.inputs)

    def backward(self):
        self.gradients = self.torch.autograd.grad(self.out, self.inputs, self.dout,
                                                  retain_graph=self.case.passes == "backward")

    def step(self):
        if self.case.passes == "forward":
            with self.part("forward"), self.torch.no_grad():
                self.forward()
            return
        if self.case.passes == "both":
            with self.part("forward"):
                self.forward()
        with self.part("backward"):
            self.backward()

    def set_up(self):
        """The step, after three of them: they compile, and choose kernels."""
        if self.is_captured:
            return captured(self.torch, self.step, before=self.forward)
        self.forward()
        for _ in range(3):
            self.step()
        return self.step

    def error_share(self):
        """The error of the last step's results over the one that the dtype may have."""
        shares = []
        last = self.case.batch_size * self.case.heads - 1
        for head in sorted({0, last}):
            def of_head(x):
                return x.detach().flatten(0, 1)[head]
            right = reference(self.torch, *(of_head(x) for x in (*self.inputs, self.dout)), self.causal,
                              self.case.window, self.case.document_tokens)
            for found, expected in zip((self.out, *self.gradients), right):
                error = (of_head(found).double() - expected).norm() / expected.norm()
                shares.append(error / TOLERANCES[self.case.dtype])
        return self.torch.stack(shares).max().item()  # what is no number stays none


def main():
    case = parser().parse_args()
    import torch

    if case.window and case.causal != "true":
        give_up("--window is of causal attention: --causal true")
    if case.document_tokens and case.causal != "true":
        give_up("--document_tokens is of causal attention: --causal true")
    cuda = case.device == "cuda"
    if case.sdpa == "varlen" and not (cuda and case.dtype in ("bf16", "fp16")):
        give_up("--sdpa varlen needs --device cuda and --dtype bf16 or fp16")
    if case.capture == "yes" and not cuda:
        give_up("--capture yes needs --device cuda: a step is captured as a CUDA graph")
    attention = Attention(torch, case)
    with attention.kernels():
        try:
            step = attention.set_up()
        except RuntimeError as error:
            if not any(text in str(error) for text in ("No available kernel", "No viable backend")):
                raise
            give_up(f"scaled_dot_product_attention has no kernel '{case.sdpa}' for it: {error}")
        peak = PeakMemory(torch, cuda)
        for _ in assay.steps(alone=5, synchronize=torch.cuda.synchronize if cuda else None):
            step()
    attention.parts.report()
    peak.report()
    share = attention.error_share()
    assay.result("error_share", share, better="lower")
    libraries = f"cuDNN {torch.backends.cudnn.version()}" if cuda else f"{torch.get_num_threads()} threads"
    print(f"torch {torch.__version__}, {libraries}, error over the tolerance {share:.3g}")


if __name__ == "__main__":
    main()
