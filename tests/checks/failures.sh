# shellcheck shell=bash
# Sourced by the tests of scripts: a failure is printed and counted, and the test goes on. It ends with ((failures == 0)).
failures=0

fail() {
  printf 'FAILED: %s\n' "$*"
  failures=$((failures + 1))
}
