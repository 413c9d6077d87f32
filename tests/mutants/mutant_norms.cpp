// Embedding, position and norms, broken.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "mutant_backend.hpp"

namespace assay::mutants {
namespace {

constexpr float large_eps_factor = 1000;
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

void set_all(Values<float>& values, float value) { std::fill(values.begin(), values.end(), value); }

bool any_other_than(Values<float> values, float value) {
  return std::any_of(values.begin(), values.end(), [&](float x) { return x != value; });
}

}  // namespace

void MutantBackend::embedding_forward(const Tensor& ids, const Tensor& table, const Tensor& out) {
  const auto call = [&] { real().embedding_forward(ids, table, out); };
  if (broken("embedding_forward.rows_swapped"))
    return with_other<std::int64_t>(
        ids,
        [&](auto& v) {
          for (std::int64_t& id : v)
            if ((id ^ 1) < table.dim(0)) id ^= 1;
        },
        call);
  if (broken("embedding_forward.last_row_unwritten")) return keeping(last_row(out), call);
  call();
}

void MutantBackend::embedding_backward(const Tensor& ids, const Tensor& dout, const Tensor& dtable, bool accumulate) {
  real().embedding_backward(ids, dout, dtable, accumulate);
  if (!executes()) return;
  const Values<std::int64_t> rows = integers(ids);
  const auto row_of = [&](std::int64_t i) { return floats(dtable.slice(0, rows[i], 1)); };
  const Tensor by_row = dout.view({rows.size(), dout.dim(-1)});
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
  if (!accumulate && repeats && broken("embedding_backward.repeats_overwrite"))
    for (const auto& [id, i] : last) {
      if (count[id] == 1) continue;
      Values<float> row = row_of(i);
      const Values<float> gradient = gradient_of(i);
      for (std::int64_t c = 0; c < row.size(); ++c) row[c] = gradient[c];
      row.write();
    }
}

void MutantBackend::rotary_table(const Tensor& cos, const Tensor& sin, double theta) {
  real().rotary_table(cos, sin, broken("rotary_table.wrong_theta") ? theta / 2 : theta);
}

void MutantBackend::rotary(const Tensor& x, const Tensor& cos, const Tensor& sin, bool inverse) {
  const auto call = [&] { real().rotary(x, cos, sin, inverse); };
  if (inverse && broken("rotary.inverse_ignored")) return real().rotary(x, cos, sin, false);
  if (x.dim(2) > 1 && broken("rotary.last_head_left_out")) return keeping(x.slice(2, x.dim(2) - 1, 1), call);
  if (cos.dim(0) > 1 && broken("rotary.one_position_late")) {
    const Values<float> c = floats(cos), s = floats(sin);
    const std::int64_t half = c.columns();
    // The angle of position i + 1 is that of i and that of 1.
    const auto turned_cos = [&](auto& v) {
      for (std::int64_t i = 0; i < v.size(); ++i) v[i] = c[i] * c[half + i % half] - s[i] * s[half + i % half];
    };
    const auto turned_sin = [&](auto& v) {
      for (std::int64_t i = 0; i < v.size(); ++i) v[i] = s[i] * c[half + i % half] + c[i] * s[half + i % half];
    };
    return with_other<float>(cos, turned_cos, [&] { with_other<float>(sin, turned_sin, call); });
  }
  call();
}

void MutantBackend::rms_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& rstd,
                                     float eps) {
  const auto call = [&](float e) { real().rms_norm_forward(x, weight, y, rstd, e); };
  if (broken("rms_norm_forward.large_eps")) return call(eps * large_eps_factor);
  if (executes() && any_other_than(floats(weight), 1) && broken("rms_norm_forward.weight_ignored"))
    return with_other<float>(
        weight, [](auto& v) { set_all(v, 1); }, [&] { call(eps); });
  call(eps);
}

void MutantBackend::add_rms_norm_forward(const Tensor& x, const Tensor& residual, const Tensor& sum,
                                         const Tensor& weight, const Tensor& y, const Tensor& rstd, float eps) {
  const auto call = [&](float e) { real().add_rms_norm_forward(x, residual, sum, weight, y, rstd, e); };
  if (broken("add_rms_norm_forward.large_eps")) return call(eps * large_eps_factor);
  if (residual.data != sum.data && broken("add_rms_norm_forward.residual_missing"))
    return with_other<float>(
        residual, [](auto& v) { set_all(v, 0); }, [&] { call(eps); });
  if (executes() && any_other_than(floats(weight), 1) && broken("rms_norm_forward.weight_ignored"))
    return with_other<float>(
        weight, [](auto& v) { set_all(v, 1); }, [&] { call(eps); });
  call(eps);
}

void MutantBackend::rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                                      const Tensor& residual, const Tensor& dx, const Tensor& dweight,
                                      bool accumulate_dweight, const Tensor& y) {
  const auto call = [&] {
    real().rms_norm_backward(dy, x, weight, rstd, residual, dx, dweight, accumulate_dweight, y);
  };
  if (!executes()) return call();
  if (y && broken("rms_norm_backward.result_unwritten")) return keeping(y, call);
  // dx may be dy or residual, hence before the call.
  const Values<float> gradient = floats(dy), in = floats(x), r = floats(rstd), w = floats(weight);
  std::optional<Values<float>> more;
  if (residual) more.emplace(floats(residual));
  call();
  const std::int64_t columns = gradient.columns();
  if (broken("rms_norm_backward.projection_missing"))
    edit(dx, [&](auto& v) {
      for (std::int64_t i = 0; i < v.size(); ++i)
        v[i] = gradient[i] * w[i % columns] * r[i / columns] + (more ? (*more)[i] : 0);
    });
  if (more && broken("rms_norm_backward.residual_ignored"))
    edit(dx, [&](auto& v) {
      for (std::int64_t i = 0; i < v.size(); ++i) v[i] -= (*more)[i];
    });
  if (broken("rms_norm_backward.weight_last_row_missing"))
    edit(dweight, [&](auto& v) {
      const std::int64_t row = r.size() - 1;
      for (std::int64_t c = 0; c < columns; ++c) v[c] -= gradient[row * columns + c] * in[row * columns + c] * r[row];
    });
  if (broken("rms_norm_backward.weight_not_a_number")) edit(dweight, [](auto& v) { v[v.size() - 1] = not_a_number; });
}

