// Operations whose elements depend on elements of the same place, and on a vector.
#include <cmath>
#include <numbers>

#include "judge.hpp"
#include "masks.hpp"

namespace assay::compute {

using audit::Segments;
using audit::Values;

namespace {

struct Slope {
  double value, derivative;
};

Slope activation(Activation kind, double x) {
  switch (kind) {
    case Activation::relu: return {std::fmax(x, 0), x > 0 ? 1.0 : 0.0};
    case Activation::gelu_erf: {
      const double phi = 0.5 * std::erfc(-x / std::numbers::sqrt2);
      return {x * phi, phi + x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi)};
    }
    case Activation::gelu_tanh: {
      const double root = std::sqrt(2 / std::numbers::pi);
      const double t = std::tanh(root * (x + 0.044715 * x * x * x));
      return {0.5 * x * (1 + t), 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x)};
    }
    case Activation::silu: {
      const double s = 1 / (1 + std::exp(-x));
      return {x * s, s * (1 + x * (1 - s))};
    }
  }
  return {NAN, NAN};
}

double at(const Values& v, std::size_t i) { return v.empty() ? 0 : v[i]; }

}  // namespace

void AuditedBackend::add(const Tensor& a, const Tensor& b, const Tensor& out) {
  if (!judge_->begins("add", out, audit::elements_looked_at(out, 3))) return real().add(a, b, out);
  const Segments places = audit::some_segments(out, audit::room);
  const Values x = judge_->read(a, places), y = judge_->read(b, places);
  real().add(a, b, out);
  judge_->each(out, "out", places, [&](std::size_t i, std::int64_t, std::size_t) {
    return std::pair(x[i] + y[i], std::abs(x[i]) + std::abs(y[i]));
  });
}

void AuditedBackend::multiply(const Tensor& a, const Tensor& b, const Tensor& out) {
  if (!judge_->begins("multiply", out, audit::elements_looked_at(out, 3))) return real().multiply(a, b, out);
  const Segments places = audit::some_segments(out, audit::room);
  const Values x = judge_->read(a, places), y = judge_->read(b, places);
  real().multiply(a, b, out);
  judge_->each(out, "out", places,
               [&](std::size_t i, std::int64_t, std::size_t) { return std::pair(x[i] * y[i], std::abs(x[i] * y[i])); });
}

void AuditedBackend::scale(const Tensor& x, float factor, const Tensor& out) {
  if (!judge_->begins("scale", out, audit::elements_looked_at(out, 2))) return real().scale(x, factor, out);
  const Segments places = audit::some_segments(out, audit::room);
  const Values in = judge_->read(x, places);
  real().scale(x, factor, out);
  const auto by = static_cast<double>(factor);
  judge_->each(out, "out", places,
               [&](std::size_t i, std::int64_t, std::size_t) { return std::pair(in[i] * by, std::abs(in[i] * by)); });
}

void AuditedBackend::activation_forward(Activation kind, const Tensor& x, const Tensor& y) {
  if (!judge_->begins("activation_forward", y, audit::elements_looked_at(y, 2)))
    return real().activation_forward(kind, x, y);
  const Segments places = audit::some_segments(y, audit::room);
  const Values in = judge_->read(x, places);
  real().activation_forward(kind, x, y);
  judge_->each(y, "y", places, [&](std::size_t i, std::int64_t, std::size_t) {
    return std::pair(activation(kind, in[i]).value, std::abs(in[i]));
  });
}

void AuditedBackend::activation_backward(Activation kind, const Tensor& x, const Tensor& dy, const Tensor& dx) {
  if (!judge_->begins("activation_backward", dx, audit::elements_looked_at(dx, 3)))
    return real().activation_backward(kind, x, dy, dx);
  const Segments places = audit::some_segments(dx, audit::room);
  const Values in = judge_->read(x, places), gradient = judge_->read(dy, places);
  real().activation_backward(kind, x, dy, dx);
  judge_->each(dx, "dx", places, [&](std::size_t i, std::int64_t, std::size_t) {
    return std::pair(gradient[i] * activation(kind, in[i]).derivative, std::abs(gradient[i]) * (1 + std::abs(in[i])));
  });
}

void AuditedBackend::bias_add(const Tensor& x, const Tensor& bias, const Tensor& y) {
  if (!judge_->begins("bias_add", y, audit::elements_looked_at(y, 2))) return real().bias_add(x, bias, y);
  const Segments places = audit::some_segments(y, audit::room);
  const Values in = judge_->read(x, places), b = judge_->read(bias);
  real().bias_add(x, bias, y);
  judge_->each(y, "y", places, [&](std::size_t i, std::int64_t, std::size_t c) {
    return std::pair(in[i] + b[c], std::abs(in[i]) + std::abs(b[c]));
  });
}

