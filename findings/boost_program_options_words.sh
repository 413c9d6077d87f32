#!/usr/bin/env bash
# Boost.Program_options 1.74: an option without its value takes the next option as the value, and words of no option are dropped.
#
# Expected: "--name --steps 3" is an error, as --name has no value; "steps=5" and a stray "4" are errors where no positional is declared.
# Behaviour: parse_command_line() gives --name the text "--steps" and then drops the 3; stray words go into a list of positionals that
# store() ignores when nothing was declared. Each command line is accepted.
# Why it matters: a run with the wrong number of steps measures something else than the command line says. A program has to declare
# positionals to see them, and to look at values that begin with "--" itself, as assay's options do.
# Seen on Debian 12, with --name TEXT and --steps NUMBER (1 unless given):
#   --name --steps 3: name '--steps', steps 1
#   steps=5 --name a: name 'a', steps 1
#   --steps 3 4: name '', steps 3
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
cd -- "$folder"
apt-get download -qq libboost1.74-dev=1.74.0+ds1-21 libboost-program-options1.74-dev=1.74.0+ds1-21 2>/dev/null
for package in *.deb; do dpkg -x "$package" .; done
cat >options.cpp <<'CPP'
#include <boost/program_options.hpp>
#include <cstdio>
#include <string>

int main(int count, char** words) {
  namespace po = boost::program_options;
  po::options_description known;
  known.add_options()("name", po::value<std::string>()->default_value(""))("steps", po::value<int>()->default_value(1));
  po::variables_map values;
  try {
    po::store(po::parse_command_line(count, words, known), values);
  } catch (const po::error& e) {
    std::printf("refused: %s\n", e.what());
    return 0;
  }
  std::printf("name '%s', steps %d\n", values["name"].as<std::string>().c_str(), values["steps"].as<int>());
}
CPP
g++ -std=c++17 -O0 -Iusr/include options.cpp usr/lib/x86_64-linux-gnu/libboost_program_options.a -o options
for words in "--name --steps 3" "steps=5 --name a" "--steps 3 4"; do
  read -ra each <<<"$words"
  echo "$words: $(./options "${each[@]}")"
done | tee seen
[[ $(cut -d: -f2 seen | xargs -d '\n') == " name '--steps', steps 1  name 'a', steps 1  name '', steps 3" ]] || { echo "the behaviour has changed" >&2; exit 1; }
