#include "experiment/model_configuration.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <vector>

#include "common/foreign_json.hpp"
#include "experiment/configuration_fields.hpp"
#include "experiment/model_families.hpp"

namespace assay::host::experiment {

namespace {

using Json = nlohmann::ordered_json;
using Fields = ConfigurationFields;

struct Parsed {
  Json json;
  std::string twice;  // the first name that an object has twice: the reader would have to guess which value counts
};
Parsed parsed(const std::string& text) {
  if (is_nested_deeper(text)) return {Json(Json::value_t::discarded), ""};
  std::vector<std::set<std::string>> open;
  std::string twice;
  const auto see = [&](int, Json::parse_event_t event, Json& found) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end && !open.empty()) open.pop_back();
    if (event == Json::parse_event_t::key && !open.empty() && !open.back().insert(found.get<std::string>()).second &&
        twice.empty())
      twice = found.get<std::string>();
    return true;
  };
  Json json = Json::parse(text, see, /*allow_exceptions=*/false);
  return {std::move(json), std::move(twice)};
}

class ConfigurationReader {
 public:
  ConfigurationReader(const Json& json, ModelConfiguration& out) : fields_(json, "", out.problems), out_(out) {}

  void read() {
    const Family* const family = find_family();
    if (!family) return;  // what is known is the family's
    for (const char* name : without_meaning) fields_.know(name);
    is_latent_ = family->latent;
    read_dimensions(*family);
    read_attention(*family);
    read_feed_forward(*family);
    read_experts(*family);
    const auto tied = fields_.boolean("tie_word_embeddings", !family->gemma);
    put("tied_embeddings", family->gemma ? std::optional(tied.value_or(true)) : tied);
    put("norm_eps", fields_.number("rms_norm_eps"));
    if (is_latent_)
      fields_.only("rms_norm_eps", 1e-6,
                   "norms of latents have it whatever the file says, and all norms have one here");
    put("norms_from_one", Value(family->gemma));
    put("scaled_embeddings", Value(family->gemma));
    put("post_norms", Value(family->post_norms));
    fields_.only("use_bidirectional_attention", false, "a token sees those before it");
    fields_.only("use_mrope", false, "a position is one number here");
    read_rotation(*family);
    fields_.name_unknown({fields_.known().begin(), fields_.known().end()});
  }

 private:
  template <class T>
  void put(DecidedParam param, const std::optional<T>& value) {
    if (value) out_.values[param.name()] = Value(*value);
  }
  void put(DecidedParam param, Value value) { out_.values[param.name()] = std::move(value); }

  const Family* find_family() {
    std::vector<std::string> types;
    for (const Family& f : known_families) types.emplace_back(f.model_type);
    const auto type = fields_.text("model_type");
    const auto found = std::find_if(std::begin(known_families), std::end(known_families),
                                    [&](const Family& f) { return type && *type == f.model_type; });
    if (found == std::end(known_families)) {
      if (type) fields_.problem("model_type", fmt::format("a family that is known here: {}", fmt::join(types, ", ")));
      return nullptr;
    }
    const Json expected = Json::array({found->architecture});
    if (!fields_.has("architectures"))
      fields_.missing("architectures");
    else if (*fields_.at("architectures") != expected)
      fields_.problem("architectures", expected.dump() + ", a language model of this family");
    return found;
  }

  void read_dimensions(const Family& family) {
    const auto width = fields_.count("hidden_size"), layers = fields_.count("num_hidden_layers"),
               heads = fields_.count("num_attention_heads"),
               key_heads = fields_.count("num_key_value_heads", family.requires_key_heads),
               columns = fields_.count("head_dim", family.requires_head_dim);
    put("d_model", width), put("layers", layers), put("heads", heads);
    put("d_ff", fields_.count("intermediate_size"));
    put("vocab_size", fields_.count("vocab_size"));
    // Where a file of Llama leaves them out, transformers takes as many heads of keys as of queries, and a quotient.
    put("kv_heads", Value(key_heads.value_or(0)));
    put("head_dim", Value(family.latent ? 0 : columns.value_or(0)));
    if (family.latent) return read_latents(heads, key_heads, columns);
    if (heads && key_heads && *heads % *key_heads != 0)
      fields_.problem("num_key_value_heads", fmt::format("a divisor of \"num_attention_heads\", {}", *heads));
    if (width && heads && !columns && *width % *heads != 0)
      fields_.problem("hidden_size", fmt::format("a multiple of \"num_attention_heads\", {}, or \"head_dim\"", *heads));
    if (columns && *columns % 2 != 0) fields_.problem("head_dim", "an even number, whose pairs are rotated");
    if (family.local_layers) return read_layer_types(family, layers.value_or(0));
    if (const Json* const kinds = fields_.at("layer_types")) {
      const bool all_full = kinds->is_array() && std::all_of(kinds->begin(), kinds->end(),
                                                             [](const Json& kind) { return kind == "full_attention"; });
      if (!all_full || (layers && static_cast<std::int64_t>(kinds->size()) != *layers))
        fields_.problem("layer_types",
                        "\"full_attention\" once for each of \"num_hidden_layers\": sliding windows "
                        "are not read from files");
    }
  }

