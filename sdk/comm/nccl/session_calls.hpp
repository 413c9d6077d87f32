// How a session calls NCCL and CUDA on the user's thread: the templates of session.hpp, for the files that make it up.
#pragma once
#include <fmt/format.h>

#include <assay/comm/long_wait.hpp>
#include <utility>

#include "backoff.hpp"
#include "session.hpp"

namespace assay::comm::nccl {

using Clock = std::chrono::steady_clock;

template <class What>
std::optional<Failure> Session::settle(const Comm& comm, Answer answer, const What& what) {
  if (answer.kind == Answer::Kind::done) return std::nullopt;
  const Clock::time_point until = Clock::now() + timeout_;
  for (Backoff backoff; answer.kind == Answer::Kind::in_progress; answer = library_->state(comm)) {
    backoff.pause();
    if (!backoff.waited_for(std::chrono::milliseconds(1))) continue;
    if (dead_) return std::nullopt;  // the caretaker was first; it waits for NCCL to be left alone
    if (aborted()) return given_up(what());
    if (Clock::now() > until) return late(what());
  }
  if (answer.kind == Answer::Kind::failed) return failed(what(), answer.text);
  return std::nullopt;
}

template <class Start, class What>
void Session::call(const Comm& comm, Start&& start, const What& what) {
  // Also of an enqueue: the first collective of a kind connects to the other ranks.
  const LongWait waiting(ranks_);
  std::optional<Failure> failure;
  {
    const std::lock_guard lock(nccl_);
    if (!dead_) failure = settle(comm, start(), what);
  }
  if (failure) fail(std::move(*failure));
  if (dead_) throw_failure();
}

template <class Body>
auto Session::on_gpu(Body&& body) {
  try {
    return body();
  } catch (const Error& error) {
    if (error.status() != ASSAY_DEVICE_ERROR && error.status() != ASSAY_OUT_OF_MEMORY) {
      if (!series_) forget_call();  // what was refused is not under way, and will never be late
      throw;
    }
    fail({error.status(), error.what()});
  }
}

}  // namespace assay::comm::nccl
