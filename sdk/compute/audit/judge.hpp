// Decides what of an operation is looked at, and whether what was found is within rounding of what was expected.
#pragma once
#include <assay/compute/audited_backend.hpp>

#include <set>
#include <string>

#include "reading.hpp"

namespace assay::compute {

class AuditedBackend::Judge {
 public:
  using Values = audit::Values;
  using Segments = audit::Segments;

  Judge(Backend& backend, const AuditLimits& limits) : backend_(backend), limits_(limits), left_(limits.total) {}

  // Whether to check the next operation. `signature` distinguishes kinds and shapes; `cost` counts as in AuditLimits.
  // Nothing in Mode::prepare.
  bool begins(const std::string& operation, const Tensor& of, double cost, const std::string& signature = "");
  // Whether none of its kind and shape was looked at yet.
  bool is_new(const std::string& operation, const Tensor& of, const std::string& signature) const {
    return !signatures_.contains(kind_of(operation, of, signature));
  }
  // Whether one that is new may be looked at whole, which costs so much.
  bool may_look_at_whole(const std::string& operation, const Tensor& of, double cost,
                         const std::string& signature) const {
    return cost <= most_of_whole * limits_.each && is_new(operation, of, signature);
  }
  // Something of an operation that is looked at otherwise, and that is not checked here.
  void leave_out(const std::string& what) { left_out_.insert(what); }
  void leave_out_of_this(const std::string& what) { left_out_.insert(what + ' ' + operation_); }
  // An element. `terms` is at least the sum of the absolute values that were added up for it. `stored` is how much it
  // may differ beyond the type's rounding of the result, for what was rounded to 16 bits on the way.
  void element(const Tensor& of, const char* tensor, std::int64_t place, double found, double expected, double terms,
               double stored = 0);
  // An element with its own `allowed`.
  void within(const char* tensor, std::int64_t place, double found, double expected, double allowed);
  [[noreturn]] void wrong(const char* tensor, const std::string& what) const;

  // Half a unit in the last place, relative.
  static double rounding_of(DType dtype);

  Values read(const Tensor& t) { return audit::read(backend_, t); }
  Values read(const Tensor& t, const Segments& s) { return audit::read(backend_, t, s); }
  Values read_rows(const Tensor& t, const audit::Places& rows) { return audit::read_rows(backend_, t, rows); }
  double number(const Tensor& t) { return audit::read_number(backend_, t); }

  // `out` by elements: rule(element, column, i, found) gives {expected, terms}, i counting what was read of the inputs.
  template <class Rule>
  void each(const Tensor& out, const char* tensor, const Segments& segments, const Rule& rule) {
    const Values found = read(out, segments);
    std::size_t i = 0;
    for (const audit::Segment& s : segments)
      for (std::int64_t c = s.first; c < s.first + s.count; ++c, ++i) {
        const std::int64_t place = s.row * audit::width_of(out) + c;
        const auto [expected, terms] = rule(i, place, static_cast<std::size_t>(c));
        element(out, tensor, place, found[i], expected, terms);
      }
  }

  std::string text() const;
  bool looked_at_all() const { return left_out_.empty(); }
  void set_mode(Mode mode) { executes_ = mode == Mode::execute; }
  void capturing(bool now) { capturing_ = now; }
  bool executes() const { return executes_ && !capturing_; }

 private:
  static constexpr double most_of_whole = 10;  // of AuditLimits::each
  Backend& backend_;
  AuditLimits limits_;
  double left_;
  bool executes_ = true, capturing_ = false;
  std::string operation_;  // the one that is being looked at
  static std::string kind_of(const std::string& operation, const Tensor& of, const std::string& signature);
  std::set<std::string> signatures_, left_out_;
  std::int64_t seen_ = 0, looked_at_ = 0;
  double worst_ = 0;  // relative to what is allowed
  std::string worst_at_;
};

}  // namespace assay::compute
