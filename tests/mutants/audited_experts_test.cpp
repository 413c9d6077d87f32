// The audit finds each mutant of a mixture of experts, and names its operation: a layer's forward and backward, twice,
// through the device that breaks one thing. The program runs itself once for each mutant, which is the environment's.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <assay/compute/audited_backend.hpp>

#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "mutants.hpp"

namespace assay::mutants {
namespace {

namespace op = compute::op;
using compute::Backend;
using compute::DType;
using compute::Tensor;

// The CPU's memory is the host's.
class Memory {
 public:
  Tensor numbers(std::initializer_list<std::int64_t> shape, double size = 1, double mean = 0) {
    Tensor t(nullptr, DType::f32, shape);
    auto& values = floats_.emplace_back(static_cast<std::size_t>(t.elements()));
    for (float& x : values) x = static_cast<float>(mean + size * (2 * next() - 1));
    t.data = values.data();
    return t;
  }
  Tensor indices(std::initializer_list<std::int64_t> shape) {
    Tensor t(nullptr, DType::i32, shape);
    t.data = integers_.emplace_back(static_cast<std::size_t>(t.elements())).data();
    return t;
  }
  void fill(const Tensor& t) {
    for (std::int64_t i = 0; i < t.elements(); ++i) static_cast<float*>(t.data)[i] = static_cast<float>(2 * next() - 1);
  }

 private:
  double next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(state_ >> 11) * 0x1p-53;
  }
  std::deque<std::vector<float>> floats_;
  std::deque<std::vector<std::int32_t>> integers_;
  std::uint64_t state_ = 1;
};

class Layer {
 public:
  Layer() {
    static_cast<float*>(bias_.data)[2] = -2;  // nobody chooses this expert: its group is empty
    static_cast<float*>(scale_.data)[0] = 3;
  }

  void new_logits() { memory_.fill(logits_); }

  void run(Backend& backend) const {
    const compute::GatedUnit unit{.alpha = 1.702F, .limit = 0.75F, .offset = 1};
    const Tensor gate = both_.slice(1, 0, hidden), up = both_.slice(1, hidden, hidden);
    const Tensor dgate = dboth_.slice(1, 0, hidden), dup = dboth_.slice(1, hidden, hidden);
    backend.run(op::RouteForward{
        .logits = logits_, .bias = bias_, .scores = scores_, .lse = lse_, .experts = chosen_, .weights = weights_});
    backend.run(op::GroupRows{
        .experts = chosen_, .counts = counts_, .offsets = offsets_, .places = places_, .sources = sources_});
    backend.run(op::RoutingLosses{.scores = scores_, .lse = lse_, .counts = counts_, .losses = losses_});
    backend.run(op::GatherRows{.x = x_, .sources = sources_, .rows = rows_, .copies = k});
    backend.run(op::GroupedMatmul{
        .a = rows_, .b = in_, .offsets = offsets_, .c = both_, .transpose_b = true, .bias = in_bias_});
    backend.run(op::WeightedGatedForward{
        .gate = gate, .up = up, .weights = weights_, .sources = sources_, .h = h_, .unit = unit});
    backend.run(op::GroupedMatmul{.a = h_, .b = out_, .offsets = offsets_, .c = results_, .transpose_b = true});
    backend.run(op::CombineRows{.rows = results_, .places = places_, .residual = x_, .y = y_});
    // Backward: the gradient of y is y.
    backend.run(op::GatherRows{.x = y_, .sources = sources_, .rows = results_, .copies = k});
    backend.run(op::GroupedMatmul{.a = results_, .b = out_, .offsets = offsets_, .c = dh_});
    backend.run(op::WeightedGatedBackward{.gate = gate,
                                          .up = up,
                                          .dh = dh_,
                                          .weights = weights_,
                                          .sources = sources_,
                                          .dgate = dgate,
                                          .dup = dup,
                                          .dweights = dweights_,
                                          .h = again_,
                                          .unit = unit});
    backend.run(op::GroupedWeightGradient{.dy = results_, .x = again_, .offsets = offsets_, .dw = dout_});
    backend.run(op::GroupedWeightGradient{
        .dy = dboth_, .x = rows_, .offsets = offsets_, .dw = din_, .dbias = din_bias_, .accumulate = true});
    backend.run(op::RouteBackward{.scores = scores_,
                                  .lse = lse_,
                                  .experts = chosen_,
                                  .counts = counts_,
                                  .dweights = dweights_,
                                  .dlogits = dlogits_,
                                  .balance = 4,
                                  .z = 4,
                                  .scale = scale_});
  }

