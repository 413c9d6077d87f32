// What a device finds out about itself (assay.probe/1).
#include <assay/probe.h>

#include <cmath>
#include <map>
#include <sstream>
#include <string>

#include "harness.hpp"

namespace assay::conformance {
namespace {

const assay_probe* probes() {
  return static_cast<const assay_probe*>(Session::get().api().get_extension(ASSAY_EXT_PROBE));
}

struct Written {
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> texts;

  assay_probe_sink sink() {
    return {sizeof(assay_probe_sink), this,
            [](void* context, const char* key, double value) noexcept {
              static_cast<Written*>(context)->numbers[key] = value;
            },
            [](void* context, const char* key, const char* value) noexcept {
              static_cast<Written*>(context)->texts[key] = value;
            }};
  }
};

TEST(Probe, NamesItsProbesAndRefusesOthers) {
  const assay_probe* const probe = probes();
  ASSERT_NE(probe, nullptr);
  Written written;
  assay_probe_sink sink = written.sink();
  EXPECT_EQ(probe->run(Session::get().device(), "weather", &sink), ASSAY_INVALID_ARGUMENT);
  std::istringstream names(probe->names);
  std::string listed;
  for (std::string name; names >> name;) listed += (listed.empty() ? "" : ", ") + name;
  EXPECT_FALSE(listed.empty());
  const std::string refusal = Session::get().api().error_text(), before = "expected one of ";
  const std::size_t at = refusal.find(before);
  ASSERT_NE(at, std::string::npos) << refusal;
  EXPECT_EQ(refusal.substr(at + before.size()), listed);
  sink.struct_size = sizeof(std::size_t);
  EXPECT_EQ(probe->run(Session::get().device(), "events", &sink), ASSAY_INVALID_ARGUMENT);
  EXPECT_TRUE(written.numbers.empty() && written.texts.empty());
}

// Figures with a table and a unit, and none that no device has. Of the cheapest probe, which every device has.
TEST(Probe, FindsFigures) {
  const assay_probe* const probe = probes();
  ASSERT_NE(probe, nullptr);
  Written written;
  const assay_probe_sink sink = written.sink();
  ASSERT_EQ(probe->run(Session::get().device(), "events", &sink), ASSAY_OK) << Session::get().api().error_text();
  for (const char* key : {"event.least_gap_us", "event.gap_us", "event.resolution_ns"}) {
    ASSERT_TRUE(written.numbers.contains(key)) << key;
    EXPECT_TRUE(std::isfinite(written.numbers[key]) && written.numbers[key] >= 0) << written.numbers[key];
  }
  EXPECT_LE(written.numbers["event.least_gap_us"], written.numbers["event.gap_us"]);
}

}  // namespace
}  // namespace assay::conformance
