"""A collective of torch.distributed, beside the workload `all_reduce`, with its steps reported to assay.

Each rank is a process with torchrun's variables. On the CPU PyTorch's own Gloo moves the bytes, with --device cuda NCCL does.
configs/pytorch-collectives.toml runs it, and `assay ab` sets it beside assay's own (docs/performance.md). The parameters have the
names that they have there:

  size_mb, size_bytes  of the larger buffer of a rank; size_bytes counts where it is not 0
  in_place             one buffer, and a rank's part is a piece of it; broadcast always has one. all_reduce has no other way here
  repeats              collectives in a step, one after the other and waited for together (NCCL: enqueued back to back)
  execution graph      NCCL: a step's collectives are captured once as a CUDA graph, and replayed

The time of a collective (`collective_us`, from which the bandwidths follow) is the mean over the measured steps on a rank, from the
call until the result is there: on the CPU by the clock, on a GPU between two events on the caller's stream, which waits for NCCL's.
The buffers hold small integers, which in-place sums let grow, as assay's do. After the steps the collective runs once more on
fresh integers, whose sums are numbers of the dtype in any order, and every element is compared: `wrong_elements`.
Threads are those of OMP_NUM_THREADS.

Needs: pip install torch (2.x).
"""
import argparse
import os
import sys

from pytorch_peer import Clock, assay, captured, give_up

COLLECTIVES = ["all_reduce", "reduce_scatter", "all_gather", "broadcast"]
MIB = 1 << 20
PERIOD = 65_521  # of the data: a prime, so that a piece in the wrong place shows
SIGNIFICANT_BITS = {"fp32": 24, "bf16": 8, "fp16": 11}


def parser():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    p.add_argument("--collective", default="all_reduce", choices=COLLECTIVES)
    p.add_argument("--dtype", default="fp32", choices=SIGNIFICANT_BITS)
    p.add_argument("--size_mb", type=float, default=1)
    p.add_argument("--size_bytes", type=int, default=0)
    p.add_argument("--in_place", default="true", choices=["true", "false"])
    p.add_argument("--repeats", type=int, default=1)
    p.add_argument("--execution", default="eager", choices=["eager", "graph"])
    return p


def element_count(collective, size_bytes, element_bytes, ranks):
    """Of the larger buffer: whole elements, and as many for each rank where each has a part."""
    count = size_bytes // element_bytes
    return count // ranks * ranks if collective in ("reduce_scatter", "all_gather") else count


def bus_factor(collective, ranks):
    """Bus bandwidth over algorithm bandwidth, as plugins/all_reduce/README.md has it."""
    share = (ranks - 1) / ranks
    return {"all_reduce": 2 * share, "reduce_scatter": share, "all_gather": share, "broadcast": 1.0}[collective]


