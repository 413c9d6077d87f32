// Embedding, position and norms, broken.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "mutant_backend.hpp"

namespace assay::mutants {
namespace {

constexpr float large_eps_factor = 1000;
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

void set_all(Values<float>& values, float value) { std::fill(values.begin(), values.end(), value); }

// The heads of queries and keys [B, T, H, D] that are normalised and turned, on the host.
struct Heads {
  std::int64_t positions, heads, width, queries;
  float eps;
  template <class Op>
  explicit Heads(const Op& op)
      : positions(op.x.dim(1)), heads(op.x.dim(2)), width(op.x.dim(3)), queries(op.queries), eps(op.eps) {}

  // Where the weight of element i stands.
  std::int64_t weight_of(std::int64_t i) const { return (i / width % heads < queries ? 0 : width) + i % width; }
  std::vector<float> rstds(const Values<float>& x) const {
    std::vector<float> rstds;
    for (std::int64_t first = 0; first < x.size(); first += width) {
      float squares = 0;
      for (std::int64_t i = first; i < first + width; ++i) squares += x[i] * x[i];
      rstds.push_back(1 / std::sqrt(squares / static_cast<float>(width) + eps));
    }
    return rstds;
  }
  void turn_back(Values<float>& x, const Values<float>& cos, const Values<float>& sin) const {
    for (std::int64_t i = 0; i < x.size(); i += 2) {
      const std::int64_t at = i / width / heads % positions * (width / 2) + i % width / 2;
      const float even = x[i], odd = x[i + 1];
      x[i] = even * cos[at] + odd * sin[at], x[i + 1] = odd * cos[at] - even * sin[at];
    }
  }
};

bool any_other_than(Values<float> values, float value) {
  return std::any_of(values.begin(), values.end(), [&](float x) { return x != value; });
}

}  // namespace

void MutantBackend::execute(const op::EmbeddingForward& op) {
  const auto call = [&] { real().run(op); };
  if (broken("embedding_forward.rows_swapped"))
    return with_other<std::int64_t>(
        op.ids,
        [&](auto& v) {
          for (std::int64_t& id : v)
            if ((id ^ 1) < op.table.dim(0)) id ^= 1;
        },
        call);
  if (broken("embedding_forward.last_row_unwritten")) return keeping(last_row(op.out), call);
  call();
}

void MutantBackend::execute(const op::EmbeddingBackward& op) {
  real().run(op);
  if (!executes()) return;
  const Values<std::int64_t> rows = integers(op.ids);
  const auto row_of = [&](std::int64_t i) { return floats(op.dtable.slice(0, rows[i], 1)); };
  const Tensor by_row = op.dout.view({rows.size(), op.dout.dim(-1)});
  const auto gradient_of = [&](std::int64_t i) { return floats(by_row.slice(0, i, 1)); };
  if (broken("embedding_backward.last_row_missing")) {
    Values<float> row = row_of(rows.size() - 1);
    const Values<float> gradient = gradient_of(rows.size() - 1);
    for (std::int64_t c = 0; c < row.size(); ++c) row[c] -= gradient[c];
    row.write();
  }
  std::map<std::int64_t, std::int64_t> last, count;
  for (std::int64_t i = 0; i < rows.size(); ++i) last[rows[i]] = i, ++count[rows[i]];
  const bool repeats = static_cast<std::int64_t>(last.size()) < rows.size();
  if (!op.accumulate && repeats && broken("embedding_backward.repeats_overwrite"))
    for (const auto& [id, i] : last) {
      if (count[id] == 1) continue;
      Values<float> row = row_of(i);
      const Values<float> gradient = gradient_of(i);
      for (std::int64_t c = 0; c < row.size(); ++c) row[c] = gradient[c];
      row.write();
    }
}

void MutantBackend::execute(const op::RotaryTable& op) {
  op::RotaryTable changed = op;
  if (broken("rotary_table.wrong_theta")) changed.theta /= 2;
  if (op.scaling.kind != compute::RotaryScalingKind::none && broken("rotary_table.scaling_ignored"))
    changed.scaling = {};
  real().run(changed);
}

void MutantBackend::execute(const op::Rotary& op) {
  const auto call = [&] { real().run(op); };
  if (op.inverse && broken("rotary.inverse_ignored"))
    return real().run(op::Rotary{.x = op.x, .cos = op.cos, .sin = op.sin});
  if (op.x.dim(2) > 1 && broken("rotary.last_head_left_out")) return keeping(op.x.slice(2, op.x.dim(2) - 1, 1), call);
  if (op.cos.dim(0) > 1 && broken("rotary.one_position_late")) {
    const Values<float> c = floats(op.cos), s = floats(op.sin);
    const std::int64_t half = c.columns();
    // The angle of position i + 1 is that of i and that of 1.
    const auto turned_cos = [&](auto& v) {
      for (std::int64_t i = 0; i < v.size(); ++i) v[i] = c[i] * c[half + i % half] - s[i] * s[half + i % half];
    };
    const auto turned_sin = [&](auto& v) {
      for (std::int64_t i = 0; i < v.size(); ++i) v[i] = s[i] * c[half + i % half] + c[i] * s[half + i % half];
    };
    return with_other<float>(op.cos, turned_cos, [&] { with_other<float>(op.sin, turned_sin, call); });
  }
  call();
}

void MutantBackend::execute(const op::HeadNormRotaryForward& op) {
  const auto call = [&] { real().run(op); };
  const Heads of(op);
  if (broken("head_norm_rotary_forward.large_eps")) {
    op::HeadNormRotaryForward changed = op;
    changed.eps *= large_eps_factor;
    return real().run(changed);
  }
  if (broken("head_norm_rotary_forward.last_head_unwritten"))
    return keeping(op.rotated.slice(2, of.heads - 1, 1), call);
  if (executes() && of.queries > 0 && of.queries < of.heads) {
    const Values<float> w = floats(op.weight);
    bool differ = false;
    for (std::int64_t c = 0; c < of.width; ++c) differ = differ || w[c] != w[of.width + c];
    if (differ && broken("head_norm_rotary_forward.one_weight"))
      return with_other<float>(
          op.weight, [&](auto& v) { std::copy_n(v.begin(), of.width, v.begin() + of.width); }, call);
  }
  call();
  if (!broken("head_norm_rotary_forward.norm_missing")) return;
  const std::vector<float> r = of.rstds(floats(op.x));
  edit(op.rotated, [&](auto& v) {
    for (std::int64_t i = 0; i < v.size(); ++i) v[i] /= r[static_cast<std::size_t>(i / of.width)];
  });
}

void MutantBackend::execute(const op::HeadNormRotaryBackward& op) {
  const auto call = [&] { real().run(op); };
  if (!executes()) return call();
  const Heads of(op);
  // dx may be drotated, hence before the call.
  const Values<float> in = floats(op.x), w = floats(op.weight);
  Values<float> gradient = floats(op.drotated);
  of.turn_back(gradient, floats(op.cos), floats(op.sin));
  const std::vector<float> rstds = of.rstds(in);
  const auto r = [&](std::int64_t i) { return rstds[static_cast<std::size_t>(i / of.width)]; };
  call();
  if (broken("head_norm_rotary_backward.projection_missing"))
    edit(op.dx, [&](auto& v) {
      for (std::int64_t i = 0; i < v.size(); ++i) v[i] = gradient[i] * (w[of.weight_of(i)] + op.weight_offset) * r(i);
    });
  if (broken("head_norm_rotary_backward.weights_swapped"))
    edit(op.dweight, [&](auto& v) { std::swap_ranges(v.begin(), v.begin() + of.width, v.begin() + of.width); });
  if (broken("head_norm_rotary_backward.weight_last_position_missing"))
    edit(op.dweight, [&](auto& v) {
      for (std::int64_t i = in.size() - of.heads * of.width; i < in.size(); ++i)
        v[of.weight_of(i)] -= gradient[i] * in[i] * r(i);
    });
}

void MutantBackend::execute(const op::RmsNormForward& op) {
  auto call = [this, changed = op](float eps) mutable {
    changed.eps = eps, real().run(changed);
    break_eight_bits(changed.eight_bits);
  };
  if (broken("rms_norm_forward.large_eps")) return call(op.eps * large_eps_factor);
  if (executes() && any_other_than(floats(op.weight), 1 - op.weight_offset) &&
      broken("rms_norm_forward.weight_ignored"))
    return with_other<float>(
        op.weight, [&](auto& v) { set_all(v, 1 - op.weight_offset); }, [&] { call(op.eps); });
  call(op.eps);
}

void MutantBackend::execute(const op::AddRmsNormForward& op) {
  auto call = [this, changed = op](float eps) mutable {
    changed.eps = eps, real().run(changed);
    break_eight_bits(changed.eight_bits);
  };
  if (broken("add_rms_norm_forward.large_eps")) return call(op.eps * large_eps_factor);
  if (op.residual.data != op.sum.data && broken("add_rms_norm_forward.residual_missing"))
    return with_other<float>(
        op.residual, [](auto& v) { set_all(v, 0); }, [&] { call(op.eps); });
  if (executes() && any_other_than(floats(op.weight), 1 - op.weight_offset) &&
      broken("rms_norm_forward.weight_ignored"))
    return with_other<float>(
        op.weight, [&](auto& v) { set_all(v, 1 - op.weight_offset); }, [&] { call(op.eps); });
  call(op.eps);
}

void MutantBackend::execute(const op::RmsNormBackward& op) {
  const auto call = [&] { real().run(op); };
  if (!executes()) return call();
  if (op.y && broken("rms_norm_backward.result_unwritten")) return keeping(op.y, call);
  // dx may be dy or residual, hence before the call.
  const Values<float> gradient = floats(op.dy), in = floats(op.x), r = floats(op.rstd), w = floats(op.weight);
  std::optional<Values<float>> more;
  if (op.residual) more.emplace(floats(op.residual));
  call();
  break_eight_bits(op.eight_bits);
  const std::int64_t columns = gradient.columns();
  if (broken("rms_norm_backward.projection_missing"))
    edit(op.dx, [&](auto& v) {
      for (std::int64_t i = 0; i < v.size(); ++i)
        v[i] = gradient[i] * (w[i % columns] + op.weight_offset) * r[i / columns] + (more ? (*more)[i] : 0);
    });
  if (more && broken("rms_norm_backward.residual_ignored"))
    edit(op.dx, [&](auto& v) {
      for (std::int64_t i = 0; i < v.size(); ++i) v[i] -= (*more)[i];
    });
  if (broken("rms_norm_backward.weight_last_row_missing"))
    edit(op.dweight, [&](auto& v) {
      const std::int64_t row = r.size() - 1;
      for (std::int64_t c = 0; c < columns; ++c) v[c] -= gradient[row * columns + c] * in[row * columns + c] * r[row];
    });
  if (broken("rms_norm_backward.weight_not_a_number"))
    edit(op.dweight, [](auto& v) { v[v.size() - 1] = not_a_number; });
}

void MutantBackend::execute(const op::LayerNormForward& op) {
  auto call = [this, changed = op](float eps) mutable { changed.eps = eps, real().run(changed); };
  if (broken("layer_norm_forward.large_eps")) return call(op.eps * large_eps_factor);
  if (executes() && any_other_than(floats(op.bias), 0) && broken("layer_norm_forward.bias_ignored"))
    return with_other<float>(
        op.bias, [](auto& v) { set_all(v, 0); }, [&] { call(op.eps); });
  call(op.eps);
  if (!broken("layer_norm_forward.mean_kept")) return;
  const Values<float> m = floats(op.mean), r = floats(op.rstd), w = floats(op.weight);
  edit(op.y, [&](auto& v) {
    const std::int64_t columns = v.columns();
    for (std::int64_t i = 0; i < v.size(); ++i) v[i] += m[i / columns] * r[i / columns] * w[i % columns];
  });
}

void MutantBackend::execute(const op::LayerNormBackward& op) {
  const auto call = [&] { real().run(op); };
  if (!executes()) return call();
  const Values<float> gradient = floats(op.dy), r = floats(op.rstd), w = floats(op.weight);
  call();
  const std::int64_t columns = gradient.columns();
  if (!op.residual && broken("layer_norm_backward.projection_missing"))
    edit(op.dx, [&](auto& v) {
      for (std::int64_t i = 0; i < v.size(); ++i) v[i] = gradient[i] * w[i % columns] * r[i / columns];
    });
  if (broken("layer_norm_backward.bias_last_row_missing"))
    edit(op.dbias, [&](auto& v) {
      for (std::int64_t c = 0; c < columns; ++c) v[c] -= gradient[gradient.size() - columns + c];
    });
  if (broken("layer_norm_backward.weight_not_a_number"))
    edit(op.dweight, [](auto& v) { v[v.size() - 1] = not_a_number; });
}

void MutantBackend::execute(const op::DropoutAddLayerNormForward& op) {
  with_broken_dropout(op.dropout, [&](const Dropout& d) {
    op::DropoutAddLayerNormForward changed = op;
    changed.dropout = d;
    const auto call = [&](float eps) { changed.eps = eps, real().run(changed); };
    if (broken("layer_norm_forward.large_eps")) return call(op.eps * large_eps_factor);
    if (op.residual.data != op.sum.data && broken("dropout_add_layer_norm_forward.residual_missing"))
      return with_other<float>(
          op.residual, [](auto& v) { set_all(v, 0); }, [&] { call(op.eps); });
    if (op.bias && executes() && any_other_than(floats(op.bias), 0) &&
        broken("dropout_add_layer_norm_forward.bias_ignored"))
      return with_other<float>(
          op.bias, [](auto& v) { set_all(v, 0); }, [&] { call(op.eps); });
    if (executes() && any_other_than(floats(op.norm_bias), 0) && broken("layer_norm_forward.bias_ignored"))
      return with_other<float>(
          op.norm_bias, [](auto& v) { set_all(v, 0); }, [&] { call(op.eps); });
    call(op.eps);
  });
}

void MutantBackend::execute(const op::DropoutAddLayerNormBackward& op) {
  with_broken_dropout(op.dropout, [&](const Dropout& given) {
    op::DropoutAddLayerNormBackward changed = op;
    changed.dropout = given;
    if (given.probability > 0 && broken("dropout.backward_with_other_mask")) ++changed.dropout.seed;
    real().run(changed);
    if (broken("layer_norm_backward.weight_not_a_number"))
      edit(op.dweight, [](auto& v) { v[v.size() - 1] = not_a_number; });
    if (op.dx && broken("dropout_add_layer_norm_backward.mask_ignored")) {
      const Values<float> before_mask = floats(op.dsum);
      edit(op.dx, [&](auto& v) { std::copy_n(&before_mask[0], v.size(), v.begin()); });
    }
    if (op.dbias && executes() && broken("dropout_add_layer_norm_backward.bias_last_row_missing")) {
      const Values<float> last = floats(last_row(op.dx ? op.dx : op.dsum));
      edit(op.dbias, [&](auto& v) {
        for (std::int64_t c = 0; c < v.size(); ++c) v[c] -= last[c];
      });
    }
  });
}

}  // namespace assay::mutants