  // A head's columns are those of its parts. transformers writes the rotated ones as "head_dim", too.
  void read_latents(std::optional<std::int64_t> heads, std::optional<std::int64_t> key_heads,
                    std::optional<std::int64_t> columns) {
    const auto rotated = fields_.count("qk_rope_head_dim");
    put("qk_rope_head_dim", rotated);
    for (const DecidedParam name :
         {DecidedParam("kv_lora_rank"), DecidedParam("qk_nope_head_dim"), DecidedParam("v_head_dim")})
      put(name, fields_.count(name.name()));
    if (fields_.requires_mention("q_lora_rank", "; null where queries are a product of the token"))
      put("q_lora_rank", Value(fields_.count("q_lora_rank", false).value_or(0)));
    if (heads && key_heads && *heads != *key_heads)
      fields_.problem("num_key_value_heads",
                      fmt::format("\"num_attention_heads\", {}: each head has its own keys and values", *heads));
    if (rotated && *rotated % 2 != 0) fields_.problem("qk_rope_head_dim", "an even number, whose pairs are rotated");
    if (rotated && columns && *columns != *rotated)
      fields_.problem("head_dim", fmt::format("\"qk_rope_head_dim\", {}, or null", *rotated));
    fields_.know("auto_map");  // where the publisher's own program for the family lies
  }

  // Every n-th layer sees all keys. A file gives n, or the kinds of all layers, the n-th being the first full one; or
  // the family has one n.
  void read_layer_types(const Family& family, std::int64_t layers) {
    put("sliding_window", fields_.count("sliding_window"));
    const Json* const kinds = fields_.at("layer_types");
    std::optional<std::int64_t> pattern = family.full_every;
    if (family.full_every == 0) {
      fields_.know("_sliding_window_pattern");  // of the class, beside the list
      pattern = fields_.count("sliding_window_pattern", kinds == nullptr);
    }
    if (!kinds) return put("full_attention_every", pattern);
    std::int64_t every = 0;
    bool is_regular = kinds->is_array() && static_cast<std::int64_t>(kinds->size()) == layers;
    for (std::size_t l = 0; is_regular && l < kinds->size(); ++l) {
      const auto place = static_cast<std::int64_t>(l) + 1;
      const bool is_full = (*kinds)[l] == "full_attention";
      if (is_full && every == 0) every = place;
      is_regular = (is_full || (*kinds)[l] == "sliding_attention") && is_full == (every > 0 && place % every == 0);
    }
    if (is_regular && every == 1) return see_everything(family);
    if (!is_regular)
      return fields_.problem("layer_types",
                             "a list of \"num_hidden_layers\" in which every n-th one is "
                             "\"full_attention\" and the others are \"sliding_attention\"");
    put("full_attention_every", Value(every));
  }

  // No layer reads the window, nor the base of rotations within it.
  void see_everything(const Family& family) {
    put("sliding_window", Value(std::int64_t{0}));
    put("full_attention_every", Value(std::int64_t{0}));
    has_local_rotation_ = false;
    if (family.local_rotation) put("rope_local_theta", Value(0.0));
  }

