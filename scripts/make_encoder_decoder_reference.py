#!/usr/bin/env python3
"""Makes the reference tensors of the encoder-decoder's parity tests, tests/data/encoder_decoder, with PyTorch.

The model is PyTorch's own nn.Transformer in float64, so that what the tests see is assay's rounding alone; weights are
rounded to float32 first, so that both start from the same numbers. Dropout is 0: its masks are another generator's.
Needs: pip install torch numpy safetensors. Run from anywhere; the files are committed, so nobody has to.
"""
import pathlib

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file

VOCAB, D, HEADS, ENCODERS, DECODERS, FF, SEQUENCE, BATCH = 31, 16, 2, 2, 2, 24, 7, 3
OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "encoder_decoder"


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.pos = nn.Embedding(VOCAB, D), nn.Embedding(SEQUENCE, D)
        self.core = nn.Transformer(D, HEADS, ENCODERS, DECODERS, FF, 0.0, batch_first=True)
        self.out = nn.Linear(D, VOCAB)

    def forward(self, source, target):
        places = torch.arange(SEQUENCE)
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1]).double()
        embedded = [self.emb(tokens) + self.pos(places[: tokens.shape[1]]) for tokens in (source, target)]
        return self.out(self.core(*embedded, tgt_mask=mask))


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(30)
    model = Model()
    with torch.no_grad():  # PyTorch starts most vectors at 0 or 1, where a mistake would not show
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter += 0.2 * torch.randn_like(parameter)
    source, target = (torch.randint(0, VOCAB, (BATCH, SEQUENCE)) for _ in range(2))
    save_file({k: v.clone() for k, v in model.state_dict().items()}, OUT / "weights.safetensors")
    save_file({"source": source, "target": target}, OUT / "inputs.safetensors")

    model.double()
    # What is added to all keys alike changes no softmax, so the gradient by their bias is 0, but for rounding, which an
    # epsilon of 1e-8 would blow up to steps of the learning rate.
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, eps=1e-4)
    expected = {}
    for step in range(3):
        optimizer.zero_grad()
        logits = model(source, target[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())
        loss.backward()
        if step == 0:
            expected["logits"], expected["loss"] = logits.detach().clone(), loss.detach().clone()
            expected.update({f"grad.{k}": p.grad.clone() for k, p in model.named_parameters()})
        optimizer.step()
    expected.update({f"weight.{k}": p.detach().clone() for k, p in model.named_parameters()})
    save_file({k: v.float().contiguous() for k, v in expected.items()}, OUT / "expected.safetensors",
              metadata={"made_by": f"scripts/make_encoder_decoder_reference.py, torch {torch.__version__}, float64"})


if __name__ == "__main__":
    main()
