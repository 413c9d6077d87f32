#!/usr/bin/env bash
# safetensors 0.8.0: its NumPy writer stores a transposed array under the transposed shape with the elements in the old order.
#
# Expected: load(save(x)) equals x for every array, or save() refuses what is not contiguous, as the PyTorch writer does.
# Behaviour: save() takes the array's bytes as they lie in memory and the shape of the view. A transpose, an array in Fortran's order and a
# slice of columns come back as other numbers under the right shape, without a word. 0.5.3 wrote the transpose right.
# Why it matters: projections are stored as their transposes between frameworks, and weights[:, :n] cuts a head out. assay reads such
# files as weights and cannot see that the numbers are in the wrong places.
# Seen with Python 3.11.7 on Debian 12:
#   contiguous: the same
#   transposed: other numbers
#   Fortran's order: other numbers
#   columns 0 and 2 of 4: other numbers
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check safetensors==0.8.0 numpy==2.2.0
"$folder/python/bin/python" - <<'PYTHON'
import sys

import numpy as np
from safetensors.numpy import load, save

x = np.arange(12, dtype=np.float32).reshape(3, 4)
forms = {"contiguous": x, "transposed": x.T, "Fortran's order": np.asfortranarray(x), "columns 0 and 2 of 4": x[:, ::2]}
same = {}
for name, array in forms.items():
    back = load(save({"x": array}))["x"]
    same[name] = back.shape == array.shape and bool((back == array).all())
    print(f"{name}: {'the same' if same[name] else 'other numbers'}")
if list(same.values()) != [True, False, False, False]:
    sys.exit("the behaviour has changed")
PYTHON