  void read_attention(const Family& family) {
    put("qkv_bias", Value(family.qkv_bias));
    put("qk_norm", Value(family.qk_norm));
    if (family.says_attention_bias)
      fields_.only("attention_bias", false, "set qkv_bias and output_bias in the experiment instead");
    if (const auto rate = fields_.number("attention_dropout", false); rate && *rate != 0)
      fields_.problem("attention_dropout", "0: no weight of attention is dropped here");
    if (family.gpt_oss) fields_.only("attention_bias", true, "models of this family have biases");
    if (family.gpt_oss) put("output_bias", Value(true)), put("attention_sinks", Value(true));
    if (family.caps_logits) {
      put("query_pre_attn_scalar", fields_.number("query_pre_attn_scalar"));
      read_cap("attn_logit_softcapping", "attention_soft_cap", family.caps_scores);
      read_cap("final_logit_softcapping", "logit_soft_cap", true);
    }
    if (family.local_layers) return;
    if (family.window_of_all) return put("sliding_window", fields_.count("sliding_window", false));
    // A file that switches its window off may say any size of it.
    fields_.know("max_window_layers");
    if (const auto used = fields_.boolean("use_sliding_window", false); used && !*used) {
      fields_.know("sliding_window");
    } else {
      fields_.only("use_sliding_window", false, "sliding windows are not read from files");
      if (fields_.has("sliding_window"))
        fields_.problem("sliding_window",
                        "null, or \"use_sliding_window\": false: sliding windows are not read from "
                        "files");
    }
  }

  // Null: there is none.
  void read_cap(const char* field, DecidedParam param, bool serves) {
    const auto cap = fields_.number(field, false);
    if (!cap) return;
    if (!serves) return fields_.problem(field, "null: models of this family do not read it in transformers");
    if (!(*cap > 0)) return fields_.problem(field, "above 0, or null where there is none");
    put(param, cap);
  }

  // A dense model says that it has none, so that no workload takes its default of them.
  void read_experts(const Family& family) {
    if (!family.experts) return put("experts", Value(std::int64_t{0}));
    if (family.latent) return read_experts_of_deepseek(family);
    put("experts", fields_.count(family.experts));
    put("experts_per_token", fields_.count("num_experts_per_tok"));
    put("expert_d_ff", fields_.count(family.expert_width));
    put("normalized_weights", family.says_normalized ? fields_.boolean("norm_topk_prob") : std::optional(true));
    put("expert_biases", Value(family.gpt_oss));
    fields_.only("output_router_logits", false, "set balance_coefficient in the experiment instead");
    fields_.know("router_aux_loss_coef");  // is read where router logits are
    if (family.says_normalized) {
      fields_.only("decoder_sparse_step", 1, "all layers have experts");
      fields_.only("mlp_only_layers", Json::array(), "all layers have experts");
    }
    fields_.only("router_jitter_noise", 0.0, "no noise is added to what a router reads");
    if (!family.gpt_oss) return;
    // The old name of "num_experts_per_tok", beside it; weights in other formats become numbers of these.
    if (fields_.has("experts_per_token") && fields_.has("num_experts_per_tok") &&
        *fields_.at("experts_per_token") != *fields_.at("num_experts_per_tok"))
      fields_.problem("experts_per_token", "what \"num_experts_per_tok\" says");
    for (const char* name : {"initial_context_length", "quantization_config"}) fields_.know(name);
    put("unit_alpha", Value(1.702));
    put("unit_offset", Value(1.0));
    const auto limit = fields_.number("swiglu_limit");
    if (limit && !(*limit > 0)) return fields_.problem("swiglu_limit", "above 0");
    put("unit_limit", limit);
  }

  // Layers behind the first dense ones have experts, and a feed-forward as wide as several beside them.
  void read_experts_of_deepseek(const Family& family) {
    // A method that chooses among groups reads the first two; the next two are of a loss of balance, for which there is
    // balance_coefficient; the last one says where experts lie.
    for (const char* name : {"n_group", "topk_group", "aux_loss_alpha", "seq_aux", "ep_size"}) fields_.know(name);
    if (fields_.requires_mention(family.experts, "; null where the model is dense") && !fields_.has(family.experts)) {
      for (const char* name :
           {"n_shared_experts", "num_experts_per_tok", family.expert_width, "first_k_dense_replace", "moe_layer_freq",
            "topk_method", "scoring_func", "norm_topk_prob", "routed_scaling_factor"})
        fields_.know(name);
      return put("experts", Value(std::int64_t{0}));
    }
    const auto width = fields_.count(family.expert_width);
    put("experts", fields_.count(family.experts, false));
    put("experts_per_token", fields_.count("num_experts_per_tok"));
    put("expert_d_ff", width);
    if (fields_.requires_mention("n_shared_experts", "; null where there is none"))
      put("shared_d_ff", Value(fields_.count("n_shared_experts", false, 0).value_or(0) * width.value_or(0)));
    put("first_dense_layers", fields_.count("first_k_dense_replace", true, 0));
    put("weights_factor", Value(fields_.number("routed_scaling_factor", false).value_or(1)));
    put("normalized_weights", Value(false));
    put("expert_biases", Value(false));
    fields_.only("moe_layer_freq", 1, "all layers behind the first ones have experts");
    fields_.only("topk_method", "greedy", "a token's experts are the best of all");
    fields_.only("scoring_func", "softmax", "of all experts' scores, as this family has it in transformers");
    fields_.only("norm_topk_prob", false, "programs for this family differ in what they then multiply weights by");
  }

