#include "assay/train/step_recording.hpp"

#include <algorithm>
#include <assay/compute/silent_backend.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace assay::train {
namespace {

using compute::Tensor;

constexpr int never = std::numeric_limits<int>::max();

struct Span {
  std::uintptr_t begin, end;
};

Span span_of(const Tensor& t) {
  const auto begin = reinterpret_cast<std::uintptr_t>(t.data);
  return {begin, begin + t.extent_bytes()};
}

// A backend that notes what operations read and write, and carries none out.
class Recorder final : public compute::SilentBackend {
 public:
  struct Life {
    int first_write = never, first_read = never, last_use = -1;
    bool on_side = false;  // used by the side lane since the last join
  };

  Recorder(const BufferPlan& plan, const ParameterSet* gradients)
      : plan_(plan), lives_(plan.buffers().size()), gradients_(gradients) {
    if (!gradients) return;
    gradient_writes_.assign(gradients->all().size(), never);
    gradient_span_ = span_of(gradients->all_gradients());
    for (const Parameter& p : gradients->all()) gradient_begins_.push_back(gradients->gradient_position(p.offset));
  }

  void begin_side() override { side_ = true; }
  void end_side() override { side_ = false; }
  void join_side() override {
    for (Life& life : lives_)
      if (life.on_side) life.last_use = moment_, life.on_side = false;
  }
  void upload(const Tensor& to, const void*) override { use(to, false, true), ++moment_; }
  void download(void*, const Tensor& from) override { use(from, true, false), ++moment_; }
  void run_any(const compute::AnyOperation& operation) override {
    std::visit(
        [this](const auto* op) {
          compute::for_each_tensor(*op, [&](const char*, const auto& tensor) {
            use(tensor, compute::reads(*op, tensor), compute::is_written<std::remove_cvref_t<decltype(tensor)>>);
          });
        },
        operation);
    ++moment_;
  }

  int last_moment() const { return std::max(moment_ - 1, 0); }
  const std::vector<Life>& lives() const { return lives_; }
  const std::vector<int>& gradient_writes() const { return gradient_writes_; }  // by parameter

 private:
  void use(const Tensor& t, bool read, bool written) {
    if (!t) return;
    const std::size_t buffer = plan_.buffer_at(t.data);
    // Before its elements are asked for, whose product may have wrapped to none.
    if (buffer < lives_.size()) BufferPlan::refuse_beyond_all(plan_.buffers()[buffer]);
    if (t.elements() == 0) return;
    const Span span = span_of(t);
    if (buffer < lives_.size()) {
      Life& life = lives_[buffer];
      if (span.end > span_of(plan_[buffer]).end) {
        // A part of one beyond all memory may lie anywhere.
        for (const BufferPlan::Buffer& each : plan_.buffers()) BufferPlan::refuse_beyond_all(each);
        throw Error(ASSAY_INTERNAL,
                    "the plan of a step: '" + plan_.buffers()[buffer].name + "' is used beyond its end");
      }
      if (written) life.first_write = std::min(life.first_write, moment_);
      if (read) life.first_read = std::min(life.first_read, moment_);
      life.last_use = moment_;
      life.on_side = life.on_side || side_;
    } else if (gradients_ && gradient_span_.begin <= span.begin && span.begin < gradient_span_.end) {
      use_gradients(span, read, written);
    }
  }

  void use_gradients(const Span& span, bool read, bool written) {
    // They lie in the order of their ids.
    const auto first = static_cast<std::int64_t>((span.begin - gradient_span_.begin) /
                                                 compute::size_of(gradients_->policy().gradient));
    const auto after = std::upper_bound(gradient_begins_.begin(), gradient_begins_.end(), first);
    const auto begin = std::max<std::ptrdiff_t>(after - gradient_begins_.begin() - 1, 0);
    for (auto id = static_cast<ParameterSet::Id>(begin); id < gradient_begins_.size(); ++id) {
      if (gradients_->drops_gradient(id)) continue;
      const Span own = span_of(gradients_->gradient(id));
      if (own.begin >= span.end) break;
      if (span.begin >= own.end) continue;
      if (read && gradient_writes_[id] == never)
        throw Error(ASSAY_INTERNAL, "the plan of a step: the gradient by '" + gradients_->all()[id].name +
                                        "' is read before it is written");
      if (written) gradient_writes_[id] = std::min(gradient_writes_[id], moment_);
    }
  }

  const BufferPlan& plan_;
  std::vector<Life> lives_;
  const ParameterSet* gradients_;
  std::vector<int> gradient_writes_;
  std::vector<std::int64_t> gradient_begins_;  // by parameter; of a dropped one that of the next
  Span gradient_span_{};
  int moment_ = 0;
  bool side_ = false;
};

void borrow_gradients(BufferPlan& plan, const ParameterSet& set, const Recorder& recorder) {
  const std::size_t width = compute::size_of(set.policy().gradient);
  // Padding at the arena's end is not borrowed at all.
  const std::int64_t elements = set.gradient_elements() - set.tail_elements();
  plan.borrow(static_cast<std::size_t>(elements) * width);
  const int end = recorder.last_moment();
  std::int64_t kept = set.parameter_count();
  for (const ParameterSet::Id id : set.dropped_gradients()) kept -= set.all()[id].elements();
  if (elements != kept) return plan.reserve(0, static_cast<std::size_t>(elements) * width, 0, end);
  const auto& writes = recorder.gradient_writes();
  for (ParameterSet::Id first = 0, next = 0; first < set.all().size(); first = next) {
    std::int64_t together = 0;  // adjacent ones that are written at once
    for (; next < set.all().size() && writes[next] == writes[first]; ++next)
      together += set.drops_gradient(next) ? 0 : set.all()[next].elements();
    if (together == 0) continue;
    // What the step never writes belongs to whoever does: an optimizer reads it.
    plan.reserve(set.gradient_offset_bytes(first), static_cast<std::size_t>(together) * width,
                 writes[first] == never ? 0 : writes[first], end);
  }
}

void set_lives(BufferPlan& plan, const Recorder& recorder) {
  const int end = recorder.last_moment();
  for (BufferPlan::Id id = 0; id < plan.buffers().size(); ++id) {
    const Recorder::Life& life = recorder.lives()[id];
    const BufferPlan::Buffer& buffer = plan.buffers()[id];
    if (buffer.use == BufferPlan::Use::outlives_steps) {
      plan.set_life(id, 0, end);
    } else if (life.last_use < 0) {
      plan.leave_out(id);
    } else if (life.first_write == never || life.first_read <= life.first_write) {
      throw Error(ASSAY_INTERNAL, "the plan of a step: '" + buffer.name + "' is read before it is written");
    } else {
      plan.set_life(id, life.first_write, buffer.use == BufferPlan::Use::result ? end : std::min(life.last_use, end));
    }
  }
}

}  // namespace

void plan_step(BufferPlan& plan, const ParameterSet* gradients, const std::function<void(compute::Backend&)>& step) {
  Recorder recorder(plan, gradients);
  step(recorder);
  recorder.join_side();
  set_lives(plan, recorder);
  if (gradients) borrow_gradients(plan, *gradients, recorder);
  plan.solve();
}

void plan_step_in_two_parts(BufferPlan& plan, const std::function<void(compute::Backend&)>& first,
                            const std::function<void(compute::Backend&)>& second) {
  Recorder recorder(plan, nullptr);
  first(recorder);
  recorder.join_side();
  const int last_of_first = recorder.last_moment();
  second(recorder);
  recorder.join_side();
  set_lives(plan, recorder);
  plan.solve_around(last_of_first);
}

}  // namespace assay::train