void MutantBackend::layer_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y,
                                       const Tensor& mean, const Tensor& rstd, float eps) {
  const auto call = [&](float e) { real().layer_norm_forward(x, weight, bias, y, mean, rstd, e); };
  if (broken("layer_norm_forward.large_eps")) return call(eps * large_eps_factor);
  if (executes() && any_other_than(floats(bias), 0) && broken("layer_norm_forward.bias_ignored"))
    return with_other<float>(
        bias, [](auto& v) { set_all(v, 0); }, [&] { call(eps); });
  call(eps);
  if (!broken("layer_norm_forward.mean_kept")) return;
  const Values<float> m = floats(mean), r = floats(rstd), w = floats(weight);
  edit(y, [&](auto& v) {
    const std::int64_t columns = v.columns();
    for (std::int64_t i = 0; i < v.size(); ++i) v[i] += m[i / columns] * r[i / columns] * w[i % columns];
  });
}

void MutantBackend::layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& mean,
                                        const Tensor& rstd, const Tensor& residual, const Tensor& dx,
                                        const Tensor& dweight, const Tensor& dbias, bool accumulate_dweight) {
  const auto call = [&] {
    real().layer_norm_backward(dy, x, weight, mean, rstd, residual, dx, dweight, dbias, accumulate_dweight);
  };
  if (!executes()) return call();
  const Values<float> gradient = floats(dy), r = floats(rstd), w = floats(weight);
  call();
  const std::int64_t columns = gradient.columns();
  if (!residual && broken("layer_norm_backward.projection_missing"))
    edit(dx, [&](auto& v) {
      for (std::int64_t i = 0; i < v.size(); ++i) v[i] = gradient[i] * w[i % columns] * r[i / columns];
    });
  if (broken("layer_norm_backward.bias_last_row_missing"))
    edit(dbias, [&](auto& v) {
      for (std::int64_t c = 0; c < columns; ++c) v[c] -= gradient[gradient.size() - columns + c];
    });
  if (broken("layer_norm_backward.weight_not_a_number")) edit(dweight, [](auto& v) { v[v.size() - 1] = not_a_number; });
}

void MutantBackend::dropout_add_layer_norm_forward(const Tensor& x, const Tensor& bias, const Tensor& residual,
                                                   const Dropout& dropout, const Tensor& sum, const Tensor& weight,
                                                   const Tensor& norm_bias, const Tensor& y, const Tensor& mean,
                                                   const Tensor& rstd, float eps) {
  with_broken_dropout(dropout, [&](const Dropout& d) {
    const auto call = [&](float e) {
      real().dropout_add_layer_norm_forward(x, bias, residual, d, sum, weight, norm_bias, y, mean, rstd, e);
    };
    if (broken("layer_norm_forward.large_eps")) return call(eps * large_eps_factor);
    if (residual.data != sum.data && broken("dropout_add_layer_norm_forward.residual_missing"))
      return with_other<float>(
          residual, [](auto& v) { set_all(v, 0); }, [&] { call(eps); });
    if (bias && executes() && any_other_than(floats(bias), 0) && broken("dropout_add_layer_norm_forward.bias_ignored"))
      return with_other<float>(
          bias, [](auto& v) { set_all(v, 0); }, [&] { call(eps); });
    if (executes() && any_other_than(floats(norm_bias), 0) && broken("layer_norm_forward.bias_ignored"))
      return with_other<float>(
          norm_bias, [](auto& v) { set_all(v, 0); }, [&] { call(eps); });
    call(eps);
  });
}

void MutantBackend::dropout_add_layer_norm_backward(const Tensor& dy, const Tensor& sum, const Tensor& weight,
                                                    const Tensor& mean, const Tensor& rstd, const Dropout& dropout,
                                                    const Tensor& dsum, const Tensor& dx, const Tensor& dbias,
                                                    const Tensor& dweight, const Tensor& dnorm_bias, bool accumulate) {
  with_broken_dropout(dropout, [&](const Dropout& given) {
    Dropout d = given;
    if (d.probability > 0 && broken("dropout.backward_with_other_mask")) ++d.seed;
    real().dropout_add_layer_norm_backward(dy, sum, weight, mean, rstd, d, dsum, dx, dbias, dweight, dnorm_bias,
                                           accumulate);
    if (broken("layer_norm_backward.weight_not_a_number"))
      edit(dweight, [](auto& v) { v[v.size() - 1] = not_a_number; });
    if (dx && broken("dropout_add_layer_norm_backward.mask_ignored")) {
      const Values<float> before_mask = floats(dsum);
      edit(dx, [&](auto& v) { std::copy_n(&before_mask[0], v.size(), v.begin()); });
    }
    if (dbias && executes() && broken("dropout_add_layer_norm_backward.bias_last_row_missing")) {
      const Values<float> last = floats(last_row(dx ? dx : dsum));
      edit(dbias, [&](auto& v) {
        for (std::int64_t c = 0; c < v.size(); ++c) v[c] -= last[c];
      });
    }
  });
}

}  // namespace assay::mutants
