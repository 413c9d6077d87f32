// my_plugin: y += a x over one vector, by a loop on the CPU.
#include <assay/plugin.hpp>

#include <cmath>
#include <vector>

struct MyPlugin {
  static constexpr auto id = "my_plugin", summary = "y += a x over one vector", item_unit = "elements";
  static constexpr auto params = assay::table(
      assay::Param::integer("n", 1 << 20).at_least(1).at_most(1 << 28).unit("elements").help("length of the vectors"),
      assay::Param::real("a", 0.5).help("factor"));
  static constexpr auto axpy = assay::phase("axpy");
  static constexpr auto phases = assay::table(axpy);
  static constexpr std::uint32_t device_flags = ASSAY_DEVICE_CPU;  // the loop reads device memory as its own

  explicit MyPlugin(const assay::Case& c) : host(c.host()), n(c.get<std::int64_t>("n")), a(c.get<float>("a")) {}

  // Once, before the warm-up: takes memory and fills it. Memory from the host is in the record, by kind.
  void setup(const assay::Launch&) {
    const auto bytes = static_cast<std::size_t>(n) * sizeof(float);
    x = assay::DeviceMemory(host, ASSAY_MEMORY_DATA, bytes, "x");
    y = assay::DeviceMemory(host, ASSAY_MEMORY_DATA, bytes, "y");
    for (std::int64_t i = 0; i < n; ++i) x.data<float>()[i] = value_of_x(i);
    marks.reserve(marked_steps);
    begin();
  }

  // One step, which is timed: it takes no memory and logs nothing.
  void run(const assay::LaunchOf<MyPlugin>& launch) {
    const auto phase = launch.phase(axpy);
    step();
  }

  // After the last measured step: how many there were, and what the first of them have left. The host compares the
  // number with the steps that it has timed, restarts, and wants the same marks of the same steps again.
  assay::Account account(const assay::Launch&) { return {.steps = steps, .marks_per_step = 1, .marks = marks}; }
  void restart(const assay::Launch&) { begin(); }

  // After that: two more from a known y. What is wrong has no times: throw WRONG_RESULT, or return what was
  // checked.
  std::string verify(const assay::Launch&) {
    for (std::int64_t i = 0; i < n; ++i) y.data<float>()[i] = 1;
    step(), step();
    for (std::int64_t i = 0; i < n; ++i) {
      const double expected = 1 + 2 * double{a} * double{value_of_x(i)};
      const double found = double{y.data<float>()[i]};
      if (!(std::abs(found - expected) <= 1e-6 * (2 * std::abs(expected) + 1)))  // a NaN is wrong, too
        throw assay::Error(ASSAY_WRONG_RESULT, "y[" + std::to_string(i) + "] is " + std::to_string(found) +
                                                   ", expected " + std::to_string(expected));
    }
    return "two steps add 2 a x[i] to every y[i]";
  }

  // Of one step: a multiply and an add for each element; reads x, reads y, writes y, of 4 bytes each.
  assay::Work work() const {
    const auto count = static_cast<std::uint64_t>(n);
    return {.flops = 2 * count, .bytes = 12 * count, .items = count, .arithmetic = ASSAY_ARITHMETIC_FP32};
  }

 private:
  // Another value for each place nearby: a loop that mixes places up is found.
  static float value_of_x(std::int64_t i) { return static_cast<float>(1 + i % 1009); }

  void begin() {
    for (std::int64_t i = 0; i < n; ++i) y.data<float>()[i] = 0;
    steps = 0, marks.clear();
  }

  void step() {
    const float* xs = x.data<float>();
    float* ys = y.data<float>();
    for (std::int64_t i = 0; i < n; ++i) ys[i] += a * xs[i];
    // Behind the loop, and of its last element: what returns before counts for nothing.
    if (++steps <= marked_steps)
      marks.push_back({.value = double{ys[n - 1]}, .magnitude = std::abs(double{ys[n - 1]})});
  }

  assay::Host host;
  std::int64_t n;
  float a;
  assay::DeviceMemory x, y;
  static constexpr std::uint64_t marked_steps = 64;
  std::uint64_t steps = 0;
  std::vector<assay::StepMark> marks;
};

ASSAY_PLUGIN("org.example.my_plugin", "0.1.0", MyPlugin)
