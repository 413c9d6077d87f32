// Operations promise the same result for any number of threads: first those on data, then reductions and attention. The
// program runs itself once per number and compares what each run prints. A device without OpenMP ignores the number.
#include <unistd.h>

#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "harness.hpp"
#include "support/variable.hpp"

namespace assay::conformance {
namespace {

// A fingerprint of the exact values (FNV-1a over their bytes).
std::uint64_t fingerprint(const Values& values) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(values.data());
  for (std::size_t i = 0; i < values.size() * sizeof(double); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3ull;
  return hash;
}

void print(const char* operation, const DeviceTensor& result) {
  std::printf("fingerprint %s %s %016" PRIx64 "\n", operation, name_of(result->dtype), fingerprint(result.read()));
}

void print_attention(DType t, const compute::Dropout& dropped) {
  if (is_cuda() && t != DType::f32) return;  // cuDNN adds up its gradients in no fixed order
  const Shape shape = {2, 201, 3, 32};
  const DeviceTensor q(t, shape, random_values(t, elements(shape), 3)), out(t, shape), dq(t, shape), dk(t, shape);
  const DeviceTensor dv(t, shape), lse(DType::f32, {2, 3, 201});
  const compute::AttentionShape options{0.2F, true, dropped};
  run([&] { backend().run(op::AttentionForward{.q = q, .k = q, .v = q, .out = out, .lse = lse, .shape = options}); });
  run([&] {
    backend().run(op::AttentionBackward{
        .q = q, .k = q, .v = q, .out = out, .lse = lse, .dout = q, .dq = dq, .dk = dk, .dv = dv, .shape = options});
  });
  for (const DeviceTensor* result : {&out, &dq, &dk, &dv}) print("attention with dropout", *result);
}

// Products are oneDNN's, whose sums on some processors depend on the number of threads, as a matmul's do.
void print_experts(DType t) {
  const std::int64_t tokens = 1501, experts = 12, k = 2, rows = tokens * k, width = 136, inner = 72;
  const DeviceTensor logits(t, {tokens, experts}, random_values(t, tokens * experts, 4)), dlogits(t, {tokens, experts});
  const DeviceTensor scores(DType::f32, {tokens, experts}), lse(DType::f32, {tokens}), losses(DType::f32, {2});
  const DeviceTensor chosen(DType::i32, {tokens, k}), weights(DType::f32, {tokens, k});
  const DeviceTensor counts(DType::i32, {experts}), offsets(DType::i32, {experts + 1}), places(DType::i32, {tokens, k});
  const DeviceTensor sources(DType::i32, {rows}), dweights(DType::f32, {tokens, k});
  const DeviceTensor x(t, {rows, inner}, random_values(t, rows * inner, 5)), y(t, {tokens, inner});
  const DeviceTensor c(t, {rows, width}, random_values(t, rows * width, 6));
  const DeviceTensor dw(t, {experts, width, inner}), dbias(t, {experts, width}), h(t, {rows, width});
  const DeviceTensor dgate(t, {rows, width}), dup(t, {rows, width});
  run([&] {
    backend().run(
        op::RouteForward{.logits = logits, .scores = scores, .lse = lse, .experts = chosen, .weights = weights});
    backend().run(
        op::GroupRows{.experts = chosen, .counts = counts, .offsets = offsets, .places = places, .sources = sources});
    backend().run(op::RoutingLosses{.scores = scores, .lse = lse, .counts = counts, .losses = losses});
    backend().run(op::GroupedWeightGradient{.dy = c, .x = x, .offsets = offsets, .dw = dw, .dbias = dbias});
    backend().run(op::WeightedGatedBackward{.gate = c,
                                            .up = c,
                                            .dh = c,
                                            .weights = weights,
                                            .sources = sources,
                                            .dgate = dgate,
                                            .dup = dup,
                                            .dweights = dweights,
                                            .h = h});
    backend().run(op::CombineRows{.rows = x, .places = places, .y = y});
    backend().run(op::RouteBackward{.scores = scores,
                                    .lse = lse,
                                    .experts = chosen,
                                    .counts = counts,
                                    .dweights = dweights,
                                    .dlogits = dlogits,
                                    .balance = 0.5F,
                                    .z = 0.25F});
  });
  for (const DeviceTensor* result : {&scores, &weights, &losses, &dbias, &h, &dgate, &dup, &dweights, &y, &dlogits})
    print("mixture of experts", *result);
}

// Not a separate test: what the test below runs.
TEST(ThreadCount, DISABLED_PrintFingerprints) {
  for (const DType t : {DType::f32, DType::bf16}) {
    const std::int64_t rows = 1501, width = 333;
    const Values values = random_values(t, rows * width, 1);
    const DeviceTensor x(t, {rows, width}, values), y(t, {rows, width}), columns(t, {width});
    const DeviceTensor ids(DType::i64, {rows}, random_ids(rows, 2, 0, 50)),
        table(t, {50, width}, Values(50 * 333, 0.0));
    const DeviceTensor step(DType::i64, {1}, {1});
    run([&] { backend().run(op::BiasBackward{.dy = x, .dbias = columns}); });
    print("bias_backward", columns);
    run([&] { backend().run(op::EmbeddingBackward{.ids = ids, .dout = x, .dtable = table, .accumulate = true}); });
    print("embedding_backward", table);
    run([&] { backend().run(op::RandomNormal{.x = y, .seed = 7, .stream = 8, .mean = 0.0F, .std = 1.0F}); });
    print("random_normal", y);
    run([&] { backend().run(op::ApplyDropout{.x = x, .y = y, .dropout = {0.1F, 7, 8, step}}); });
    print("dropout", y);
    const compute::Dropout dropped{0.1F, 7, 8, step};
    run([&] { backend().run(op::BiasReluDropoutForward{.x = x, .bias = columns, .y = y, .dropout = dropped}); });
    print("bias_relu_dropout_forward", y);
    const DeviceTensor sum(t, {rows, width}), weight(t, {width}, Values(333, 1.5)), bias_gradient(t, {width});
    const DeviceTensor mean(DType::f32, {rows}), rstd(DType::f32, {rows}), norm_gradient(t, {width});
    const DeviceTensor dx(t, {rows, width});
    run([&] {
      backend().run(op::DropoutAddLayerNormForward{.x = x,
                                                   .bias = weight,
                                                   .residual = x,
                                                   .dropout = dropped,
                                                   .sum = sum,
                                                   .weight = weight,
                                                   .norm_bias = weight,
                                                   .y = y,
                                                   .mean = mean,
                                                   .rstd = rstd,
                                                   .eps = 1e-5F});
    });
    print("dropout_add_layer_norm_forward", y);
    run([&] {
      backend().run(op::DropoutAddLayerNormBackward{.dy = x,
                                                    .sum = sum,
                                                    .weight = weight,
                                                    .mean = mean,
                                                    .rstd = rstd,
                                                    .dropout = dropped,
                                                    .dsum = y,
                                                    .dx = dx,
                                                    .dbias = bias_gradient,
                                                    .dweight = columns,
                                                    .dnorm_bias = norm_gradient});
    });
    for (const DeviceTensor* result : {&y, &bias_gradient, &columns, &norm_gradient})
      print("dropout_add_layer_norm_backward", *result);
    print_attention(t, dropped);
    print_experts(t);
  }
}

// This program again, with other variables. It runs all that the filter selects, also where this run is one of several
// shards.
std::string command_of_own(const std::string& variables, const std::string& options) {
  return "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX -u GTEST_SHARD_STATUS_FILE " + variables + " /proc/" +
         std::to_string(getpid()) + "/exe " + options;
}

// As long as it lives, this run is one of many shards.
struct InAShard {
  test::Variable total{"GTEST_TOTAL_SHARDS", "1000"}, index{"GTEST_SHARD_INDEX", "999"};
};

std::string fingerprints(int threads) {
  const std::string command =
      command_of_own("OMP_NUM_THREADS=" + std::to_string(threads) + " OMP_WAIT_POLICY=passive ASSAY_CONFORMANCE_TABLE=",
                     "--gtest_also_run_disabled_tests --gtest_filter=ThreadCount.DISABLED_PrintFingerprints");
  FILE* const pipe = popen(command.c_str(), "r");
  if (!pipe) return "";
  std::string lines;
  char line[512];
  while (std::fgets(line, sizeof line, pipe))
    if (std::string(line).rfind("fingerprint ", 0) == 0) lines += line;
  EXPECT_EQ(pclose(pipe), 0) << command;
  return lines;
}

TEST(ThreadCount, ChangesNoResult) {
  const InAShard shard;
  const std::string one = fingerprints(1);
  EXPECT_NE(one.find("dropout bf16"), std::string::npos) << one;
  for (const int threads : {2, 3, 7}) EXPECT_EQ(fingerprints(threads), one) << threads << " threads";
}

class Digest {
 public:
  void add(const Values& values) {
    for (const double v : values) state_ = (state_ ^ std::bit_cast<std::uint64_t>(v)) * 0x100000001b3u;
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325u;
};

void add_attention(Digest& digest, std::int64_t queries, std::int64_t keys, std::int64_t heads, bool causal) {
  const std::int64_t depth = 40;
  const Shape q_shape = {1, queries, heads, depth}, k_shape = {1, keys, heads, depth};
  const DeviceTensor q(DType::f32, q_shape, random_values(DType::f32, elements(q_shape), 40));
  const DeviceTensor k(DType::f32, k_shape, random_values(DType::f32, elements(k_shape), 41));
  const DeviceTensor v(DType::f32, k_shape, random_values(DType::f32, elements(k_shape), 42));
  const DeviceTensor dout(DType::f32, q_shape, random_values(DType::f32, elements(q_shape), 43));
  const DeviceTensor out(DType::f32, q_shape), lse(DType::f32, {1, heads, queries});
  const DeviceTensor dq(DType::f32, q_shape), dk(DType::f32, k_shape), dv(DType::f32, k_shape);
  run([&] {
    backend().run(op::AttentionForward{.q = q, .k = k, .v = v, .out = out, .lse = lse, .shape = {0.2F, causal}});
    backend().run(op::AttentionBackward{.q = q,
                                        .k = k,
                                        .v = v,
                                        .out = out,
                                        .lse = lse,
                                        .dout = dout,
                                        .dq = dq,
                                        .dk = dk,
                                        .dv = dv,
                                        .shape = {0.2F, causal}});
  });
  for (const DeviceTensor* t : {&out, &lse, &dq, &dk, &dv}) digest.add(t->read());
}

std::uint64_t digest_of_results() {
  Digest digest;
  const DeviceTensor x(DType::f32, {4096, 130}, random_values(DType::f32, 4096 * 130, 44));
  const DeviceTensor dy(DType::f32, {4096, 130}, random_values(DType::f32, 4096 * 130, 45));
  const DeviceTensor weight(DType::f32, {130}, random_values(DType::f32, 130, 46)), dx(DType::f32, {4096, 130});
  const DeviceTensor ones(DType::f32, {4096}, Values(4096, 1.0)), zeros(DType::f32, {4096}, Values(4096));
  const DeviceTensor dweight(DType::f32, {130}, Values(130)), dbias(DType::f32, {130}, Values(130));
  run([&] {
    backend().run(op::LayerNormBackward{.dy = dy,
                                        .x = x,
                                        .weight = weight,
                                        .mean = zeros,
                                        .rstd = ones,
                                        .dx = dx,
                                        .dweight = dweight,
                                        .dbias = dbias,
                                        .accumulate = true});
  });
  for (const DeviceTensor* t : {&dx, &dweight, &dbias}) digest.add(t->read());
  run([&] {
    backend().run(op::RmsNormBackward{.dy = dy,
                                      .x = x,
                                      .weight = weight,
                                      .rstd = ones,
                                      .residual = dx,
                                      .dx = dx,
                                      .dweight = dweight,
                                      .accumulate = true});
  });
  for (const DeviceTensor* t : {&dx, &dweight}) digest.add(t->read());
  const DeviceTensor out(DType::f32, {1});
  run([&] { backend().run(op::Sum{.x = x, .out = out}); });
  digest.add(out.read());
  run([&] { backend().run(op::SumOfSquares{.x = x, .out = out}); });
  digest.add(out.read());
  // One head is split over two threads and more; three are taken whole by one, and split over seven.
  for (const bool causal : {false, true}) {
    add_attention(digest, 530, 530, 1, causal);
    add_attention(digest, 150, 410, 3, causal);
  }
  return digest.value();
}

// Each number of threads in a separate process: a backend's device may fix it when it is opened.
TEST(Threads, ResultsAreTheSameToTheBit) {
  constexpr const char* marker = "digest of the results: ";
  if (std::getenv("ASSAY_CONFORMANCE_DIGEST")) {
    std::printf("%s%016llx\n", marker, static_cast<unsigned long long>(digest_of_results()));
    return;
  }
  const InAShard shard;
  std::string first;
  for (const int threads : {1, 2, 3, 7}) {
    const std::string command = command_of_own("ASSAY_CONFORMANCE_DIGEST=1 OMP_NUM_THREADS=" + std::to_string(threads),
                                               "--gtest_filter=Threads.*");
    std::FILE* const pipe = popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::string output;
    char part[256];
    while (std::fgets(part, sizeof part, pipe)) output += part;
    ASSERT_EQ(pclose(pipe), 0) << output;
    const std::size_t at = output.find(marker);
    ASSERT_NE(at, std::string::npos) << output;
    const std::string digest = output.substr(at + std::string(marker).size(), 16);
    if (first.empty()) first = digest;
    EXPECT_EQ(digest, first) << threads << " threads";
  }
}

}  // namespace
}  // namespace assay::conformance