 private:
  static constexpr std::int64_t tokens = 40, experts = 6, k = 2, columns = 16, hidden = 24, all = tokens * k;
  Memory memory_;
  Tensor logits_ = memory_.numbers({tokens, experts}), bias_ = memory_.numbers({experts}, 0.2);
  Tensor scores_ = memory_.numbers({tokens, experts}), lse_ = memory_.numbers({tokens});
  Tensor chosen_ = memory_.indices({tokens, k}), weights_ = memory_.numbers({tokens, k});
  Tensor counts_ = memory_.indices({experts}), offsets_ = memory_.indices({experts + 1});
  Tensor places_ = memory_.indices({tokens, k}), sources_ = memory_.indices({all});
  Tensor losses_ = memory_.numbers({2}), scale_ = memory_.numbers({1});
  Tensor x_ = memory_.numbers({tokens, columns}), y_ = memory_.numbers({tokens, columns});
  Tensor rows_ = memory_.numbers({all, columns}), results_ = memory_.numbers({all, columns});
  Tensor in_ = memory_.numbers({experts, 2 * hidden, columns}), in_bias_ = memory_.numbers({experts, 2 * hidden});
  Tensor out_ = memory_.numbers({experts, columns, hidden});
  Tensor both_ = memory_.numbers({all, 2 * hidden}), dboth_ = memory_.numbers({all, 2 * hidden});
  Tensor h_ = memory_.numbers({all, hidden}), again_ = memory_.numbers({all, hidden});
  Tensor dh_ = memory_.numbers({all, hidden});
  Tensor dweights_ = memory_.numbers({tokens, k}), dlogits_ = memory_.numbers({tokens, experts});
  Tensor din_ = memory_.numbers({experts, 2 * hidden, columns}), din_bias_ = memory_.numbers({experts, 2 * hidden});
  Tensor dout_ = memory_.numbers({experts, columns, hidden});
};

// Not a separate test: what the test below runs.
TEST(AuditedExperts, DISABLED_Answer) {
  void* const library = dlopen(MUTANT_DEVICE_FOLDER "/libassay_device_cpu.so", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto* const api = static_cast<const assay_device_api*>(dlsym(library, ASSAY_DEVICE_SYMBOL));
  assay_device* device = nullptr;
  void* stream = nullptr;
  ASSERT_EQ(api->open(0, &device), ASSAY_OK);
  ASSERT_EQ(api->stream_create(device, &stream), ASSAY_OK);
  const auto* const factory = static_cast<const compute::BackendFactory*>(api->get_extension("assay.compute/1"));
  ASSERT_STREQ(factory->interface_id, compute::interface_id);
  const std::unique_ptr<Backend> backend(factory->create(device, stream));
  Layer layer;
  backend->set_mode(compute::Mode::prepare);
  layer.run(*backend);
  backend->set_mode(compute::Mode::execute);
  std::vector<char> workspace(backend->workspace_bytes());
  backend->set_workspace(workspace.data(), workspace.size());
  compute::AuditedBackend audited(*backend);
  try {
    for (int step = 0; step < 2; ++step) {
      layer.new_logits();
      layer.run(audited);
    }
    std::printf("answer: sound, %s\n", audited.text().c_str());
  } catch (const Error& e) {
    std::printf("answer: %s\n", e.what());
  }
}

std::string answer_to(std::string_view mutant) {
  const std::string command = "ASSAY_MUTANT=" + std::string(mutant) + " OMP_NUM_THREADS=1 /proc/" +
                              std::to_string(getpid()) +
                              "/exe --gtest_also_run_disabled_tests --gtest_filter=AuditedExperts.DISABLED_Answer";
  FILE* const pipe = popen(command.c_str(), "r");
  if (!pipe) return "";
  std::string all;
  char line[4096];
  while (std::fgets(line, sizeof line, pipe)) all += line;
  EXPECT_EQ(pclose(pipe), 0) << all;
  const std::size_t begin = all.find("answer: ");
  return begin == std::string::npos ? all : all.substr(begin, all.find('\n', begin) - begin);
}

TEST(AuditedExperts, EachMutantIsFound) {
  const std::string sound = answer_to("");
  EXPECT_NE(sound.find("answer: sound, 28 of 28 operations"), std::string::npos) << sound;
  EXPECT_EQ(sound.find("not looked at"), std::string::npos) << sound;
  std::size_t count = 0;
  for (const Mutant& mutant : mutants) {
    const std::string operation(mutant.name.substr(0, mutant.name.find('.')));
    bool is_of_experts = false;
    for (const char* const name :
         {op::RouteForward::name, op::RouteBackward::name, op::RoutingLosses::name, op::GroupRows::name,
          op::GatherRows::name, op::CombineRows::name, op::GroupedMatmul::name, op::GroupedWeightGradient::name,
          op::WeightedGatedForward::name, op::WeightedGatedBackward::name})
      is_of_experts = is_of_experts || operation == name;
    if (!is_of_experts) continue;
    ++count;
    const std::string answer = answer_to(mutant.name);
    EXPECT_EQ(answer.find("sound"), std::string::npos) << mutant.name << " was not found";
    EXPECT_NE(answer.find(", " + operation + ' '), std::string::npos) << mutant.name << ": " << answer;
  }
  EXPECT_GT(count, 0U);
}

}  // namespace
}  // namespace assay::mutants
