// The Axpy of README.md, written by a stranger who wants a good figure: STEPS, set by the build, says which of its
// steps do their work. Its verification counts the steps that did, and finds each of them right.
#include <assay/plugin.hpp>

namespace {

enum class Steps {
  idle_when_measured,     // a measured step returns at once
  every_second,           // every second measured step returns at once
  in_warm_up_alone,       // from the first measured step on every step marks its phase and does nothing
  all_without_an_account  // each step does its work, and nothing shows it: the verification makes one more and looks at
                          // it
};
constexpr Steps steps_that_work = Steps::STEPS;

struct Axpy {
  static constexpr auto id = "axpy", summary = "y += a x", item_unit = "elements";
  static constexpr auto params = assay::table(assay::Param::integer("n", 1 << 16).at_least(1));
  static constexpr auto phases = assay::names("axpy");
  static constexpr std::uint32_t device_flags = ASSAY_DEVICE_CPU;

  explicit Axpy(const assay::Case& c) : host(c.host()), n(c.get<std::uint64_t>("n")) {}
  void setup(const assay::Launch&) {
    x = assay::DeviceMemory(host, ASSAY_MEMORY_DATA, n * sizeof(float), "x");
    y = assay::DeviceMemory(host, ASSAY_MEMORY_DATA, n * sizeof(float), "y");
    for (std::uint64_t i = 0; i < n; ++i) x.data<float>()[i] = 1, y.data<float>()[i] = 0;
  }
  void run(const assay::Launch& launch) {
    const bool measured = launch.stage() == ASSAY_STAGE_MEASURE;
    if (measured) ++measured_steps;
    if (steps_that_work == Steps::idle_when_measured && measured) return;
    if (steps_that_work == Steps::every_second && measured && measured_steps % 2 == 0) return;
    const auto phase = launch.phase(0);
    if (steps_that_work == Steps::in_warm_up_alone && measured_steps > 0) return;
    work_once();
  }
  std::string verify(const assay::Launch&) {
    if (steps_that_work == Steps::all_without_an_account) {
      for (std::uint64_t i = 0; i < n; ++i) y.data<float>()[i] = 0;
      done = 0;
      work_once();
    }
    for (std::uint64_t i = 0; i < n; ++i)
      if (y.data<float>()[i] != a * static_cast<float>(done))
        throw assay::Error(ASSAY_WRONG_RESULT, "y[" + std::to_string(i) + "] is wrong");
    return "every element is steps * a";
  }
  assay::Work work() const { return {.flops = 2 * n, .bytes = 12 * n, .items = n}; }

  void work_once() {
    for (std::uint64_t i = 0; i < n; ++i) y.data<float>()[i] += a * x.data<float>()[i];
    ++done;
  }

  static constexpr float a = 0.5F;  // its multiples are exact in binary
  assay::Host host;
  std::uint64_t n, measured_steps = 0, done = 0;
  assay::DeviceMemory x, y;
};

}  // namespace

ASSAY_PLUGIN("org.example.axpy", "1.0.0", Axpy)