def sent_by(rank, most, salt):
    """A period of integers up to `most` of both signs, others for each rank and each salt."""
    span, values, x = 2 * most + 1, [], 12_345 + 7919 * rank + 104_729 * salt
    for _ in range(PERIOD):
        x = (x * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % 2**64
        values.append((x >> 33) % span - most)
    return values


class Collective:
    def __init__(self, torch, case, rank, ranks):
        self.torch, self.dist, self.case, self.rank, self.ranks = torch, torch.distributed, case, rank, ranks
        self.cuda = case.device == "cuda"
        self.dtype = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[case.dtype]
        size_bytes = case.size_bytes or int(case.size_mb * MIB)
        count = element_count(case.collective, size_bytes, self.dtype.itemsize, ranks)
        if count == 0:
            sys.exit(f"{size_bytes} bytes hold not one element of {case.dtype} for each of {ranks} ranks; take more")
        self.bytes = count * self.dtype.itemsize
        self.most = 2 ** SIGNIFICANT_BITS[case.dtype] // ranks  # a sum of as many is a number of the dtype
        if self.most == 0:
            sys.exit(f"there is no exact sum of {case.dtype} over {ranks} ranks to verify with; take fewer, or another dtype")
        self.device = torch.device("cuda", torch.cuda.current_device()) if self.cuda else torch.device("cpu")
        self.whole = torch.zeros(count, dtype=self.dtype, device=self.device)
        self.part = None
        if case.collective in ("reduce_scatter", "all_gather"):
            length = count // ranks
            in_whole = self.whole[rank * length:(rank + 1) * length]
            self.part = in_whole if case.in_place == "true" else torch.zeros(length, dtype=self.dtype, device=self.device)
        elif case.in_place == "false":
            give_up(f"torch.distributed has {case.collective} in place alone; take in_place = true")
        self.clock = Clock(torch, self.cuda)
        self.moments = []
        self.write_sent(0)
        self.call()  # libraries connect in the first one
        if case.execution == "graph":
            self.call_all = captured(torch, self.call_all)

    def call(self):
        if self.case.collective == "all_reduce":
            self.dist.all_reduce(self.whole)
        elif self.case.collective == "reduce_scatter":
            self.dist.reduce_scatter_tensor(self.part, self.whole)
        elif self.case.collective == "all_gather":
            self.dist.all_gather_into_tensor(self.whole, self.part)
        else:
            self.dist.broadcast(self.whole, 0)

    def call_all(self):
        for _ in range(self.case.repeats):
            self.call()

    def step(self):
        begin = self.clock.now()
        self.call_all()
        end = self.clock.now()
        if assay.is_measured() or not assay.is_run_by_assay():
            self.moments.append((begin, end))

    def collective_ms(self):
        return sum(self.clock.ms(begin, end) for begin, end in self.moments) / len(self.moments) / self.case.repeats

    def periodic(self, period, count):
        """`count` elements of the data that repeats the integers of `period`."""
        period = self.torch.tensor(period, dtype=self.dtype, device=self.device)
        return period.repeat(-(-count // PERIOD))[:count]

    def write_sent(self, salt):
        """Fills what this rank sends, and spoils what it receives."""
        self.whole.fill_(float("nan"))
        if self.case.collective == "all_gather":
            self.part.copy_(self.periodic(sent_by(self.rank, self.most, salt), len(self.part)))
        else:
            if self.part is not None:
                self.part.fill_(float("nan"))
            self.whole.copy_(self.periodic(sent_by(self.rank, self.most, salt), len(self.whole)))

    def wrong_elements(self, salt=1):
        """Of this rank's result, of one more collective on fresh data; of a step as it was timed where it has one collective."""
        self.write_sent(salt)
        if self.case.repeats == 1:
            self.call_all()
        else:
            self.call()
        sent = [sent_by(rank, self.most, salt) for rank in range(self.ranks)]
        if self.case.collective == "all_gather":
            expected = self.torch.cat([self.periodic(each, len(self.part)) for each in sent])
            return (self.whole != expected).sum().item()
        if self.case.collective == "broadcast":
            return (self.whole != self.periodic(sent[0], len(self.whole))).sum().item()
        sums = self.periodic([sum(each) for each in zip(*sent)], len(self.whole))
        if self.case.collective == "all_reduce":
            return (self.whole != sums).sum().item()
        own = slice(self.rank * len(self.part), (self.rank + 1) * len(self.part))
        return (self.part != sums[own]).sum().item()


def main():
    case = parser().parse_args()
    import torch
    import torch.distributed as dist

    cuda = case.device == "cuda"
    if case.execution == "graph" and not cuda:
        give_up("gloo cannot be captured in a graph; take execution = \"eager\"")
    if cuda:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    # One rank has no variables: it meets nobody.
    alone = {} if "RANK" in os.environ else {"store": dist.HashStore(), "rank": 0, "world_size": 1}
    dist.init_process_group("nccl" if cuda else "gloo", **alone)
    collective = Collective(torch, case, dist.get_rank(), dist.get_world_size())
    for _ in assay.steps(alone=20, synchronize=torch.cuda.synchronize if cuda else None):
        collective.step()
    if cuda:
        torch.cuda.synchronize()
    ms = collective.collective_ms()
    bandwidth = collective.bytes / ms * 1e-6
    assay.result("message_bytes", collective.bytes, unit="bytes")
    assay.result("collective_us", 1e3 * ms, unit="us", better="lower")
    assay.result("algorithm_bandwidth_gbs", bandwidth, unit="GB/s", better="higher")
    bus = bandwidth * bus_factor(case.collective, collective.ranks)
    assay.result("bus_bandwidth_gbs", bus, unit="GB/s", better="higher")
    wrong = collective.wrong_elements()
    assay.result("wrong_elements", wrong, unit="elements", better="lower")
    library = "NCCL " + ".".join(map(str, torch.cuda.nccl.version())) if cuda else "its own Gloo"
    print(f"torch {torch.__version__} with {library}: {1e3 * ms:.4g} us, {bus:.4g} GB/s, {wrong} wrong elements")
    del collective  # a graph of collectives goes before their communicator
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
