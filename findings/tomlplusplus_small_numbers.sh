#!/usr/bin/env bash
# toml++ 3.3.0: a number that is too large for a double is refused, one that is too small is 0 without a word.
#
# Expected: 1e400 and 1e-400 are treated alike, or at least a number that is not 0 is not read as 0.
# Behaviour: the parser leaves the conversion to a stream, which reports overflow and not underflow. 2e-324, which is nearer to 0 than to the
# smallest double, is 0 as well; 5e-324 is that double.
# Why it matters: an epsilon or a learning rate with a slip of the exponent is a division by zero or a run that learns nothing, and the file
# shows another number than the run had.
# Seen on Debian 12:
#   1e400: refused
#   1e-400: 0
#   2e-324: 0
#   5e-324: 4.94066e-324
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
cd -- "$folder"
apt-get download -qq libtomlplusplus-dev=3.3.0+ds-1 2>/dev/null
dpkg -x libtomlplusplus-dev_*.deb .
cat >numbers.cpp <<'CPP'
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include <cstdio>
#include <string>

int main() {
  for (const char* number : {"1e400", "1e-400", "2e-324", "5e-324"}) {
    try {
      std::printf("%s: %g\n", number, *toml::parse(std::string("x = ") + number)["x"].value<double>());
    } catch (const toml::parse_error&) {
      std::printf("%s: refused\n", number);
    }
  }
}
CPP
g++ -std=c++17 -O0 -Iusr/include numbers.cpp -o numbers
./numbers | tee seen
[[ $(<seen) == "1e400: refused"$'\n'"1e-400: 0"$'\n'"2e-324: 0"$'\n'"5e-324: 4.94066e-324" ]] || { echo "the behaviour has changed" >&2; exit 1; }
