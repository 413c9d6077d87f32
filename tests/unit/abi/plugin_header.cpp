// assay/plugin.hpp alone, and the least that a plugin can be: required members and nothing else.
#include <assay/plugin.hpp>

namespace {
struct Least {
  static constexpr auto id = "least", summary = "does nothing";
  explicit Least(const assay::Case&) {}
  void setup(const assay::Launch&) {}
  void run(const assay::Launch&) {}
};
}  // namespace

ASSAY_PLUGIN("org.example.least", "1.0.0", Least)
