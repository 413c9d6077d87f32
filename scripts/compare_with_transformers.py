#!/usr/bin/env python3
"""Sets the workload `decoder` beside Hugging Face's transformers: of each family a tiny model with random weights, which
transformers writes as it writes published ones (config.json, model.safetensors). assay reads both files, runs a step in
fp32 on the CPU, and dumps logits, loss and gradients; transformers computes the same in float64.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install torch transformers safetensors numpy
    /tmp/venv/bin/python scripts/compare_with_transformers.py [--assay build/ci/bin/assay] [FAMILY...]

Prints the largest relative errors, by tensor in the Euclidean norm, and fails where logits are further off than 1e-5.
Nothing comes from the network. Not part of the tests: transformers is large, and changes.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file

BATCH, CONTEXT, MOST = 2, 29, 1e-5
SHAPE = dict(vocab_size=97, hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=6,
             num_key_value_heads=2, max_position_embeddings=64, attention_dropout=0.0)


def rope(theta=1e4, **scaling):
    return {"rope_theta": theta, "rope_type": "default"} | scaling


LLAMA3 = rope(500.0, rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=32)
YARN = rope(1e4, rope_type="yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=4.0, beta_slow=0.5)
LINEAR = rope(1e4, rope_type="linear", factor=8.0)

# Dense layers alone: experts are those of the workload moe. No configuration of it is read (config_file): what assay is
# given is below.
DEEPSEEK = dict(vocab_size=97, hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=3,
                max_position_embeddings=64, first_k_dense_replace=3, kv_lora_rank=20, qk_nope_head_dim=10,
                qk_rope_head_dim=8, v_head_dim=12, tie_word_embeddings=False)
DEEPSEEK_YARN = YARN | {"mscale": 0.5, "mscale_all_dim": 0.9}

FAMILIES = {
    "deepseek_v2": lambda: transformers.DeepseekV2Config(**DEEPSEEK, q_lora_rank=None, rope_parameters=rope()),
    "deepseek_v2_yarn": lambda: transformers.DeepseekV2Config(**DEEPSEEK, q_lora_rank=14, rope_parameters=DEEPSEEK_YARN),
    "deepseek_v3": lambda: transformers.DeepseekV3Config(**DEEPSEEK, q_lora_rank=14, rope_parameters=DEEPSEEK_YARN,
                                                         num_key_value_heads=3),
    "llama": lambda: transformers.LlamaConfig(**SHAPE, rope_parameters=rope(), tie_word_embeddings=False),
    "llama3": lambda: transformers.LlamaConfig(**SHAPE, rope_parameters=LLAMA3, tie_word_embeddings=True, head_dim=16),
    "llama_yarn": lambda: transformers.LlamaConfig(**SHAPE, rope_parameters=YARN, tie_word_embeddings=False),
    "llama_linear": lambda: transformers.LlamaConfig(**SHAPE, rope_parameters=LINEAR, tie_word_embeddings=False),
    "qwen2": lambda: transformers.Qwen2Config(**SHAPE, rope_parameters=rope(1e6), tie_word_embeddings=True,
                                              rms_norm_eps=1e-6),
    "qwen3": lambda: transformers.Qwen3Config(**SHAPE, rope_parameters=rope(1e6), tie_word_embeddings=True, head_dim=16,
                                              rms_norm_eps=1e-6),
    "gemma": lambda: transformers.GemmaConfig(**SHAPE, rope_parameters=rope(), head_dim=16),
    # Caps that bend scores and logits of such weights.
    "gemma2": lambda: transformers.Gemma2Config(**SHAPE, rope_parameters=rope(), head_dim=16, query_pre_attn_scalar=20,
                                                sliding_window=8, attn_logit_softcapping=2.0,
                                                final_logit_softcapping=3.0),
    "gemma3": lambda: transformers.Gemma3TextConfig(
        **SHAPE, head_dim=16, query_pre_attn_scalar=20, sliding_window=8,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters={"full_attention": rope(1e6, rope_type="linear", factor=8.0), "sliding_attention": rope(1e4)}),
}


def write_model(config, folder):
    torch.manual_seed(50)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").float()
    with torch.no_grad():
        for name, p in model.named_parameters():
            # Weights and biases that show: a fresh model's norms are all ones, or zeros, and its biases zeros.
            p.copy_(torch.randn_like(p) * 0.2 + (p if name.endswith("norm.weight") else 0))
    model.save_pretrained(folder)
    return model.double().eval()


def by_transformers(model, ids, labels):
    logits = model(ids).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
    loss.backward()
    return logits.detach(), loss.detach()


def parameters_of(config):
    """Of assay's workload: the configuration's file, or, of a family that it does not read, what the file says."""
    if not hasattr(config, "kv_lora_rank"):
        return 'config_file = "config.json"'
    of_file = {"d_model": "hidden_size", "d_ff": "intermediate_size", "layers": "num_hidden_layers",
               "heads": "num_attention_heads", "norm_eps": "rms_norm_eps"}
    same = ("vocab_size", "kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    values = {name: getattr(config, field) for name, field in (of_file | {name: name for name in same}).items()}
    scaling = config.rope_parameters
    values["rope_theta"] = scaling["rope_theta"]
    if scaling["rope_type"] == "yarn":
        of_scores, of_angles = (1 + 0.1 * scaling[m] * math.log(scaling["factor"]) for m in ("mscale_all_dim", "mscale"))
        values |= {"rope_factor": scaling["factor"], "rope_original_context": scaling["original_max_position_embeddings"],
                   "rope_beta_fast": scaling["beta_fast"], "rope_beta_slow": scaling["beta_slow"],
                   "rope_attention_factor": of_angles / of_scores, "rope_mscale_all_dim": scaling["mscale_all_dim"]}
        return "\n".join([f"{name} = {value or 0}" for name, value in values.items()] + ['rope_scaling = "yarn"'])
    return "\n".join(f"{name} = {value or 0}" for name, value in values.items())


def by_assay(assay, folder, parameters):
    (folder / "x.toml").write_text(f"""schema = 1
