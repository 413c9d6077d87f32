// The ranks that share out a model's layers in stages ("pipeline parallel"), each of which sends to its neighbours.
#pragma once
#include <assay/comm/communicator.hpp>
#include <assay/train/stage_exchange.hpp>
#include <cstdint>

namespace assay::parallel {

class StageRanks final : public train::StageExchange {
 public:
  // Must outlive the calls below; not the silent one, with which there is no exchange at all.
  void use(comm::Communicator* communicator) { communicator_ = communicator; }
  // nullptr: steps go without communication.
  train::StageExchange* exchange() { return communicator_ ? this : nullptr; }

  // ---- train::StageExchange
  Ticket send(const compute::Tensor& x, std::int64_t to) override {
    return communicator_->send(x, static_cast<std::int32_t>(to));
  }
  Ticket receive(const compute::Tensor& x, std::int64_t from) override {
    return communicator_->receive(x, static_cast<std::int32_t>(from));
  }
  void wait(Ticket ticket) override {
    if (ticket != 0) communicator_->wait(ticket);
  }

 private:
  comm::Communicator* communicator_ = nullptr;
};

}  // namespace assay::parallel
