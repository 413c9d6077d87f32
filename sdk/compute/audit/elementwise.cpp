// Operations whose elements depend on elements of the same place, and on a vector.
#include <cmath>
#include <numbers>

#include "judge.hpp"
#include "lines.hpp"
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

// Of the activated gate. GELU by tanh is a sum that cancels on the left; SiLU is one product.
double gate_terms(Activation kind, double gate) {
  return kind == Activation::silu ? std::abs(activation(kind, gate).value) : std::abs(gate);
}

// What sets one gated unit apart from another in a list of what was looked at.
template <class Op>
const char* signature_of(const Op& op) {
  return op.eight_bits ? " in 8 bits" : op.activation == Activation::silu ? "" : " of GELU";
}

double at(const Values& v, std::size_t i) { return v.empty() ? 0 : v[i]; }

}  // namespace

void AuditedBackend::execute(const op::Add& op) {
  if (!judge_->begins(op.name, op.out, audit::elements_looked_at(op.out, 3))) return real().run(op);
  const Segments places = audit::some_segments(op.out, audit::room);
  const Values x = judge_->read(op.a, places), y = judge_->read(op.b, places);
  real().run(op);
  judge_->each(op.out, "out", places, [&](std::size_t i, std::int64_t, std::size_t) {
    return std::pair(x[i] + y[i], std::abs(x[i]) + std::abs(y[i]));
  });
}

void AuditedBackend::execute(const op::Multiply& op) {
  if (!judge_->begins(op.name, op.out, audit::elements_looked_at(op.out, 3))) return real().run(op);
  const Segments places = audit::some_segments(op.out, audit::room);
  const Values x = judge_->read(op.a, places), y = judge_->read(op.b, places);
  real().run(op);
  judge_->each(op.out, "out", places,
               [&](std::size_t i, std::int64_t, std::size_t) { return std::pair(x[i] * y[i], std::abs(x[i] * y[i])); });
}

void AuditedBackend::execute(const op::Scale& op) {
  if (!judge_->begins(op.name, op.out, audit::elements_looked_at(op.out, 2))) return real().run(op);
  const Segments places = audit::some_segments(op.out, audit::room);
  const Values in = judge_->read(op.x, places);
  real().run(op);
  const auto by = static_cast<double>(op.factor);
  judge_->each(op.out, "out", places,
               [&](std::size_t i, std::int64_t, std::size_t) { return std::pair(in[i] * by, std::abs(in[i] * by)); });
}

void AuditedBackend::execute(const op::SoftCap& op) {
  if (!judge_->begins(op.name, op.out, audit::elements_looked_at(op.out, 2))) return real().run(op);
  const Segments places = audit::some_segments(op.out, audit::room);
  const Values in = judge_->read(op.x, places);
  real().run(op);
  const auto cap = static_cast<double>(op.cap);
  judge_->each(op.out, "out", places, [&](std::size_t i, std::int64_t, std::size_t) {
    const double capped = cap * std::tanh(in[i] / cap);
    return std::pair(capped, std::abs(capped));
  });
}

void AuditedBackend::execute(const op::ActivationForward& op) {
  if (!judge_->begins(op.name, op.y, audit::elements_looked_at(op.y, 2))) return real().run(op);
  const Segments places = audit::some_segments(op.y, audit::room);
  const Values in = judge_->read(op.x, places);
  real().run(op);
  judge_->each(op.y, "y", places, [&](std::size_t i, std::int64_t, std::size_t) {
    return std::pair(activation(op.kind, in[i]).value, std::abs(in[i]));
  });
}

void AuditedBackend::execute(const op::ActivationBackward& op) {
  if (!judge_->begins(op.name, op.dx, audit::elements_looked_at(op.dx, 3))) return real().run(op);
  const Segments places = audit::some_segments(op.dx, audit::room);
  const Values in = judge_->read(op.x, places), gradient = judge_->read(op.dy, places);
  real().run(op);
  judge_->each(op.dx, "dx", places, [&](std::size_t i, std::int64_t, std::size_t) {
    return std::pair(gradient[i] * activation(op.kind, in[i]).derivative,
                     std::abs(gradient[i]) * (1 + std::abs(in[i])));
  });
}

