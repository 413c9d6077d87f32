"""A training step of the encoder-decoder in PyTorch, beside the workload `encoder_decoder`, with its steps reported to assay.

The model is nn.Transformer with an embedding that source and target share, learned positions and a head, as
plugins/encoder_decoder/README.md has it; fused AdamW; fp16 with loss scaling. configs/pytorch-encoder-decoder.toml runs it, and
`assay ab` sets it beside assay's own (docs/performance.md). It trains on one batch, which lies on the device before the first step,
whereas each step of assay's takes a new one from its loader. Alone it takes some steps.

Set-up compiles, and takes three steps. `loss` is that of the last step, `parameters` their number. Threads are those of OMP_NUM_THREADS.

Needs: pip install torch (2.x; a C++ compiler for the compiled modes on the CPU).
"""
import argparse

from pytorch_peer import Parts, PeakMemory, assay

# d_model, heads, layers of each stack, d_ff, sequence: as plugins/encoder_decoder/README.md has them
PRESETS = {"3.5M": (128, 4, 3, 512, 256), "60M": (512, 8, 6, 2048, 256), "220M": (768, 12, 12, 3072, 256),
           "2.9B": (2048, 32, 24, 8192, 512)}
MODES = {"eager": None, "compiled": "default", "best-compiled": "max-autotune-no-cudagraphs"}  # of torch.compile


def parser():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    p.add_argument("--preset", default="3.5M", choices=PRESETS)
    p.add_argument("--batch_size", type=int, default=16)
    p.add_argument("--vocab_size", type=int, default=8192)
    p.add_argument("--dropout", type=float, default=0.1)
    p.add_argument("--amp", default="off", choices=["fp16", "bf16", "off"])
    p.add_argument("--mode", default="eager", choices=MODES)
    p.add_argument("--seed", type=int, default=0)
    return p


def build_model(torch, preset, vocabulary, dropout):
    nn = torch.nn
    d_model, heads, layers, d_ff, sequence = PRESETS[preset]

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.pos = nn.Embedding(vocabulary, d_model), nn.Embedding(sequence, d_model)
            self.core = nn.Transformer(d_model, heads, layers, layers, d_ff, dropout, batch_first=True)
            self.out = nn.Linear(d_model, vocabulary)

        def embed(self, tokens):
            return self.emb(tokens) + self.pos(torch.arange(tokens.shape[1], device=tokens.device))

        def forward(self, source, target):
            mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1], device=target.device)
            return self.out(self.core(self.embed(source), self.embed(target), tgt_mask=mask, tgt_is_causal=True))

    return Model()


class Trainer:
    def __init__(self, torch, case):
        self.torch, self.case = torch, case
        torch.manual_seed(case.seed)
        shape = (case.batch_size, PRESETS[case.preset][4])
        # In a `with`: a default device that stays is asked about at every call, 1 us each.
        with torch.device(case.device):
            self.model = build_model(torch, case.preset, case.vocab_size, case.dropout)
            self.source, self.target = (torch.randint(0, case.vocab_size, shape) for _ in range(2))
        self.run = torch.compile(self.model, mode=MODES[case.mode]) if MODES[case.mode] else self.model
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        self.scaler = torch.amp.GradScaler(case.device, enabled=case.amp == "fp16")
        dtype = torch.float16 if case.amp == "fp16" else torch.bfloat16
        self.cast = torch.autocast(case.device, dtype=dtype, enabled=case.amp != "off")
        self.parts = Parts(torch, case.device == "cuda")
        self.loss = None

    def set_up(self):
        for _ in range(3):
            self.step()
        if self.case.device == "cuda":
            self.torch.cuda.synchronize()

    def step(self):
        with self.parts.part("forward"):
            self.optimizer.zero_grad(set_to_none=True)
            with self.cast:
                logits = self.run(self.source, self.target[:, :-1])
                self.loss = self.torch.nn.functional.cross_entropy(logits.flatten(0, 1), self.target[:, 1:].flatten())
        with self.parts.part("backward"):
            self.scaler.scale(self.loss).backward()
        with self.parts.part("optimizer"):
            self.scaler.step(self.optimizer)
            self.scaler.update()


def main():
    case = parser().parse_args()
    import torch

    cuda = case.device == "cuda"
    trainer = Trainer(torch, case)
    trainer.set_up()
    peak = PeakMemory(torch, cuda)
    for _ in assay.steps(alone=5, synchronize=torch.cuda.synchronize if cuda else None):
        trainer.step()
    trainer.parts.report()
    peak.report()
    loss = trainer.loss.item()
    assay.result("loss", loss)
    assay.result("parameters", sum(p.numel() for p in trainer.model.parameters()))
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, loss {loss}")


if __name__ == "__main__":
    main()
