#!/usr/bin/env python3
"""memory_snapshot_test.py ASSAY WORK: runs a small decoder with [profile] memory_snapshot and kernels, and walks the
pickle: the page memory_viz reads these opcodes alone, recomputes addresses from the blocks, and pairs the events."""
import json
import pathlib
import pickle
import pickletools
import shutil
import subprocess
import sys

ALLOWED = set(
    "PROTO APPEND APPENDS BINGET LONG_BINGET BININT BININT1 BININT2 LONG1 SHORT_BINUNICODE BINUNICODE EMPTY_DICT "
    "EMPTY_LIST EMPTY_TUPLE MARK MEMOIZE BINPUT SETITEM SETITEMS TUPLE TUPLE1 TUPLE2 TUPLE3 NEWTRUE NEWFALSE NONE "
    "BINFLOAT LIST DICT FRAME STOP".split())

EXPERIMENT = """
schema = 1
name = "snapshot"
[workload]
plugin = "decoder"
[workload.params]
d_model = 32
d_ff = 64
layers = 2
heads = 2
vocab_size = 50
batch_size = 2
context_length = 16
pass = "train_step"
[measure]
warmup = 1
steps = 2
[run]
device = "cpu"
[profile]
memory_snapshot = true
kernels = true
"""


def run(assay, work):
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    (work / "experiment.toml").write_text(EXPERIMENT)
    done = subprocess.run([assay, "run", "experiment.toml", "--quiet"], cwd=work, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    folder = work / "results" / "snapshot" / "latest"
    return folder, json.loads((folder / "cases.jsonl").read_text())


def check_segments(segments):
    names = set()
    for segment in segments:
        at, in_use = segment["address"], 0
        for block in segment["blocks"]:
            assert block["address"] == at, "the blocks do not tile their segment"
            assert block["size"] > 0
            at += block["size"]
            assert block["state"] in ("active_allocated", "inactive"), block["state"]
            if block["state"] == "active_allocated":
                in_use += block["size"]
                names.add(block["frames"][0]["name"])
        assert at == segment["address"] + segment["total_size"], "the blocks do not fill their segment"
        assert in_use == segment["allocated_size"] == segment["active_size"]
        assert segment["segment_type"] in ("large", "small") and segment["segment_pool_id"] == (0, 0)
        assert segment["is_expandable"] is False and segment["stream"] == 0
    return names


def check_trace(trace, segments):
    held, blocks, named = {}, {}, set()
    last_us = 0
    for event in trace:
        assert event["time_us"] >= last_us, "the events are not in the order of time"
        last_us = event["time_us"]
        for frame in event["frames"]:
            assert set(frame) == {"name", "filename", "line"}
        action, address, size = event["action"], event.get("addr"), event["size"]
        if action == "segment_alloc":
            assert address not in held
            held[address] = size
        elif action == "segment_free":
            assert held.pop(address) == size
        elif action == "alloc":
            assert any(a <= address and address + size <= a + n for a, n in held.items()), "outside every segment"
            assert all(address + size <= a or a + n <= address for a, n in blocks.items()), "on top of another"
            blocks[address] = size
            named.add(event["frames"][0]["name"])
        elif action in ("free_requested", "free_completed"):
            assert blocks.get(address) == size, "a release of what is not held"
            if action == "free_completed":
                del blocks[address]
        else:
            raise AssertionError("unknown action " + action)
    assert held == {s["address"]: s["total_size"] for s in segments}
    assert blocks == {b["address"]: b["size"] for s in segments for b in s["blocks"] if b["state"] != "inactive"}, \
        "the trace does not end where the segments stand"
    return named


def main():
    assay, work = sys.argv[1], pathlib.Path(sys.argv[2])
    folder, record = run(assay, work)
    assert record["memory_snapshot"] == "memory_case-0001.pickle", record.get("memory_snapshot")
    note = "kernels: the cpu device offers no trace of them; their table needs a GPU"
    assert note in record["notes"], record["notes"]
    data = (folder / record["memory_snapshot"]).read_bytes()
    used = {opcode.name for opcode, _, _ in pickletools.genops(data)}
    assert used <= ALLOWED, used - ALLOWED
    snapshot = pickle.loads(data)
    assert set(snapshot) == {"segments", "device_traces", "allocator_settings"}
    assert len(snapshot["device_traces"]) == 1
    in_blocks = check_segments(snapshot["segments"])
    in_trace = check_trace(snapshot["device_traces"][0], snapshot["segments"])
    assert in_blocks <= in_trace
    planned = in_trace - {s["frames"][0]["name"] for s in snapshot["segments"]}
    assert len(planned) > 20, "the tensors of the plan are missing: " + str(sorted(in_trace))
    assert {"parameters", "tokens", "optimizer state"} <= in_blocks, in_blocks
    print(f"{len(snapshot['segments'])} segments, {len(snapshot['device_traces'][0])} events, {len(planned)} tensors")


main()
