#!/usr/bin/env bash
# Gloo (Debian's 0.0~git20220518.5b14351-3): in one all-reduce equal columns of numbers have different sums, by their place in the buffer.
#
# Expected: all elements are added in one order of the ranks, so that equal inputs at two places give equal outputs.
# Behaviour: the ring gives each part of the buffer another rank to begin with. Of 1e8, 1 and -1e8 on ranks 0, 1 and 2, the sum is 0 or 1 by
# the part; every rank has the same result, and each run repeats it.
# Why it matters: moving a parameter within a bucket, or changing a bucket's size, changes its gradient's bits; a reference that adds in the
# order of ranks agrees for a part of the elements. assay's data for collectives has sums that are exact in any order.
# Seen on Debian 12, 3 ranks with 6 elements each:
#   rank 0: 0 0 1 1 0 0
#   rank 1: 0 0 1 1 0 0
#   rank 2: 0 0 1 1 0 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
cd -- "$folder"
apt-get download -qq libgloo-dev=0.0~git20220518.5b14351-3 libgloo0=0.0~git20220518.5b14351-3 libhiredis0.14 libibverbs1 \
  libnl-3-200 libnl-route-3-200 2>/dev/null
for package in *.deb; do dpkg -x "$package" .; done
cat >ring.cpp <<'CPP'
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/hash_store.h>
#include <gloo/transport/tcp/device.h>
#include <cstdio>
#include <thread>
#include <vector>

int main() {
  constexpr int ranks = 3;
  const float mine[ranks] = {1e8f, 1.0f, -1e8f};
  std::vector<std::vector<float>> sums(ranks);
  gloo::rendezvous::HashStore store;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      gloo::transport::tcp::attr loopback;
      loopback.iface = "lo";
      auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
      auto device = gloo::transport::tcp::CreateDevice(loopback);
      context->connectFullMesh(store, device);
      sums[rank].assign(6, mine[rank]);
      gloo::AllreduceOptions options(context);
      options.setOutput(sums[rank].data(), sums[rank].size());
      options.setReduceFunction([](void* c, const void* a, const void* b, size_t n) { gloo::sum<float>(c, a, b, n); });
      gloo::allreduce(options);
    });
  for (auto& thread : threads) thread.join();
  for (int rank = 0; rank < ranks; ++rank) {
    std::printf("rank %d:", rank);
    for (const float sum : sums[rank]) std::printf(" %g", sum);
    std::printf("\n");
  }
}
CPP
g++ -std=c++17 -O1 -Iusr/include ring.cpp -Lusr/lib/x86_64-linux-gnu -lgloo -Wl,-rpath-link,usr/lib/x86_64-linux-gnu -lpthread -o ring
LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu ./ring | tee seen
[[ $(cut -d: -f2 seen | sort -u) == " 0 0 1 1 0 0" && $(wc -l <seen) == 3 ]] || { echo "the behaviour has changed" >&2; exit 1; }
