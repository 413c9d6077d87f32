// Counts the connections that did not prove that they belong to this launch: how many, from where, and why they were
// refused. However many there are, it takes a bounded amount of memory and gives one line of text.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace assay::host::wireup {

enum class Refusal {
  wrong_token,     // it speaks our protocol, and could not prove that it knows the token
  other_version,   // it speaks another version of our protocol
  other_protocol,  // what it sent is nothing of ours
  silent,          // it did not say enough in time
  gone,            // it closed the connection before it had proven anything
  crowded_out,     // it said nothing while too many others waited
  broken_seal      // it had proven itself; then came what it cannot have sent
};

// Thread-safe.
class Strangers {
 public:
  void note(const std::string& address, Refusal why);
  // "3 connections were refused: 2 from 10.0.0.7 (2 with a wrong token), 1 from ...", of the addresses with the most.
  // Empty when there were none.
  std::string text() const;
  std::uint64_t count() const;

 private:
  static constexpr std::size_t kinds = 7;
  using Counts = std::array<std::uint64_t, kinds>;
  static std::uint64_t total(const Counts& counts);
  static std::string reasons(const Counts& counts);

  mutable std::mutex mutex_;
  std::map<std::string, Counts> by_address_;  // a limited number
  Counts of_other_addresses_{};
};

}  // namespace assay::host::wireup
