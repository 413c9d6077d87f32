// Times all_reduce over Gloo between forked processes, and an all_gather followed by a reduce_scatter, which moves as
// many bytes, without a host: for work on sdk/comm/gloo. Not run by ctest.
//
//   gloo_bench LIBRARY RANKS ROUNDS BYTES...     prints, for each size, the median, and the least, in ms and GB/s of
//                                                bus bandwidth: 2 (ranks - 1) / ranks * bytes / time, and the
//                                                processor time of rank 0, which other programs disturb less
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/open_gloo.hpp"
#include "support/shared_comm.hpp"

namespace {

double median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
  return x[x.size() / 2];
}

double processor_ms() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto ms = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
  };
  return ms(used.ru_utime) + ms(used.ru_stime);
}

template <class Exchange>
void time_exchange(assay::comm::Communicator& comm, const char* name, std::size_t bytes, int rounds,
                   Exchange&& exchange) {
  std::vector<double> times_ms;
  double processor_begin_ms = 0;
  for (int round = -3; round < rounds; ++round) {
    if (round == 0) processor_begin_ms = processor_ms();
    comm.barrier();
    const auto begin = std::chrono::steady_clock::now();
    exchange();
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    if (round >= 0) times_ms.push_back(ms);
  }
  if (comm.rank() != 0) return;
  const double wire = 2.0 * (comm.size() - 1) / comm.size() * static_cast<double>(bytes);
  const double least = *std::min_element(times_ms.begin(), times_ms.end());
  std::printf("%-11s %11zu bytes %d ranks: median %9.3f ms %6.3f GB/s, least %9.3f ms %6.3f GB/s, processor %9.3f ms\n",
              name, bytes, comm.size(), median(times_ms), wire / median(times_ms) / 1e6, least, wire / least / 1e6,
              (processor_ms() - processor_begin_ms) / rounds);
  std::fflush(stdout);
}

void time_size(assay::comm::Communicator& comm, std::size_t bytes, int rounds) {
  using namespace assay::compute;
  using assay::comm::Reduction;
  const std::size_t ranks = static_cast<std::size_t>(comm.size()), of_part = bytes / sizeof(float) / ranks;
  std::vector<float> data(std::max<std::size_t>(1, bytes / sizeof(float)), 1.0F), part_data(of_part + 1, 1.0F);
  const Tensor x(data.data(), DType::f32, {static_cast<std::int64_t>(bytes / sizeof(float))});
  time_exchange(comm, "all_reduce", bytes, rounds, [&] { comm.wait(comm.all_reduce(x, x, Reduction::average)); });
  if (of_part == 0) return;
  const Tensor whole(data.data(), DType::f32, {static_cast<std::int64_t>(of_part * ranks)});
  const Tensor part(part_data.data(), DType::f32, {static_cast<std::int64_t>(of_part)});
  time_exchange(comm, "gather+rs", of_part * ranks * sizeof(float), rounds, [&] {
    comm.wait(comm.all_gather(part, whole));
    comm.wait(comm.reduce_scatter(whole, part, Reduction::average));
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: gloo_bench LIBRARY RANKS ROUNDS BYTES...\n");
    return 2;
  }
  const int ranks = std::atoi(argv[2]), rounds = std::atoi(argv[3]);
  assay::test::SharedComm shared(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    if (fork() != 0) continue;
    try {
      const auto comm = assay::test::open_gloo(argv[1], shared.table(rank));
      for (int i = 4; i < argc; ++i) time_size(*comm, std::strtoull(argv[i], nullptr, 10), rounds);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "rank %d: %s\n", rank, e.what());
      _exit(1);
    }
    _exit(0);
  }
  int failed = 0, status = 0;
  while (wait(&status) > 0) failed |= status;
  return failed ? 1 : 0;
}
