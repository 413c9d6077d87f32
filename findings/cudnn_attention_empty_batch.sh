#!/usr/bin/env bash
# cuDNN 9.19 (torch 2.11.0, nvidia-cudnn-frontend 1.19.0): attention does not write the output of a batch entry without tokens. Needs a GPU.
#
# Expected: with a padding mask, zeros (or NaN) where an entry of the batch has the length 0, and -inf in its statistics.
# Behaviour: neither the output nor the statistics of the entry are written: what stood there stays. An H100 80GB HBM3 (driver 580.159.04) did the same.
# Why it matters: a step that reuses its memory carries values of the step before into the next operation, so a result depends on what ran earlier; who clears
# the output first does not see it.
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
q, k, v = (torch.randn(3, 2, 256, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
lengths = torch.tensor([256, 0, 100], device="cuda", dtype=torch.int32).reshape(3, 1, 1, 1)
output, stats = attention(q, k, v, use_padding_mask=True, seq_len_q=lengths, seq_len_kv=lengths)
kept = []
for entry, length in enumerate(lengths.flatten().tolist()):
    kept.append([(tensor[entry] == 7).float().mean().item() for tensor in (output, stats)])
    print(f"length {length}: {100 * kept[-1][0]:.0f}% of the output and {100 * kept[-1][1]:.0f}% of the statistics still hold the 7 from before; "
          f"the last row begins with {output[entry, 0, -1, 0].item():g}, its statistic is {stats[entry, 0, -1, 0].item():g}")
print(f"cuDNN {cudnn.backend_version()}")
if not (kept[0][0] < 0.01 and kept[1][0] == 1):
    sys.exit("the behaviour has changed")
PYTHON
