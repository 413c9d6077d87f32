"""Reports the steps of a script to `assay run`, whose plugin `command` runs it. Without assay the script runs as before.

    import assay

    for step in assay.steps(alone=100, synchronize=torch.cuda.synchronize):
        with assay.phase("forward"):
            loss = model(batch)
        assay.metric("loss", loss.item(), unit="nats", better="lower")
    assay.result("accuracy", accuracy(), better="higher")

How many steps there are, and which of them are measured, is the experiment's to say; `alone` is their number where
nobody measures. A step lasts from the answer to its question until the next question, on the clock of assay: what a
device has in flight then is not in it, unless `synchronize` waits for that. What stands before the loop is set-up.

Use it from one thread of one process; a rank has its own. One file, of the standard library alone; Python 3.8.
"""
import contextlib
import os
import select
import sys
import time

__version__ = "1.0.0"
__all__ = ["steps", "phase", "metric", "result", "fail", "is_measured", "is_run_by_assay"]


# How long an answer is asked for again and again before the script sleeps until it comes: assay's takes microseconds, that
# of other ranks longer, and meanwhile the script's other threads wait for the interpreter.
_BUSY_S = 0.02


class _Line:
    """The line to assay, opened when it is first used. `file` is None where the script runs alone.

    What a step needs is short, as it is part of the step's time: one write and one read, and no other call to the
    kernel."""

    def __init__(self):
        self.forked = False
        self.synchronize = None
        self.measured = False
        self.file = None
        text = os.environ.get("ASSAY_FD", "")
        if not text:
            return
        fd = int(text)
        os.set_inheritable(fd, False)  # a program that this one starts must not hold the line open
        self.file = os.fdopen(fd, "r+b", buffering=0)
        self.unread = b""
        self.busy = os.environ.get("ASSAY_WAITING") == "busy"
        if self.busy:
            os.set_blocking(fd, False)  # reading what is not there then gives None
        os.register_at_fork(after_in_child=self.note_fork)
        self.say("assay 1")
        sys.excepthook = self.report_exception

    def note_fork(self):
        self.forked = True

    def say(self, line):
        if self.file is not None:
            self.write(line.encode() + b"\n")

    def write(self, data):
        if self.forked:
            raise RuntimeError("assay: this process was forked from the one that assay listens to; report from there")
        try:
            while data:
                written = self.file.write(data)
                if written is None:
                    self.sleep_until(select.POLLOUT)
                else:
                    data = data[written:]
        except OSError as error:
            raise SystemExit(f"assay is gone: {error}") from None

    def sleep_until(self, event):
        readiness = select.poll()
        readiness.register(self.file.fileno(), event)
        readiness.poll()

    def read(self):
        """What assay has said, or the next part of it."""
        data = self.file.read(4096)
        if data is None:  # who has slept feeds a GPU later, which would be time of the step
            until = time.monotonic() + _BUSY_S
            while data is None and time.monotonic() < until:
                data = self.file.read(4096)
            while data is None:
                self.sleep_until(select.POLLIN)
                data = self.file.read(4096)
        if not data:
            raise SystemExit("assay is gone: it has closed the line")
        return data

    def ask(self):
        """Ends the step before; the words of the answer."""
        self.write(b"step\n")
        while b"\n" not in self.unread:
            self.unread += self.read()
        answer, self.unread = self.unread.split(b"\n", 1)
        return answer.split()

    def report_exception(self, kind, error, trace):
        """Tells of an exception that ends the script, before it is printed as ever."""
        if not self.forked and (issubclass(kind, MemoryError) or kind.__name__ == "OutOfMemoryError"):
            with contextlib.suppress(BaseException):
                self.say("fail oom " + (" ".join(str(error).split())[:1000] or kind.__name__))
        sys.__excepthook__(kind, error, trace)


_line = None


def _open():
    global _line
    if _line is None:
        _line = _Line()
    return _line


def is_run_by_assay():
    """Whether somebody measures."""
    return _open().file is not None


def is_measured():
    """Whether the step that is going on is one of those that count, and not of the warm-up."""
    return _open().measured


def steps(alone=10, synchronize=None):
    """The numbers of the steps, from 0, warm-up included. `synchronize` is called without arguments at the end of each
    step and of each phase: it waits until the device has done what was asked of it."""
    line = _open()
    line.synchronize = synchronize
    answer = line.ask() if line.file is not None else [b"whole"]
    if answer == [b"whole"]:  # nobody measures steps, though perhaps the whole
        yield from range(alone)
        return
    while answer[0] != b"end":
        line.measured = answer[0] == b"measure"
        yield int(answer[1])
        if synchronize is not None:
            synchronize()
        answer = line.ask()
    line.measured = False


class phase(contextlib.ContextDecorator):
    """A part of a step: `with assay.phase("forward"): ...`. Phases may nest, and may occur several times in a step."""

    def __init__(self, name):
        super().__init__()
        self.name = name

    def __enter__(self):
        _open().say(f"begin {self.name}")

    def __exit__(self, kind, error, trace):
        line = _open()
        if kind is not None or line.file is None:
            return
        if line.synchronize is not None:
            line.synchronize()
        line.say(f"end {self.name}")


def _figure(verb, name, value, unit, better):
    if better not in ("", "lower", "higher"):
        raise ValueError(f"better is {better!r}; expected 'lower', 'higher' or ''")
    for text in (name, unit):
        if len(text.split()) > 1:
            raise ValueError(f"{text!r} has a blank in it; expected one word")
    _open().say(f"{verb} {name} {float(value)!r} {unit or '-'} {better}".rstrip())


def metric(name, value, unit="", better=""):
    """A figure of the step that is going on; `better` is "lower", "higher" or ""."""
    _figure("metric", name, value, unit, better)


def result(name, value, unit="", better=""):
    """A figure of the case as a whole, at any time; the last value counts."""
    _figure("result", name, value, unit, better)


def fail(status, text):
    """Ends the case: `status` is "oom", "unsupported", "wrong_result" or "failed". The script ends itself."""
    _open().say(f"fail {status} " + " ".join(str(text).split())[:1000])
