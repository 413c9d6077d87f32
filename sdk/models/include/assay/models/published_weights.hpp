// Weights of decoders as they are published: safetensors files with the names of Hugging Face's Llama, Qwen2 and Qwen3
// models.
//
//   model.embed_tokens.weight, model.norm.weight, lm_head.weight (not of tied embeddings), and of each layer
//   model.layers.{i}.self_attn.{q,k,v,o}_proj.weight, self_attn.{q,k,v}_proj.bias, self_attn.{q,k}_norm.weight,
//   mlp.{gate,up,down}_proj.weight, input_layernorm.weight, post_attention_layernorm.weight; of models whose branches
//   end with norms (Gemma) input_layernorm, post_attention_layernorm, pre_feedforward_layernorm,
//   post_feedforward_layernorm
//
// Their rotary embedding turns element i of a head together with element i + D/2, ours elements 2i and 2i + 1: the rows
// of q and k (and the elements of their biases and norms) are put into our order, which changes no score.
#pragma once
#include <assay/models/decoder.hpp>
#include <assay/train/checkpoint.hpp>

namespace assay::models {

bool has_published_names(const train::SafetensorsReader& file);

// The layout for train::load_parameters.
train::FileLayout published_layout(const DecoderConfig& config);

}  // namespace assay::models
