#!/usr/bin/env bash
# onnxruntime 1.22.0 on the CPU: ReduceMax has or loses a NaN by its place, and the largest number with it; Erf of NaN is 1.
#
# Expected: Max of two tensors with a NaN is NaN here, so ReduceMax over a dimension is, too; erf(NaN) is NaN as in C.
# Behaviour: ReduceMax compares several numbers side by side and then these; which of a NaN and a number stays depends on the side on which
# it stands. Of 0 to 63 a NaN in the first place makes the result NaN, in the second 62, though 63 is there, later 63. Erf clamps its argument.
# Why it matters: "is there a NaN?" asked by a maximum over activations or gradients of an exported model is answered by their order.
# Seen with Python 3.11.7 and NumPy 2.2.0 on Debian 12, x86-64:
#   ReduceMax of 0..63 with NaN at 0, 1, 31, 63: nan 62 63 62
#   Max(NaN, 1): nan, ArgMax of 1, NaN, 3: 1
#   Erf(NaN): 1, Tanh(NaN): nan
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check onnxruntime==1.22.0 onnx==1.17.0 numpy==2.2.0
"$folder/python/bin/python" - <<'PYTHON'
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper


def run(operation, *inputs, result=TensorProto.FLOAT, **attributes):
    names = [f"x{i}" for i in range(len(inputs))]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape) for name, x in zip(names, inputs)]
    graph = helper.make_graph([helper.make_node(operation, names, ["y"], **attributes)], "one", values,
                              [helper.make_tensor_value_info("y", result, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip(names, inputs)))[0]


def number(array):
    return f"{float(np.ravel(array)[0]):g}"


numbers = np.arange(64, dtype=np.float32)
most = [number(run("ReduceMax", np.where(numbers == place, np.float32("nan"), numbers), keepdims=0)) for place in (0, 1, 31, 63)]
print("ReduceMax of 0..63 with NaN at 0, 1, 31, 63:", *most)
nan, one = np.full(1, np.nan, dtype=np.float32), np.ones(1, dtype=np.float32)
of_two = number(run("Max", nan, one))
place = number(run("ArgMax", np.array([1, np.nan, 3], dtype=np.float32), result=TensorProto.INT64, keepdims=0))
print(f"Max(NaN, 1): {of_two}, ArgMax of 1, NaN, 3: {place}")
erf, tanh = number(run("Erf", nan)), number(run("Tanh", nan))
print(f"Erf(NaN): {erf}, Tanh(NaN): {tanh}")
if "nan" not in most or "63" not in most or (of_two, place, erf, tanh) != ("nan", "1", "1", "nan"):
    sys.exit("the behaviour has changed")
PYTHON
