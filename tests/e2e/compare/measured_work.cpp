// A step of a known amount of work, for comparisons: `work` = 1.03 really takes 3% longer than `work` = 1, on any
// machine and under any load, as nothing but the number of turns differs.
#include <assay/plugin.hpp>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace {

class MeasuredWork {
 public:
  static constexpr auto id = "measured_work", summary = "sweeps over a vector, as many as asked for",
                        item_unit = "samples";
  static constexpr auto params =
      assay::table(assay::Param::real("work", 1.0).at_least(0).help("amount of work; 1: 1000 turns"),
                   assay::Param::integer("elements", 4096).at_least(1).help("length of the vector"),
                   assay::Param::integer("batch_size", 1).at_least(1).help("samples that a step is said to have"),
                   assay::Param::boolean("right", true).help("false: the verification fails"));
  static constexpr auto phases = assay::names("sweep");
  static constexpr auto metrics =
      assay::table(assay::Metric::per_case("turns", nullptr, ASSAY_NEITHER_IS_BETTER, "turns of a step"));
  static constexpr std::uint32_t device_flags = ASSAY_DEVICE_CPU;

  explicit MeasuredWork(const assay::Case& c)
      : turns_(std::llround(1000.0 * c.get<double>("work"))),
        batch_size_(c.get<std::int64_t>("batch_size")),
        right_(c.get<bool>("right")),
        vector_(static_cast<std::size_t>(c.get<std::int64_t>("elements")), 0.0F) {}

  void setup(const assay::Launch&) {}

  void run(const assay::Launch& launch) {
    const auto phase = launch.phase(0);
    for (std::int64_t turn = 0; turn < turns_; ++turn) {
      for (float& x : vector_) x = 0.999F * x + 1.0F;
      // The next turn starts from what this one wrote, and none can be left out.
      asm volatile("" : : "r"(vector_.data()) : "memory");
    }
  }

  void finish(const assay::Launch& launch) { launch.metric(0, static_cast<double>(turns_)); }

  std::string verify(const assay::Launch&) const {
    const float first = vector_.front();
    for (const float x : vector_)
      if (x != first) throw assay::Error(ASSAY_WRONG_RESULT, "elements that had the same sweeps differ");
    if (!right_) throw assay::Error(ASSAY_WRONG_RESULT, "wrong as asked for");
    return "all elements equal";
  }

  assay::Work work() const {
    const auto updates = static_cast<std::uint64_t>(turns_) * vector_.size();
    return {.flops = 2 * updates, .bytes = 0, .items = static_cast<std::uint64_t>(batch_size_)};
  }

 private:
  std::int64_t turns_, batch_size_;
  bool right_;
  std::vector<float> vector_;
};

}  // namespace

ASSAY_PLUGIN("org.assay.test.measured_work", "1.0.0", MeasuredWork)
