// A workload whose verification comes to what its parameter says.
#include <assay/plugin.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace {

constexpr auto shares = assay::names("all", "part", "nothing", "wrong");

struct PartlyVerified {
  static constexpr auto id = "partly_verified", summary = "does nothing, and checks as much of it as it is told";
  static constexpr auto params = assay::table(assay::Param::choice("checks", "all", shares).help("how much"),
                                              assay::Param::boolean("ends", false).help("the process, in a part"));
  explicit PartlyVerified(const assay::Case& c)
      : host_(c.host()), checks_(c.get<std::string>("checks")), ends_(c.get<bool>("ends")) {}
  void setup(const assay::Launch&) { assay::begin_part(host_, "kernels"); }
  void run(const assay::Launch&) { ++steps_; }
  assay::Account account(const assay::Launch&) const { return {.steps = steps_}; }
  assay::Verified verify(const assay::Launch&) const {
    assay::begin_part(host_, "data");
    assay::begin_part(host_, "no name");
    assay::begin_part(host_, "optimizer");
    assay::begin_part(host_, "data");
    if (ends_) std::abort();
    if (checks_ == "nothing") throw assay::Error(ASSAY_UNSUPPORTED, "no reference");
    if (checks_ == "wrong") throw assay::Error(ASSAY_WRONG_RESULT, "1 is not 2");
    return {"checked " + checks_, checks_ == "part"};
  }

 private:
  assay::Host host_;
  std::string checks_;
  bool ends_;
  std::uint64_t steps_ = 0;
};

}  // namespace

ASSAY_PLUGIN("org.assay.test.partly_verified", "1.0.0", PartlyVerified)
