// How ranks share the algorithms that they found by timing: for each kind of device one list of texts, which one rank
// writes and the others read. The backend defines the texts.
#pragma once
#include <cstdint>
#include <string>

namespace assay::compute {

class AlgorithmExchange {
 public:
  AlgorithmExchange() = default;
  AlgorithmExchange(const AlgorithmExchange&) = delete;
  AlgorithmExchange& operator=(const AlgorithmExchange&) = delete;
  virtual ~AlgorithmExchange() = default;

  // Whether this rank writes the list of `devices`: of the ranks that ask for it the first does. Waits for no rank.
  virtual bool lead(const std::string& devices) = 0;
  // The writer's texts, counted from 0.
  virtual void put(const std::string& devices, std::int64_t index, const std::string& text) = 0;
  // Waits for the writer. Throws assay::Error(COMM_ERROR) when it is lost, or late.
  virtual std::string get(const std::string& devices, std::int64_t index) = 0;
};

}  // namespace assay::compute
