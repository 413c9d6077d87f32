// A workload that uses the memory that it takes by itself. With TELLS it declares by assay.plan/1 what a case takes.
#include <assay/plugin.hpp>

#include <cstring>

namespace {

class Told {
 public:
  static constexpr const char* id = "told";
  static constexpr const char* summary = "adds two vectors, and declares what that takes";
  static constexpr auto params =
      assay::table(assay::Param::integer("n", 1000).at_least(1).unit("elements").help("length of the vectors"));

  explicit Told(const assay::Case& c) : host_(c.host()), n_(c.get<std::int64_t>("n")) {}
  void setup(const assay::Launch&) {
    memory_ = assay::DeviceMemory(host_, ASSAY_MEMORY_DATA, bytes(), "vectors");
    std::memset(memory_.data(), 1, bytes());
  }
  void run(const assay::Launch&) {}
#if TELLS
  void plan(const assay::Planning& planning) const {
    if (n_ == 13) throw assay::Error(ASSAY_INVALID_ARGUMENT, "n is 13; expected another number");
    planning.take(ASSAY_MEMORY_WORKSPACE, 4096);
    planning.take(ASSAY_MEMORY_DATA, bytes());
    planning.give_back(ASSAY_MEMORY_WORKSPACE, 4096);
    planning.operation("add", ASSAY_OPERATION_OTHER, {.bytes = bytes()});
  }
#endif

 private:
  std::uint64_t bytes() const { return 3 * 8 * static_cast<std::uint64_t>(n_); }

  assay::Host host_;
  std::int64_t n_;
  assay::DeviceMemory memory_;
};

}  // namespace

ASSAY_PLUGIN("org.assay.test.told", "1.0.0", Told)
