"""A decoder in PyTorch on sequences whose tokens the ranks share out, with its steps reported to assay.

The model is that of pytorch_decoder.py. torch.distributed.tensor.experimental.context_parallel cuts ids, labels and rotary tables, and
makes attention a ring (or gathers keys and values, --rotate allgather); DistributedDataParallel averages the gradients. Each block is
computed again in backward, and so is each part of the rows' loss. configs/pytorch-context-parallel.toml runs it, beside
context-parallel.toml. Each rank is a process with torchrun's variables; on one rank nothing is cut.

Needs: GPUs, pip install torch (2.9 or later).
"""
import argparse
import contextlib
import os

from pytorch_decoder import SIZES, build_model, model_of
from pytorch_peer import PeakMemory, assay, give_up


def parser():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    p.add_argument("--size", default="qwen3-1.7b", choices=SIZES)
    p.add_argument("--layers", type=int, help="in place of the size's")
    p.add_argument("--vocab_size", type=int, help="in place of the size's")
    p.add_argument("--batch_size", type=int, default=1)
    p.add_argument("--context_length", type=int, default=8192, help="of the whole sequence")
    p.add_argument("--loss_chunks", type=int, default=32)
    p.add_argument("--mode", default="compiled", choices=["eager", "compiled"])
    p.add_argument("--backend", default="flash", choices=["flash", "cudnn", "efficient"], help="of attention")
    p.add_argument("--rotate", default="allgather", choices=["allgather", "alltoall"], help="how keys and values go round")
    p.add_argument("--seed", type=int, default=0)
    return p


def build_trainer(torch, m, case):
    """A module whose forward is the mean loss of this rank's rows."""
    from torch.utils.checkpoint import checkpoint

    class Training(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = build_model(torch, m, case.context_length, "flash")
            if case.mode == "compiled":
                for block in self.model.blocks:
                    block.compile()
            rows_loss = self.rows_loss
            self.rows_loss_run = torch.compile(rows_loss) if case.mode == "compiled" else rows_loss

        def rows_loss(self, x, labels):
            logits = self.model.head(self.model.norm(x)).float()
            return torch.nn.functional.cross_entropy(logits, labels, reduction="sum")

        def forward(self, ids, labels):
            x = self.model.embedding(ids)
            for block in self.model.blocks:
                x = checkpoint(block, x, self.model.cos, self.model.sin, None, use_reentrant=False)
            parts = zip(x.flatten(0, 1).chunk(case.loss_chunks), labels.flatten().chunk(case.loss_chunks), strict=True)
            return sum(checkpoint(self.rows_loss_run, a, b, use_reentrant=False) for a, b in parts) / labels.numel()

    return Training()


def main():
    case = parser().parse_args()
    if case.device != "cuda":
        give_up("torch's context_parallel has attention of GPUs alone; take run.device = \"cuda\"")
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.experimental import context_parallel
    try:
        from torch.distributed.tensor.experimental._context_parallel._attention import set_rotate_method
    except ImportError:  # where PyTorch had it before 2.10
        from torch.distributed.tensor.experimental._attention import set_rotate_method
    from torch.nn.attention import SDPBackend, sdpa_kernel

    ranks = int(os.environ.get("WORLD_SIZE", 1))
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    torch.manual_seed(case.seed)
    m = model_of(case)
    with torch.device("cuda"):
        training = build_trainer(torch, m, case)
        ids, labels = (torch.randint(0, m.vocab_size, (case.batch_size, case.context_length)) for _ in range(2))
    run, cut = training, contextlib.nullcontext()
    if ranks > 1:
        dist.init_process_group("nccl")
        mesh = init_device_mesh("cuda", (ranks,), mesh_dim_names=("cp",))
        set_rotate_method(case.rotate)
        run = torch.nn.parallel.DistributedDataParallel(training, gradient_as_bucket_view=True, broadcast_buffers=False)
        tables = [training.model.cos, training.model.sin]
        cut = context_parallel(mesh, buffers=[ids, labels, *tables], buffer_seq_dims=[1, 1, 0, 0])
    optimizer = torch.optim.AdamW(training.parameters(), lr=1e-4, fused=True)
    backend = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION,
               "efficient": SDPBackend.EFFICIENT_ATTENTION}[case.backend]

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = run(ids, labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    with cut, sdpa_kernel(backend):
        for _ in range(2):
            loss = step()
        torch.cuda.synchronize()
        peak = PeakMemory(torch, True)
        for _ in assay.steps(alone=3, synchronize=torch.cuda.synchronize):
            loss = step()
        if ranks > 1:
            dist.all_reduce(loss)
        loss = loss.item() / ranks
    peak.report()
    assay.result("loss", loss, unit="nats", better="lower")
    print(f"torch {torch.__version__}, {ranks} ranks, loss {loss}")
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