void AuditedBackend::execute(const op::BiasAdd& op) {
  if (!judge_->begins(op.name, op.y, audit::elements_looked_at(op.y, 2))) return real().run(op);
  const Segments places = audit::some_segments(op.y, audit::room);
  const Values in = judge_->read(op.x, places), b = judge_->read(op.bias);
  real().run(op);
  judge_->each(op.y, "y", places, [&](std::size_t i, std::int64_t, std::size_t c) {
    return std::pair(in[i] + b[c], std::abs(in[i]) + std::abs(b[c]));
  });
}

void AuditedBackend::execute(const op::BiasBackward& op) {
  if (!judge_->begins(op.name, op.dy, static_cast<double>(op.dy.elements()), op.accumulate ? " accumulate" : ""))
    return real().run(op);
  // By rows that add up: their weights are 1. Of n terms the absolute values come to sqrt(n times their squares) at
  // most.
  const std::int64_t columns = audit::width_of(op.dy), rows = audit::rows_of(op.dy);
  const Values ones(static_cast<std::size_t>(rows), 1);
  const LineSums sums = inspector_of(real())->sum_matrix(op.dy.view({rows, columns}), {}, {ones, ones}).of_columns;
  const Values before = op.accumulate ? judge_->read(op.dbias) : Values(sums.values.size());
  real().run(op);
  judge_->each(op.dbias, "dbias", audit::whole(op.dbias), [&](std::size_t i, std::int64_t, std::size_t) {
    return std::pair(before[i] + sums.values[i],
                     std::abs(before[i]) + std::sqrt(static_cast<double>(rows) * sums.squares[i]));
  });
}

void AuditedBackend::execute(const op::SwigluForward& op) {
  const char* const signature = signature_of(op);
  if (!judge_->begins(op.name, op.gate, audit::elements_looked_at(op.gate, op.eight_bits ? 6 : 3), signature))
    return real().run(op);
  const Segments places = audit::some_segments(op.gate, audit::room);
  const Values g = judge_->read(op.gate, places), u = judge_->read(op.up, places);
  const audit::Places rows = op.eight_bits ? audit::some_lines(op.eight_bits.numbers) : audit::Places();
  const Values gs = op.eight_bits ? judge_->read_rows(op.gate, rows) : Values();
  const Values us = op.eight_bits ? judge_->read_rows(op.up, rows) : Values();
  real().run(op);
  const auto product_of = [&](double gate, double up) { return activation(op.activation, gate).value * up; };
  if (op.h)
    judge_->each(op.h, "h", places, [&](std::size_t i, std::int64_t, std::size_t) {
      return std::pair(product_of(g[i], u[i]), gate_terms(op.activation, g[i]) * std::abs(u[i]));
    });
  if (!op.eight_bits) return;
  Values h(gs.size());
  for (std::size_t i = 0; i < h.size(); ++i) h[i] = product_of(gs[i], us[i]);
  audit::judge_lines(*judge_, rows, h, op.eight_bits.numbers, op.eight_bits.inverse_scale,
                     2 * Judge::rounding_of(op.gate.dtype));
}

