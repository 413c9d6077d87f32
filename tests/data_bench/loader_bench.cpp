// loader_bench: how fast the loader reads a data set from disk. Its feed does what the CPU backend's does: a batch is
// copied once from its slot to where the step reads it.
//
//   loader_bench generate FOLDER SAMPLES            a data set of 4096 bytes a sample, in shards of about 128 MB
//   loader_bench read FOLDER SAMPLES [--workers N] [--batch N] [--prefetch N] [--run N] [--epoch N]
//                                                   one epoch, shuffled: bytes, seconds, MB/s (10^6), share of waiting
//   loader_bench drop FOLDER                        asks the system to forget what it holds of the shards in memory
//   loader_bench cached FOLDER                      the share of the shards' bytes that it holds
#include <assay/data/loader.hpp>
#include <assay/data/shards.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace data = assay::data;
namespace fs = std::filesystem;

class CopyingFeed : public assay::compute::Feed {
 public:
  CopyingFeed(std::size_t slots, std::size_t bytes) : slots_(slots, std::vector<std::byte>(bytes)) {}
  void* host_buffer(std::size_t slot) const override { return const_cast<std::byte*>(slots_[slot].data()); }
  void send(std::size_t) override {}
  void deliver(std::size_t slot, const assay::compute::Tensor& to) override {
    std::memcpy(to.data, slots_[slot].data(), to.bytes());
  }
  void reclaim(std::size_t) override {}

 private:
  std::vector<std::vector<std::byte>> slots_;
};

data::DatasetParameters parameters_of(std::int64_t samples) { return {{256, 8192}, samples, 1, 0}; }

void print_progress(std::uint64_t done, std::uint64_t total) {
  std::fprintf(stderr, "\r%5.1f%% of %.1f GB", 100.0 * static_cast<double>(done) / static_cast<double>(total),
               static_cast<double>(total) / 1e9);
  if (done == total) std::fputc('\n', stderr);
}

std::vector<fs::path> shards_of(const std::string& folder) {
  std::vector<fs::path> shards;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".bin") shards.push_back(entry.path());
  if (shards.empty()) throw std::runtime_error(folder + ": no shards");
  return shards;
}

int descriptor_of(const fs::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw std::runtime_error(file.string() + ": cannot be opened");
  return descriptor;
}

void drop(const std::string& folder) {
  for (const fs::path& shard : shards_of(folder)) {
    const int descriptor = descriptor_of(shard);
    const int error = ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    ::close(descriptor);
    if (error != 0) throw std::runtime_error(shard.string() + ": " + std::strerror(error));
  }
}

double cached(const std::string& folder) {
  std::size_t pages = 0;
  std::size_t resident = 0;
  const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (const fs::path& shard : shards_of(folder)) {
    const std::size_t bytes = fs::file_size(shard);
    const int descriptor = descriptor_of(shard);
    void* const mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
    ::close(descriptor);
    if (mapped == MAP_FAILED) throw std::runtime_error(shard.string() + ": cannot be mapped");
    std::vector<unsigned char> present((bytes + page_bytes - 1) / page_bytes);
    const int failed = ::mincore(mapped, bytes, present.data());
    ::munmap(mapped, bytes);
    if (failed != 0) throw std::runtime_error(shard.string() + ": mincore failed");
    pages += present.size();
    for (const unsigned char p : present) resident += p & 1;
  }
  return static_cast<double>(resident) / static_cast<double>(pages);
}

void read(const std::string& folder, std::int64_t samples, const std::map<std::string, std::int64_t>& options) {
  const auto source = data::ShardedSamples::open_or_generate(folder, parameters_of(samples), print_progress);
  const data::LoaderConfig config{.batch_size = options.at("--batch"),
                                  .workers = static_cast<int>(options.at("--workers")),
                                  .prefetch = options.at("--prefetch"),
                                  .run_samples = options.at("--run")};
  const std::size_t batch_bytes = data::Loader::batch_bytes(source->shape(), config.batch_size);
  std::vector<std::int64_t> batch(batch_bytes / sizeof(std::int64_t));
  const assay::compute::Tensor tensor(batch.data(), assay::compute::DType::i64,
                                      {static_cast<std::int64_t>(batch.size())});
  const auto start = std::chrono::steady_clock::now();
  data::Loader loader(*source, config, std::make_unique<CopyingFeed>(data::Loader::slots(config), batch_bytes));
  loader.start_epoch(options.at("--epoch"));
  for (std::int64_t i = 0; i < loader.batches_per_epoch(); ++i) loader.next(tensor);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const data::LoaderTotals totals = loader.take_totals();
  std::printf("bytes %llu seconds %.6f MB/s %.1f wait_share %.3f\n", static_cast<unsigned long long>(totals.bytes),
              seconds, static_cast<double>(totals.bytes) / seconds / 1e6, totals.wait_ms / 1e3 / seconds);
}

int run(const std::vector<std::string>& words) {
  const std::string command = words.empty() ? "" : words[0];
  if (command == "drop" && words.size() == 2) return drop(words[1]), 0;
  if (command == "cached" && words.size() == 2) return std::printf("%.3f\n", cached(words[1])), 0;
  if (command == "generate" && words.size() == 3) {
    data::ShardedSamples::open_or_generate(words[1], parameters_of(std::stoll(words[2])), print_progress);
    return 0;
  }
  if (command == "read" && words.size() >= 3 && words.size() % 2 == 1) {
    std::map<std::string, std::int64_t> options{
        {"--workers", 2}, {"--batch", 128}, {"--prefetch", 4}, {"--run", 0}, {"--epoch", 0}};
    for (std::size_t i = 3; i < words.size(); i += 2) options.at(words[i]) = std::stoll(words[i + 1]);
    read(words[1], std::stoll(words[2]), options);
    return 0;
  }
  std::fputs("usage: loader_bench generate|read FOLDER SAMPLES [OPTION N...] | drop|cached FOLDER\n", stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "loader_bench: %s\n", e.what());
    return 1;
  }
}
