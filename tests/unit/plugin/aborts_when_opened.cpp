// A library that takes down whoever opens it: a neighbour of plugins whose name was mistyped.
#include <cstdio>
#include <cstdlib>

namespace {

struct Aborts {
  Aborts() {
    std::puts("this must not reach the terminal");
    std::abort();
  }
} const aborts;

}  // namespace