void AuditedBackend::execute(const op::SwigluBackward& op) {
  const auto call = [&] { real().run(op); };
  const char* const signature = signature_of(op);
  if (!judge_->begins(op.name, op.gate, audit::elements_looked_at(op.gate, op.eight_bits ? 8 : 5), signature))
    return call();
  const Segments places = audit::some_segments(op.gate, audit::room);
  const Values g = judge_->read(op.gate, places), u = judge_->read(op.up, places), d = judge_->read(op.dh, places);
  const bool alone = !op.dgate;
  const audit::Places rows = alone ? audit::some_lines(op.eight_bits.numbers) : audit::Places();
  const auto rows_of_all = [&](const Tensor& t) { return alone ? judge_->read_rows(t, rows) : Values(); };
  const Values gs = rows_of_all(op.gate), us = rows_of_all(op.up), ds = rows_of_all(op.dh);
  call();
  if (op.h)
    judge_->each(op.h, "h", places, [&](std::size_t i, std::int64_t, std::size_t) {
      return std::pair(activation(op.activation, g[i]).value * u[i], gate_terms(op.activation, g[i]) * std::abs(u[i]));
    });
  if (alone) {
    const auto width = static_cast<std::size_t>(op.gate.dim(-1));
    Values both(2 * gs.size());
    for (std::size_t i = 0; i < gs.size(); ++i) {
      const std::size_t at = i / width * 2 * width + i % width;
      both[at] = ds[i] * us[i] * activation(op.activation, gs[i]).derivative;
      both[at + width] = ds[i] * activation(op.activation, gs[i]).value;
    }
    return audit::judge_lines(*judge_, rows, both, op.eight_bits.numbers, op.eight_bits.inverse_scale,
                              2 * Judge::rounding_of(op.gate.dtype));
  }
  judge_->each(op.dgate, "dgate", places, [&](std::size_t i, std::int64_t, std::size_t) {
    return std::pair(d[i] * u[i] * activation(op.activation, g[i]).derivative,
                     std::abs(d[i] * u[i]) * (1 + std::abs(g[i])));
  });
  judge_->each(op.dup, "dup", places, [&](std::size_t i, std::int64_t, std::size_t) {
    return std::pair(d[i] * activation(op.activation, g[i]).value, std::abs(d[i]) * gate_terms(op.activation, g[i]));
  });
  // Of the numbers beside them, which have just been judged.
  if (op.eight_bits)
    audit::judge_beside(*judge_, Tensor(op.dgate.data, op.dgate.dtype, {op.dgate.dim(0), 2 * op.dgate.dim(1)}),
                        op.eight_bits);
}

void AuditedBackend::execute(const op::ApplyDropout& op) {
  const auto call = [&] { real().run(op); };
  if (!judge_->begins(op.name, op.y, audit::elements_looked_at(op.y, 10))) return call();
  const Segments places = audit::some_segments(op.y, audit::room);
  const Values in = judge_->read(op.x, places);
  call();
  const audit::Mask mask(real(), op.dropout);
  judge_->each(op.y, "y", places, [&](std::size_t i, std::int64_t place, std::size_t) {
    const double expected = mask.through(place, in[i]);
    return std::pair(expected, std::abs(expected));
  });
}

void AuditedBackend::execute(const op::BiasReluDropoutForward& op) {
  const auto call = [&] { real().run(op); };
  if (!judge_->begins(op.name, op.y, audit::elements_looked_at(op.y, 10))) return call();
  const Segments places = audit::some_segments(op.y, audit::room);
  const Values in = judge_->read(op.x, places), b = op.bias ? judge_->read(op.bias) : Values();
  call();
  const audit::Mask mask(real(), op.dropout);
  judge_->each(op.y, "y", places, [&](std::size_t i, std::int64_t place, std::size_t c) {
    return std::pair(mask.through(place, std::fmax(in[i] + at(b, c), 0)),
                     mask.through(place, std::abs(in[i]) + std::abs(at(b, c))));
  });
}

void AuditedBackend::execute(const op::ReluDropoutBackward& op) {
  const auto call = [&] { real().run(op); };
  if (!judge_->begins(op.name, op.dx, audit::elements_looked_at(op.dx, 3))) return call();
  const Segments places = audit::some_segments(op.dx, audit::room);
  const Values out = judge_->read(op.y, places), gradient = judge_->read(op.dy, places);
  call();
  const double factor = 1 / (1 - static_cast<double>(op.probability));
  judge_->each(op.dx, "dx", places, [&](std::size_t i, std::int64_t, std::size_t) {
    const double expected = out[i] > 0 ? gradient[i] * factor : 0;
    return std::pair(expected, std::abs(expected));
  });
}

}  // namespace assay::compute
