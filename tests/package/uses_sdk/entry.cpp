// The least that a plugin can be: here the headers beside it and the libraries it links are what is tested.
#include <assay/plugin.hpp>

struct Nothing {
  static constexpr auto id = "nothing", summary = "does nothing";
  explicit Nothing(const assay::Case&) {}
  void setup(const assay::Launch&) {}
  void run(const assay::Launch&) {}
};
ASSAY_PLUGIN("org.example.uses_sdk", "1.0.0", Nothing)
