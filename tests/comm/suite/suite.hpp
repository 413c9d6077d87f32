// The conformance suite of communicators: every operation, dtype and reduction, at sizes from nothing to large, in
// place and not, against references that are exact. It knows neither the backend nor the device: memory is reached
// through the functions given to it. Every rank runs it, with equal arguments.
#pragma once
#include <assay/comm/communicator.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace assay::test {

struct SuiteMemory {  // on the case's device
  char* send = nullptr;
  char* receive = nullptr;
  std::size_t bytes = 0;  // of each
  std::function<void(void* device, const void* host, std::size_t bytes)> upload;
  std::function<void(void* host, const void* device, std::size_t bytes)> download;
  std::function<void()> compute;  // some work on the compute stream that touches neither
  // What the body enqueues as a graph; empty or null: there are none.
  std::function<std::unique_ptr<compute::Graph>(const std::function<void()>& body)> capture;
};

class CommunicatorSuite {
 public:
  // `largest_bytes`: of the one large all-reduce, at least 1 MiB. Of the other sizes those that are not larger.
  CommunicatorSuite(comm::Communicator& communicator, const assay_comm& ranks, SuiteMemory memory,
                    std::size_t largest_bytes);

  // What each of the two buffers must hold.
  static std::size_t bytes_needed(std::int32_t ranks, std::size_t largest_bytes);

  void run();
  bool passed() const { return failure_count_ == 0; }
  // "412 collectives agree with their references: ...", or the first mistakes.
  std::string text() const;

 private:
  enum class Operation {
    all_reduce,
    reduce_scatter,
    reduce,
    all_gather,
    broadcast,
    all_to_all,
    all_to_all_v,
    send_receive,
    pass_on  // each rank receives from the one before it, and then sends to the one behind it, if there are these
  };
  struct Check {
    Operation operation;
    compute::DType dtype;
    comm::Reduction reduction;
    std::size_t n;
    bool in_place;
    std::int32_t root = 0;      // of reduce and broadcast
    std::int32_t distance = 1;  // of send_receive: to the rank that is so many further on
    std::int32_t turn = 2;      // of all_to_all_v: which counts
  };
  static bool has_one_tensor(Operation operation) {
    return operation == Operation::reduce || operation == Operation::broadcast;
  }
  static std::string name_of(const Check&);

  void check(const Check&);
  void check_random(compute::DType, std::size_t n, comm::Reduction);
  void check_equal_on_all_ranks(const std::string& name, const std::vector<char>& bytes);
  void check_many_in_flight();
  void check_captured();
  void check_refused(compute::DType);
  void check_totals();
  comm::Ticket start(const Check&, char* send, char* receive);
  std::vector<char> input(const Check&, std::int32_t rank) const;
  std::vector<char> expected(const Check&) const;
  void append_input(std::vector<char>& bytes, const Check&, std::int32_t rank) const;
  void append_expected(std::vector<char>& bytes, const Check&) const;
  // Of a rank's input the elements from `begin` on.
  void append_sent(std::vector<char>& bytes, const Check&, std::int32_t rank, std::size_t begin,
                   std::size_t count) const;
  std::int32_t source_of(const Check&) const;
  // Of all_to_all_v: elements of a row, and how many rows go from one rank to another; n elements at most.
  static std::int64_t width_of(const Check&);
  std::int64_t rows_between(const Check&, std::int32_t from, std::int32_t to) const;
  // By the other rank.
  std::vector<std::int64_t> rows_sent(const Check&, std::int32_t from) const;
  std::vector<std::int64_t> rows_received(const Check&, std::int32_t to) const;
  bool reduces(compute::DType) const;
  void note(bool right, const std::string& what);

  comm::Communicator& comm_;
  const assay_comm& ranks_;
  SuiteMemory memory_;
  std::size_t largest_bytes_;
  std::uint64_t salt_ = 0;
  std::vector<char> sent_, wanted_, after_;  // of one check
  std::size_t exact_ = 0, random_ = 0, in_flight_ = 0, equal_ = 0, replayed_ = 0, refused_ = 0, failure_count_ = 0;
  std::vector<std::string> failures_;
};

}  // namespace assay::test
