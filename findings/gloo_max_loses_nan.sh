#!/usr/bin/env bash
# Gloo (Debian's 0.0~git20220518.5b14351-3): its max over ranks keeps a NaN or loses it by the place, and may lose the largest number beside it.
#
# Expected: the maximum of numbers and a NaN is NaN everywhere, or NaN nowhere and the largest number, as with C's fmax().
# Behaviour: gloo::max compares with operator>, in which a NaN never wins: what comes of it depends on which side it stands, and a ring begins
# each part of the buffer at another rank. Of 0, NaN and 2 one part gives 0: the NaN has displaced the 2 and was displaced by the 0.
# Why it matters: a norm, or a flag "is there a NaN?", that ranks reduce by max is missed at some places, and the maximum of the others is wrong.
# Seen on Debian 12, 3 ranks with 6 elements of their own number, and NaN on one rank; the result is the same on all ranks:
#   NaN on rank 0: nan nan 2 2 2 2
#   NaN on rank 1: 0 0 nan nan 2 2
#   NaN on rank 2: 1 1 1 1 nan nan
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
cd -- "$folder"
apt-get download -qq libgloo-dev=0.0~git20220518.5b14351-3 libgloo0=0.0~git20220518.5b14351-3 libhiredis0.14 libibverbs1 \
  libnl-3-200 libnl-route-3-200 2>/dev/null
for package in *.deb; do dpkg -x "$package" .; done
cat >maximum.cpp <<'CPP'
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/hash_store.h>
#include <gloo/transport/tcp/device.h>
#include <cmath>
#include <cstdio>
#include <thread>
#include <vector>

int main() {
  constexpr int ranks = 3;
  for (int nan_rank = 0; nan_rank < ranks; ++nan_rank) {
    std::vector<std::vector<float>> most(ranks);
    gloo::rendezvous::HashStore store;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        gloo::transport::tcp::attr loopback;
        loopback.iface = "lo";
        auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
        auto device = gloo::transport::tcp::CreateDevice(loopback);
        context->connectFullMesh(store, device);
        most[rank].assign(6, rank == nan_rank ? NAN : static_cast<float>(rank));
        gloo::AllreduceOptions options(context);
        options.setOutput(most[rank].data(), most[rank].size());
        options.setReduceFunction([](void* c, const void* a, const void* b, size_t n) { gloo::max<float>(c, a, b, n); });
        gloo::allreduce(options);
      });
    for (auto& thread : threads) thread.join();
    std::printf("NaN on rank %d:", nan_rank);
    for (const float number : most[0]) std::printf(" %g", number);
    std::printf("\n");
  }
}
CPP
g++ -std=c++17 -O1 -Iusr/include maximum.cpp -Lusr/lib/x86_64-linux-gnu -lgloo -Wl,-rpath-link,usr/lib/x86_64-linux-gnu -lpthread -o maximum
LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu ./maximum | tee seen
[[ $(cut -d: -f2 seen | xargs -d '\n') == " nan nan 2 2 2 2  0 0 nan nan 2 2  1 1 1 1 nan nan" ]] || { echo "the behaviour has changed" >&2; exit 1; }
