#!/usr/bin/env bash
# cuDNN 9.19 (torch 2.11.0, nvidia-cudnn-frontend 1.19.0): the left bound W of the sliding window counts the own key of the row. Needs a GPU.
#
# Expected: W keys before the row, and its own, as the window (left, right) of FlashAttention: (1, 0) there is two keys.
# Behaviour: the row sees W keys with its own: W = 1 is the diagonal, where the output is the row of V. An H100 80GB HBM3 (driver 580.159.04) did the same.
# Why it matters: two plugins that are given "a window of 1024" compute two functions that differ by one key a row, within the tolerance of a test on random
# data with long rows, so that no comparison of norms shows it.
# Seen on:
set -euo pipefail
[[ $(nvidia-smi -L 2>/dev/null || true) == GPU* ]] || { echo "skipped: needs a GPU"; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check torch==2.11.0 nvidia-cudnn-frontend==1.19.0
"$folder/python/bin/python" - <<'PYTHON'
import sys

import cudnn
import torch


def attention(q, k, v, **options):
    graph = cudnn.pygraph(io_data_type=cudnn.data_type.BFLOAT16, intermediate_data_type=cudnn.data_type.FLOAT, compute_data_type=cudnn.data_type.FLOAT)
    output, stats = torch.full_like(q, 7), torch.full((*q.shape[:3], 1), 7.0, device="cuda")
    pack = {graph.tensor_like(tensor): tensor for tensor in (q, k, v)}
    for name, tensor in [(name, tensor) for name, tensor in options.items() if isinstance(tensor, torch.Tensor)]:
        options[name] = graph.tensor_like(tensor)
        pack[options[name]] = tensor
    o, s = graph.sdpa(*list(pack)[:3], attn_scale=q.shape[-1] ** -0.5, generate_stats=True, **options)
    o.set_output(True).set_dim(output.shape).set_stride(output.stride())
    s.set_output(True).set_dim(stats.shape).set_stride(stats.stride()).set_data_type(cudnn.data_type.FLOAT)
    graph.build([cudnn.heur_mode.A])
    workspace = torch.empty(max(graph.get_workspace_size(), 1), device="cuda", dtype=torch.uint8)
    graph.execute({**pack, o: output, s: stats}, workspace)
    torch.cuda.synchronize()
    return output, stats


torch.manual_seed(1)
q, k, v = (torch.randn(1, 2, 256, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
scores = (q.float() @ k.float().transpose(-1, -2)) / 8
rows, columns = torch.arange(256, device="cuda")[:, None], torch.arange(256, device="cuda")[None, :]
kept = {}
for bound in (1, 2, 5, 64):
    output, _ = attention(q, k, v, diagonal_band_left_bound=bound, diagonal_band_right_bound=0)
    errors = {}
    for keys in (bound, bound + 1):  # with the own key of the row
        seen = (columns <= rows) & (columns > rows - keys)
        expected = torch.softmax(scores.masked_fill(~seen, float("-inf")), -1) @ v.float()
        errors[keys] = (output.float() - expected).abs().max().item()
    kept[bound] = min(errors, key=errors.get)
    print(f"left bound {bound}: " + ", ".join(f"error {error:.3g} from a window of {keys}" for keys, error in errors.items()))
print(f"cuDNN {cudnn.backend_version()}")
if any(keys != bound for bound, keys in kept.items()):
    sys.exit("the behaviour has changed")
PYTHON
