// my_plugin: a square matrix product c = a b by the operations of the case's device, the same on the CPU and on GPUs.
#include <assay/plugin.hpp>

#include <algorithm>
#include <assay/compute/counted_backend.hpp>
#include <assay/compute/difference.hpp>
#include <assay/compute/workspace.hpp>
#include <assay/workload/host_copies.hpp>
#include <assay/workload/open_backend.hpp>
#include <assay/workload/spoiled_results.hpp>
#include <assay/workload/text.hpp>
#include <cmath>
#include <memory>
#include <vector>

using assay::compute::DType;
using assay::compute::Tensor;
namespace op = assay::compute::op;

struct MyPlugin {
  static constexpr auto id = "my_plugin", summary = "a square matrix product";
  static constexpr auto dtypes = assay::choices<DType>({{"fp32", DType::f32}, {"bf16", DType::bf16}});
  static constexpr auto params = assay::table(
      assay::Param::integer("n", 512).at_least(1).at_most(1 << 15).help("rows and columns of the matrices"),
      assay::Param::choice("dtype", DType::f32, dtypes).help("type of the elements"));
  static constexpr auto product = assay::phase("product");
  static constexpr auto phases = assay::table(product);

  explicit MyPlugin(const assay::Case& c)
      : host(c.host()), seed(c.seed()), n(c.get<std::int64_t>("n")), dtype(c.choice("dtype", dtypes)) {}

  void setup(const assay::Launch& launch) {
    backend = std::make_unique<assay::compute::CountedBackend>(assay::workload::open_backend(host, launch));
    a = take(memory_of_a, ASSAY_MEMORY_DATA, "a");
    b = take(memory_of_b, ASSAY_MEMORY_DATA, "b");
    c = take(memory_of_c, ASSAY_MEMORY_ACTIVATIONS, "c");
    // Once without touching a tensor: finds kernels, and how much workspace they want, so that no step does.
    workspace.prepare(host, *backend, [this] { make_inputs(), step(); });
    make_inputs();
    spoiled.take_memory(host, *backend, {{"c", c.elements()}});
    backend->synchronize();
    backend->begin_steps();
  }

  // Enqueues on the case's stream; the host waits.
  void run(const assay::LaunchOf<MyPlugin>& launch) {
    const auto phase = launch.phase(product);
    step();
  }

  // Every step writes the same c. So some places of it are spoiled before the first measured step; after the last one
  // they must hold numbers again, and the host compares the operations that were carried out with the steps that it has
  // timed.
  void open_account(const assay::Launch&) { spoiled.spoil(*backend, {c}); }
  assay::Account account(const assay::Launch&) {
    spoiled.read(*backend, {c});
    return {.steps = backend->steps(operations_of_step)};
  }

  // Some rows of c, evenly spread, against float64. All numbers of a row at once: a distance, relative to its length.
  std::string verify(const assay::Launch&) {
    constexpr std::int64_t most_rows = 16;
    backend->run(op::Fill{.x = c, .value = std::nan("")});  // what a step leaves out shows
    step();
    backend->synchronize();
    const std::vector<float> as = assay::workload::download_f32(*backend, a),
                             bs = assay::workload::download_f32(*backend, b),
                             cs = assay::workload::download_f32(*backend, c);
    const auto at = [this](std::int64_t row, std::int64_t column) {
      return static_cast<std::size_t>(row * n + column);
    };
    const std::int64_t rows = std::min(n, most_rows);
    assay::compute::Difference difference;
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t row = rows == 1 ? 0 : i * (n - 1) / (rows - 1);
      std::vector<double> expected(static_cast<std::size_t>(n));
      for (std::int64_t k = 0; k < n; ++k)
        for (std::int64_t j = 0; j < n; ++j) expected[at(0, j)] += double{as[at(row, k)]} * double{bs[at(k, j)]};
      for (std::int64_t j = 0; j < n; ++j) difference.add(double{cs[at(row, j)]}, expected[at(0, j)]);
    }
    // Beyond what rounding explains: of products and sums in fp32, and of the result to bf16.
    const double tolerance = dtype == DType::bf16 ? 1e-2 : 1e-5;
    const std::string text = std::to_string(rows) + " rows differ from float64 by " +
                             assay::workload::number(difference.relative()) + " (tolerance " +
                             assay::workload::number(tolerance) + ")";
    if (!(difference.relative() <= tolerance)) throw assay::Error(ASSAY_WRONG_RESULT, text);
    return text;
  }

  assay::Work work() const {
    const auto rows = static_cast<std::uint64_t>(n);
    return {.flops = 2 * rows * rows * rows,
            .bytes = 3 * rows * rows * size_of(dtype),
            .arithmetic = dtype == DType::bf16 ? ASSAY_ARITHMETIC_BF16 : ASSAY_ARITHMETIC_FP32};
  }

 private:
  void make_inputs() const {
    backend->run(op::RandomNormal{.x = a, .seed = seed, .stream = 0, .mean = 0.0F, .std = 1.0F});
    backend->run(op::RandomNormal{.x = b, .seed = seed, .stream = 1, .mean = 0.0F, .std = 1.0F});
  }
  static constexpr std::uint64_t operations_of_step = 1;
  void step() const { backend->run(op::Matmul{.a = a, .b = b, .c = c}); }

  Tensor take(assay::DeviceMemory& memory, assay_memory_kind kind, const char* label) const {
    memory = assay::DeviceMemory(host, kind, static_cast<std::size_t>(n * n) * size_of(dtype), label);
    return Tensor(memory.data(), dtype, {n, n});
  }

  assay::Host host;
  std::uint64_t seed;
  std::int64_t n;
  DType dtype;
  std::unique_ptr<assay::compute::CountedBackend> backend;
  assay::DeviceMemory memory_of_a, memory_of_b, memory_of_c;
  assay::compute::Workspace workspace;
  assay::workload::SpoiledResults spoiled;
  Tensor a, b, c;
};

ASSAY_PLUGIN("org.example.my_plugin", "0.1.0", MyPlugin)