name = "compared"
[workload]
plugin = "decoder"
[workload.params]
{parameters}
weights = "model.safetensors"
inputs = "inputs.safetensors"
batch_size = {BATCH}
context_length = {CONTEXT}
pass = "forward_backward"
dump = "step.safetensors"
[measure]
warmup = 0
steps = 1
[run]
device = "cpu"
""")
    done = subprocess.run([assay, "run", "x.toml"], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"assay failed in {folder}:\n{done.stdout}{done.stderr}")
    record = json.loads(next(folder.glob("results/*/*/cases.jsonl")).read_text().splitlines()[0])
    if record["verify"]["status"] != "ok":
        sys.exit(f"assay's own verification: {record['verify']}")
    return load_file(next(folder.glob("results/*/*/step.safetensors")))


def error(got, expected):
    return float((got.double() - expected).norm() / expected.norm())


def compare(assay, name):
    with tempfile.TemporaryDirectory() as where:
        folder = pathlib.Path(where)
        model = write_model(FAMILIES[name](), folder)
        g = torch.Generator().manual_seed(51)
        ids, labels = (torch.randint(0, SHAPE["vocab_size"], (BATCH, CONTEXT), generator=g) for _ in range(2))
        save_file({"input_ids": ids, "labels": labels}, folder / "inputs.safetensors")
        dump = by_assay(assay, folder, parameters_of(model.config))
        logits, loss = by_transformers(model, ids, labels)
        # Of both the same name and layout.
        embeddings = model.get_input_embeddings().weight.grad
        worst = error(dump["logits"], logits)
        print(f"{name:14} logits {worst:.1e}, loss {abs(float(dump['loss']) / float(loss) - 1):.1e}, "
              f"gradient by the embedding {error(dump['grad.token_embeddings.weight'], embeddings):.1e}", flush=True)
        return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--assay", default=str(pathlib.Path(__file__).resolve().parent.parent / "build/ci/bin/assay"))
    parser.add_argument("family", nargs="*", metavar="FAMILY", help=", ".join(FAMILIES))
    arguments = parser.parse_args()
    print(f"torch {torch.__version__}, transformers {transformers.__version__}; relative errors")
    worst = {name: compare(arguments.assay, name) for name in arguments.family or FAMILIES}
    beyond = [name for name, found in worst.items() if not found <= MOST]
    if beyond:
        sys.exit(f"logits are further off than {MOST}: {', '.join(beyond)}")


if __name__ == "__main__":
    main()