  void read_feed_forward(const Family& family) {
    put("gate_activation", Value(std::string(family.gemma ? "gelu_tanh" : "silu")));
    if (family.gemma) {
      // A file has one of two fields. The first files say "gelu" and mean the form by tanh, as transformers reads it.
      const bool newer = fields_.has("hidden_activation");
      const char* const name = newer ? "hidden_activation" : "hidden_act";
      if (newer) fields_.know("hidden_act");
      if (const auto kind = fields_.text(name); kind && *kind != "gelu_pytorch_tanh" && *kind != "gelu")
        fields_.problem(name, "\"gelu_pytorch_tanh\", of the gated unit that this family has here");
    } else if (const auto kind = fields_.text("hidden_act"); kind && *kind != "silu") {
      fields_.problem("hidden_act", "\"silu\", of the gated unit that this family has here");
    }
    if (family.says_mlp_bias) fields_.only("mlp_bias", false, "the feed-forward's products have no bias here");
  }

  // Since transformers 5 the base stands in an object with the scaling, or, of local layers, in one of each kind.
  void read_rotation(const Family& family) {
    fields_.only("partial_rotary_factor", 1.0, "all columns of a head are rotated");
    put("rope_scaling", Value(std::string("none")));
    if (const Json* const both = fields_.at("rope_parameters"); both && family.local_rotation) {
      if (!both->is_object()) return fields_.problem("rope_parameters", "an object");
      Fields kinds(*both, "rope_parameters.", out_.problems);
      const Json* const full = object_of(kinds, "full_attention");
      const Json* const local = object_of(kinds, "sliding_attention");
      if (full) read_rotation_of(*full, "rope_parameters.full_attention.", true);
      if (local) {
        Fields of_local(*local, "rope_parameters.sliding_attention.", out_.problems);
        put_local_theta(theta_of(of_local));
        of_local.only("rope_type", "default", "the rotation of local layers is not scaled here");
        of_local.name_unknown({of_local.known().begin(), of_local.known().end()});
      }
      return kinds.name_unknown({kinds.known().begin(), kinds.known().end()});
    }
    if (family.local_rotation) put_local_theta(fields_.number("rope_local_base_freq"));
    const bool in_one = fields_.has("rope_parameters");
    const char* const name = in_one ? "rope_parameters" : "rope_scaling";
    if (in_one && fields_.has("rope_scaling"))
      fields_.problem("rope_scaling", "left out where \"rope_parameters\" says it");
    if (in_one && fields_.has("rope_theta")) fields_.problem("rope_theta", "left out beside \"rope_parameters\"");
    if (!in_one) put("rope_theta", theta_of(fields_));
    if (!fields_.has(name)) return;
    if (const Json* const object = object_of(fields_, name)) read_rotation_of(*object, std::string(name) + ".", in_one);
  }

  void put_local_theta(const std::optional<double>& theta) {
    if (has_local_rotation_) put("rope_local_theta", theta);
  }

  const Json* object_of(Fields& of, const char* name) {
    const Json* const found = of.at(name);
    if (!found) of.missing(name);
    if (!found || found->is_object()) return found;
    of.problem(name, "an object");
    return nullptr;
  }

  void read_rotation_of(const Json& object, const std::string& prefix, bool has_theta) {
    Fields scaling(object, prefix, out_.problems);
    if (has_theta) put("rope_theta", theta_of(scaling));
    scaling.only("partial_rotary_factor", 1.0, "all columns of a head are rotated");
    if (read_scaling(scaling)) scaling.name_unknown({scaling.known().begin(), scaling.known().end()});
  }