void AuditedBackend::bias_backward(const Tensor& dy, const Tensor& dbias, bool accumulate) {
  if (!judge_->begins("bias_backward", dy, static_cast<double>(dy.elements())))
    return real().bias_backward(dy, dbias, accumulate);
  const Values gradient = judge_->read(dy);
  Values expected = accumulate ? judge_->read(dbias) : Values(static_cast<std::size_t>(dbias.elements()));
  real().bias_backward(dy, dbias, accumulate);
  Values terms(expected.size());
  for (std::size_t c = 0; c < terms.size(); ++c) terms[c] = std::abs(expected[c]);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    expected[i % expected.size()] += gradient[i];
    terms[i % terms.size()] += std::abs(gradient[i]);
  }
  judge_->each(dbias, "dbias", audit::whole(dbias),
               [&](std::size_t i, std::int64_t, std::size_t) { return std::pair(expected[i], terms[i]); });
}

void AuditedBackend::swiglu_forward(const Tensor& gate, const Tensor& up, const Tensor& h) {
  if (!judge_->begins("swiglu_forward", h, audit::elements_looked_at(h, 3))) return real().swiglu_forward(gate, up, h);
  const Segments places = audit::some_segments(h, audit::room);
  const Values g = judge_->read(gate, places), u = judge_->read(up, places);
  real().swiglu_forward(gate, up, h);
  judge_->each(h, "h", places, [&](std::size_t i, std::int64_t, std::size_t) {
    const double product = activation(Activation::silu, g[i]).value * u[i];
    return std::pair(product, std::abs(product));
  });
}

void AuditedBackend::swiglu_backward(const Tensor& gate, const Tensor& up, const Tensor& dh, const Tensor& dgate,
                                     const Tensor& dup, const Tensor& h) {
  const auto call = [&] { real().swiglu_backward(gate, up, dh, dgate, dup, h); };
  if (!judge_->begins("swiglu_backward", dgate, audit::elements_looked_at(dgate, 5))) return call();
  const Segments places = audit::some_segments(dgate, audit::room);
  const Values g = judge_->read(gate, places), u = judge_->read(up, places), d = judge_->read(dh, places);
  call();
  judge_->each(dgate, "dgate", places, [&](std::size_t i, std::int64_t, std::size_t) {
    return std::pair(d[i] * u[i] * activation(Activation::silu, g[i]).derivative,
                     std::abs(d[i] * u[i]) * (1 + std::abs(g[i])));
  });
  judge_->each(dup, "dup", places, [&](std::size_t i, std::int64_t, std::size_t) {
    const double product = d[i] * activation(Activation::silu, g[i]).value;
    return std::pair(product, std::abs(product));
  });
  if (h)
    judge_->each(h, "h", places, [&](std::size_t i, std::int64_t, std::size_t) {
      const double product = activation(Activation::silu, g[i]).value * u[i];
      return std::pair(product, std::abs(product));
    });
}

void AuditedBackend::dropout(const Tensor& x, const Tensor& y, float probability, std::uint64_t seed,
                             std::uint64_t stream, const Tensor& step) {
  const auto call = [&] { real().dropout(x, y, probability, seed, stream, step); };
  if (!judge_->begins("dropout", y, audit::elements_looked_at(y, 10))) return call();
  const Segments places = audit::some_segments(y, audit::room);
  const Values in = judge_->read(x, places);
  call();
  const audit::Mask mask(real(), {probability, seed, stream, step});
  judge_->each(y, "y", places, [&](std::size_t i, std::int64_t place, std::size_t) {
    const double expected = mask.through(place, in[i]);
    return std::pair(expected, std::abs(expected));
  });
}

void AuditedBackend::bias_relu_dropout_forward(const Tensor& x, const Tensor& bias, const Tensor& y,
                                               const Dropout& dropout) {
  const auto call = [&] { real().bias_relu_dropout_forward(x, bias, y, dropout); };
  if (!judge_->begins("bias_relu_dropout_forward", y, audit::elements_looked_at(y, 10))) return call();
  const Segments places = audit::some_segments(y, audit::room);
  const Values in = judge_->read(x, places), b = bias ? judge_->read(bias) : Values();
  call();
  const audit::Mask mask(real(), dropout);
  judge_->each(y, "y", places, [&](std::size_t i, std::int64_t place, std::size_t c) {
    return std::pair(mask.through(place, std::fmax(in[i] + at(b, c), 0)),
                     mask.through(place, std::abs(in[i]) + std::abs(at(b, c))));
  });
}

void AuditedBackend::relu_dropout_backward(const Tensor& y, const Tensor& dy, const Tensor& dx, float probability) {
  const auto call = [&] { real().relu_dropout_backward(y, dy, dx, probability); };
  if (!judge_->begins("relu_dropout_backward", dx, audit::elements_looked_at(dx, 3))) return call();
  const Segments places = audit::some_segments(dx, audit::room);
  const Values out = judge_->read(y, places), gradient = judge_->read(dy, places);
  call();
  const double factor = 1 / (1 - static_cast<double>(probability));
  judge_->each(dx, "dx", places, [&](std::size_t i, std::int64_t, std::size_t) {
    const double expected = out[i] > 0 ? gradient[i] * factor : 0;
    return std::pair(expected, std::abs(expected));
  });
}

}  // namespace assay::compute
