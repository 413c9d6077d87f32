// y += a x over one vector on the CPU: a whole plugin, as someone without this source tree would write it.
#include <assay/plugin.hpp>

#include <algorithm>

struct Axpy {
  static constexpr auto id = "axpy", summary = "y += a x over one vector", item_unit = "elements";
  static constexpr auto params = assay::table(assay::Param::integer("n", 1 << 20).at_least(1).help("vector length"));
  static constexpr std::uint32_t device_flags = ASSAY_DEVICE_CPU;

  explicit Axpy(const assay::Case& c) : host(c.host()), n(c.get<std::uint64_t>("n")) {}
  void setup(const assay::Launch&) {
    x = assay::DeviceMemory(host, ASSAY_MEMORY_DATA, n * sizeof(float), "x");
    y = assay::DeviceMemory(host, ASSAY_MEMORY_DATA, n * sizeof(float), "y");
    std::fill_n(x.data<float>(), n, 1.0f);
    std::fill_n(y.data<float>(), n, 0.0f);
  }
  void run(const assay::Launch&) {
    for (std::uint64_t i = 0; i < n; ++i) y.data<float>()[i] += a * x.data<float>()[i];
    ++steps;
  }
  std::string verify(const assay::Launch&) {
    const float expected = a * static_cast<float>(steps);
    if (std::count(y.data<float>(), y.data<float>() + n, expected) != static_cast<std::int64_t>(n))
      throw assay::Error(ASSAY_WRONG_RESULT, "not every element is " + std::to_string(expected));
    return "every element is " + std::to_string(expected);
  }
  assay::Work work() const { return {.flops = 2 * n, .bytes = 12 * n, .items = n}; }  // 12: read x and y, write y

  static constexpr float a = 0.5f;  // sums of it are exact in binary
  assay::Host host;
  std::uint64_t n, steps = 0;
  assay::DeviceMemory x, y;
};
ASSAY_PLUGIN("org.example.axpy", "1.0.0", Axpy)
