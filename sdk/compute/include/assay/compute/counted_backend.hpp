// A compute backend that counts the operations it passes on to another one, and for each replay of a graph those in it.
// A workload whose steps write the same results each time counts them this way (assay.account/1): it notices a step
// that enqueues less, and no step takes longer.
//
//   backend = std::make_unique<CountedBackend>(assay::workload::open_backend(host, launch));
//   ...                                      // set-up; at its end, before the steps are prepared or captured:
//   backend->begin_steps();
//   account.steps = backend->steps(operations of a step);
#pragma once
#include <assay/compute/forwarding_backend.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace assay::compute {

class CountedBackend final : public ForwardingBackend {
 public:
  explicit CountedBackend(std::unique_ptr<Backend> real) : ForwardingBackend(*real), owned_(std::move(real)) {}

  void begin_steps() { executed_ = prepared_ = 0; }
  std::uint64_t executed() const { return executed_; }
  std::uint64_t prepared() const { return prepared_; }  // in Mode::prepare: a step's, where nothing else was prepared

  // The steps that were carried out. WRONG_RESULT where the operations are no whole number of steps.
  std::uint64_t steps(std::uint64_t operations_of_step) const {
    if (operations_of_step == 0 || executed_ % operations_of_step != 0)
      throw Error(ASSAY_WRONG_RESULT, std::to_string(executed_) +
                                          " operations were carried out, which are no whole number of steps of " +
                                          std::to_string(operations_of_step));
    return executed_ / operations_of_step;
  }

  void set_mode(Mode mode) override {
    mode_ = mode;  // it holds even where the real one throws
    real().set_mode(mode);
  }
  void run_any(const AnyOperation& operation) override {
    real().run_any(operation);
    // The account's operations do not count as part of the steps.
    if (std::holds_alternative<const op::SpoilPlaces*>(operation) ||
        std::holds_alternative<const op::MarkStep*>(operation))
      return;
    ++(mode_ == Mode::prepare ? prepared_ : capturing_ ? captured_ : executed_);
  }
  // The graph must not outlive this backend.
  std::unique_ptr<Graph> capture(const std::function<void()>& enqueue) override {
    const Capturing capturing(*this);
    std::unique_ptr<Graph> graph = real().capture(enqueue);
    if (!graph) return graph;
    return std::make_unique<CountedGraph>(std::move(graph), captured_, executed_);
  }

 private:
  class CountedGraph final : public Graph {
   public:
    CountedGraph(std::unique_ptr<Graph> real, std::uint64_t operations, std::uint64_t& executed)
        : real_(std::move(real)), operations_(operations), executed_(executed) {}
    void launch() override {
      real_->launch();
      executed_ += operations_;
    }
    std::size_t node_count() const override { return real_->node_count(); }

   private:
    std::unique_ptr<Graph> real_;
    std::uint64_t operations_;
    std::uint64_t& executed_;
  };
  class Capturing {
   public:
    explicit Capturing(CountedBackend& backend) : backend_(backend) {
      backend_.captured_ = 0, backend_.capturing_ = true;
    }
    ~Capturing() { backend_.capturing_ = false; }
    Capturing(const Capturing&) = delete;
    Capturing& operator=(const Capturing&) = delete;

   private:
    CountedBackend& backend_;
  };

  std::unique_ptr<Backend> owned_;
  Mode mode_ = Mode::execute;
  bool capturing_ = false;
  std::uint64_t executed_ = 0, prepared_ = 0, captured_ = 0;
};

}  // namespace assay::compute
