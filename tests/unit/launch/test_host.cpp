// Stands in the host's place: starts one worker, prints its process id, and waits to be killed.
#include <unistd.h>

#include <cstdio>

#include "launch/board.hpp"
#include "launch/process.hpp"

int main(int argc, char** argv) {
  using namespace assay::host::launch;
  if (argc < 4) return 99;  // the worker's executable, its log, its arguments
  const ProgressBoard board = ProgressBoard::create();
  const Process worker = spawn({argv[1], {argv + 3, argv + argc}, {}, argv[2], "{}", board.fd()});
  std::printf("%d\n", static_cast<int>(worker.pid()));
  std::fflush(stdout);
  for (;;) pause();
}
