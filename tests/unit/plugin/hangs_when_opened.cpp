// A library that never comes to the end of being opened.
#include <unistd.h>

namespace {

struct Hangs {
  Hangs() {
    for (;;) pause();
  }
} const hangs;

}  // namespace
