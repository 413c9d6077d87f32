#include <assay/plugin.hpp>

struct Axpy {
  static constexpr auto id = "axpy", summary = "y += a x", item_unit = "elements";
  static constexpr auto params = assay::table(assay::Param::integer("n", 1 << 20).at_least(1));
  static constexpr auto phases = assay::names("axpy");
  static constexpr std::uint32_t device_flags = ASSAY_DEVICE_CPU;

  explicit Axpy(const assay::Case& c) : host(c.host()), n(c.get<std::uint64_t>("n")) {}
  void setup(const assay::Launch&) {  // once: memory from the host is in the record
    x = assay::DeviceMemory(host, ASSAY_MEMORY_DATA, n * sizeof(float), "x");
    y = assay::DeviceMemory(host, ASSAY_MEMORY_DATA, n * sizeof(float), "y");
    for (std::uint64_t i = 0; i < n; ++i) x.data<float>()[i] = 1, y.data<float>()[i] = 0;
  }
  void run(const assay::Launch& launch) {  // one step; the mark times the phase
    const auto phase = launch.phase(0);
    for (std::uint64_t i = 0; i < n; ++i) y.data<float>()[i] += a * x.data<float>()[i];
  }
  assay::Account account(const assay::Launch&) { return {std::uint64_t(y.data<float>()[0] / a)}; }
  std::string verify(const assay::Launch&) {  // no figure enters the record before this
    for (std::uint64_t i = 0; i < n; ++i)
      if (y.data<float>()[i] != y.data<float>()[0])
        throw assay::Error(ASSAY_WRONG_RESULT, "y[" + std::to_string(i) + "] is wrong");
    return "every element is the same multiple of a";
  }
  assay::Work work() const { return {.flops = 2 * n, .bytes = 12 * n, .items = n}; }

  static constexpr float a = 0.5F;  // its multiples are exact in binary
  assay::Host host;
  std::uint64_t n;
  assay::DeviceMemory x, y;
};
ASSAY_PLUGIN("org.example.axpy", "1.0.0", Axpy)