  std::optional<double> theta_of(Fields& of) {
    const auto theta = of.number("rope_theta", false);
    if (!theta) of.missing("rope_theta", "; where a model's files leave it out, transformers has 10000.0");
    if (theta && !(*theta >= 1)) of.problem("rope_theta", "at least 1");
    return theta;
  }

  // False where the kind is not known, and so no field of it.
  bool read_scaling(Fields& s) {
    // Old files call it "type"; some files have both names, which then say the same.
    const char* const key = s.has("rope_type") ? "rope_type" : "type";
    const auto kind = s.text(key);
    if (!kind) return false;
    if (const Json* const old = s.at("type"); old && *old != Json(*kind)) s.problem("type", "what \"rope_type\" says");
    if (*kind == "default") return true;
    if (*kind != "linear" && *kind != "llama3" && *kind != "yarn") {
      s.problem(key, "one of \"default\", \"linear\", \"llama3\" and \"yarn\"");
      return false;
    }
    const auto factor = s.number("factor");
    if (factor && !(*factor >= 1)) s.problem("factor", "at least 1");
    put("rope_scaling", Value(*kind));
    put("rope_factor", factor);
    if (*kind == "linear") return true;
    put("rope_original_context", s.count("original_max_position_embeddings"));
    if (*kind == "llama3")
      read_turns(s, {"low_freq_factor", "rope_low_freq_factor", s.number("low_freq_factor")},
                 {"high_freq_factor", "rope_high_freq_factor", s.number("high_freq_factor")});
    else
      read_yarn(s, factor.value_or(1));
    return true;
  }

  // Where a file leaves a number out, the paper's counts, as in transformers.
  void read_yarn(Fields& s, double factor) {
    read_turns(s, {"beta_slow", "rope_beta_slow", s.number("beta_slow", false).value_or(1)},
               {"beta_fast", "rope_beta_fast", s.number("beta_fast", false).value_or(32)});
    put("rope_truncate", Value(s.boolean("truncate", false).value_or(true)));
    const auto attention = s.number("attention_factor", false);
    if (attention && !(*attention > 0)) s.problem("attention_factor", "above 0");
    put("rope_attention_factor", Value(attention.value_or(0)));
    if (is_latent_) read_magnitudes(s, factor);
  }

  // Cosines and sines are multiplied by the quotient of both, and scores by the square of the second.
  void read_magnitudes(Fields& s, double factor) {
    const auto of_rotation = s.number("mscale", false), of_scores = s.number("mscale_all_dim", false);
    if (!of_rotation && !of_scores) return;
    if (!of_rotation || !of_scores)
      return s.missing(of_rotation ? "mscale_all_dim" : "mscale",
                       "; programs differ in what one of the two alone means");
    for (const auto& [name, value] : {std::pair("mscale", *of_rotation), {"mscale_all_dim", *of_scores}})
      if (!(value > 0)) return s.problem(name, "above 0");
    if (s.has("attention_factor"))
      return s.problem("attention_factor", "null beside \"mscale\" and \"mscale_all_dim\", which decide it");
    const auto magnitude = [&](double scale) { return 1 + 0.1 * scale * std::log(factor); };
    put("rope_attention_factor", Value(magnitude(*of_rotation) / magnitude(*of_scores)));
    put("rope_mscale_all_dim", of_scores);
  }

  struct Turns {
    const char* field;
    DecidedParam param;
    std::optional<double> value;
  };
  void read_turns(Fields& s, const Turns& few, const Turns& many) {
    put(few.param, few.value), put(many.param, many.value);
    if (few.value && many.value && !(0 < *few.value && *few.value < *many.value))
      s.problem(s.has(few.field) ? few.field : many.field, fmt::format("0 < \"{}\" < \"{}\"", few.field, many.field));
  }

  Fields fields_;
  ModelConfiguration& out_;
  bool is_latent_ = false;
  bool has_local_rotation_ = true;  // of layers with a window, where there are any
};

}  // namespace

ModelConfiguration read_model_configuration(const std::string& text) {
  ModelConfiguration out;
  const auto [json, twice] = parsed(text);
  if (json.is_discarded() || !json.is_object())
    out.problems.emplace_back("it is no JSON object; expected a config.json as transformers writes it");
  else if (!twice.empty())
    out.problems.push_back(fmt::format("\"{}\" stands there twice", twice));
  else
    ConfigurationReader(json, out).read();
  return out;
}

bool is_of_model_configuration(std::string_view param) { return is_decided(param); }

}  // namespace assay::host::experiment
