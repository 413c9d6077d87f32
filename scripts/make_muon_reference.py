#!/usr/bin/env python3
"""Makes the reference tensors of Muon's parity test with torch.optim.Muon: tests/data/muon/steps.safetensors.

A wide, a tall and a square matrix take three steps with drawn gradients, by either factor of the learning rate: as the library
does, whose products are bf16, and with its bf16 replaced by float64, so that a test sees assay's rounding alone.
Needs: pip install 'torch>=2.9' numpy safetensors. Run from anywhere; the file is committed, so nobody has to.
"""
import pathlib

import torch
from safetensors.torch import save_file

SHAPES = {"wide": (12, 20), "tall": (20, 12), "square": (16, 16)}
STEPS, SETTINGS = 3, {"lr": 0.125, "weight_decay": 0.25, "momentum": 0.75, "nesterov": True}
DATA = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "muon"


def trained(weights, gradients, adjust):
    parameters = {name: torch.nn.Parameter(w.clone()) for name, w in weights.items()}
    optimizer = torch.optim.Muon(parameters.values(), adjust_lr_fn=adjust, **SETTINGS)
    for step in range(STEPS):
        for name, p in parameters.items():
            p.grad = gradients[name][step].to(p.dtype)
        optimizer.step()
    return {name: p.detach().float() for name, p in parameters.items()}


def main():
    g = torch.Generator().manual_seed(26)
    weights = {name: torch.randn(*shape, generator=g) * 0.1 for name, shape in SHAPES.items()}
    gradients = {name: [torch.randn(*shape, generator=g) * 0.01 for _ in range(STEPS)] for name, shape in SHAPES.items()}
    tensors = {f"weight.{name}": w for name, w in weights.items()}
    for name, of_steps in gradients.items():
        tensors |= {f"gradient.{step}.{name}": x for step, x in enumerate(of_steps)}
    bf16 = torch.bfloat16
    for adjust in ("original", "match_rms_adamw"):
        for name, w in trained(weights, gradients, adjust).items():
            tensors[f"bf16.{adjust}.{name}"] = w
        torch.bfloat16 = torch.float64  # what the library makes orthogonal
        try:
            exact = trained({name: w.double() for name, w in weights.items()}, gradients, adjust)
        finally:
            torch.bfloat16 = bf16
        for name, w in exact.items():
            tensors[f"float64.{adjust}.{name}"] = w
    DATA.mkdir(parents=True, exist_ok=True)
    save_file(tensors, DATA / "steps.safetensors", {"torch": torch.__version__})


if __name__ == "__main__":
    main()
