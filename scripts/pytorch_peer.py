"""What the programs in PyTorch share that stand beside assay's workloads (pytorch_*.py): the way to assay.py, the times of
a step's parts, a step as a CUDA graph, and the most that they hold."""
import contextlib
import pathlib
import statistics
import sys
import time

for folder in ("plugins/command/client", "command"):  # of the sources, of an installation
    sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / folder))
import assay  # noqa: E402


def give_up(reason):
    """Ends the program because it cannot do what is asked of it, whoever runs it."""
    assay.fail("unsupported", reason)
    sys.exit(reason)


class Clock:
    """Moments and the milliseconds between two of them: of the device's timeline on a GPU (events), of the host on the CPU. Those
    of a GPU are known once it has been waited for."""

    def __init__(self, torch, on_gpu):
        self.torch, self.on_gpu = torch, on_gpu

    def now(self):
        if not self.on_gpu:
            return time.perf_counter()
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def ms(self, begin, end):
        return begin.elapsed_time(end) if self.on_gpu else 1e3 * (end - begin)


class Parts:
    """The parts of a step by the program's own clock, in ms, so that `assay ab --metric forward` sets them beside the phase of
    assay's workload that has the name. They are no phases, whose ends assay hears when it gets to it: late where all processors are
    busy, and on a GPU after a wait for the device. On the CPU they are metrics of the step. On a GPU, where events mark them as they
    mark the phases of assay's own workloads, reading them takes time, so report() gives their means over the measured steps."""

    def __init__(self, torch, on_gpu):
        self.clock = Clock(torch, on_gpu)
        self.moments = {}

    @contextlib.contextmanager
    def part(self, name):
        begin = self.clock.now()
        yield
        end = self.clock.now()
        if not assay.is_measured():
            return
        if self.clock.on_gpu:
            self.moments.setdefault(name, []).append((begin, end))
        else:
            assay.metric(name, self.clock.ms(begin, end), unit="ms", better="lower")

    def report(self):
        for name, pairs in self.moments.items():
            mean = statistics.fmean(self.clock.ms(begin, end) for begin, end in pairs)
            assay.result(name, mean, unit="ms", better="lower")


def captured(torch, enqueue, before=lambda: None):
    """What `enqueue` enqueues as a CUDA graph: a function that launches it. Its tensors keep their places. `before` is what it
    needs to have run once: a backward runs on the stream on which its forward did."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        before()
        for _ in range(3):  # libraries choose and connect before the capture
            enqueue()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        enqueue()
    return graph.replay


class PeakMemory:
    """The most that the program holds from here on, without what compiling took: in tensors on a GPU, as a process on the
    CPU (of all its life where the kernel does not let it begin anew)."""

    def __init__(self, torch, on_gpu):
        self.torch, self.on_gpu = torch, on_gpu
        if on_gpu:
            torch.cuda.reset_peak_memory_stats()
            return
        with contextlib.suppress(OSError):
            pathlib.Path("/proc/self/clear_refs").write_text("5")

    def mib(self):
        if self.on_gpu:
            return self.torch.cuda.max_memory_allocated() / 2**20
        status = pathlib.Path("/proc/self/status").read_text()
        return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM:"))

    def report(self):
        assay.result("peak_mib", self.mib(), unit="MiB", better="lower")
