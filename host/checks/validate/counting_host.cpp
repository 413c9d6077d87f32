#include "validate/counting_host.hpp"

#include <cstring>
#include <string_view>
#include <utility>

namespace assay::host::validate {

CountingHost* CountingHost::current_ = nullptr;

CountingHost::CountingHost(worker::HostServices& services, const plugin::OpenDevice& device)
    : services_(services),
      inner_(services.abi()),
      inner_memory_(static_cast<const assay_memory*>(inner_->get_extension(inner_, ASSAY_EXT_MEMORY))),
      host_(*inner_),
      memory_(*inner_memory_),
      device_api_(device.api()),
      device_{sizeof device_, &device_api_, device.handle()},
      open_device_(device) {
  current_ = this;
  host_.impl = this;
  host_.log = [](const assay_host* h, std::int32_t level, assay_str text) noexcept {
    ++from(h).counts_.logs;
    from(h).inner_->log(from(h).inner_, level, text);
  };
  host_.set_message = [](const assay_host* h, assay_status status, assay_str text) noexcept {
    from(h).inner_->set_message(from(h).inner_, status, text);
  };
  host_.get_extension = [](const assay_host* h, const char* id) noexcept -> const void* {
    CountingHost& self = from(h);
    if (!id || !self.offers_) return nullptr;
    if (std::strcmp(id, ASSAY_EXT_MEMORY) == 0) return &self.memory_;
    if (std::strcmp(id, ASSAY_EXT_DEVICE) == 0) return &self.device_;
    return self.inner_->get_extension(self.inner_, id);
  };
  memory_.impl = this;
  memory_.allocate = [](const assay_memory* m, assay_memory_kind kind, std::size_t bytes, assay_str label,
                        void** out) noexcept -> assay_status {
    CountingHost& self = from(m);
    if (self.counts_.allocations++ == self.refused_) {
      constexpr std::string_view text = "refused by assay validate";
      self.inner_->set_message(self.inner_, ASSAY_OUT_OF_MEMORY, {text.data(), text.size()});
      return ASSAY_OUT_OF_MEMORY;
    }
    const assay_status status = self.inner_memory_->allocate(self.inner_memory_, kind, bytes, label, out);
    if (status == ASSAY_OK) self.blocks_[*out] = bytes;
    return status;
  };
  memory_.release = [](const assay_memory* m, void* address) noexcept {
    from(m).blocks_.erase(address);
    from(m).inner_memory_->release(from(m).inner_memory_, address);
  };
  memory_.report = [](const assay_memory* m, assay_memory_kind kind, std::int64_t delta, assay_str label) noexcept {
    from(m).inner_memory_->report(from(m).inner_memory_, kind, delta, label);
  };
  memory_.moment = [](const assay_memory* m, assay_str name) noexcept {
    from(m).inner_memory_->moment(from(m).inner_memory_, name);
  };
  device_api_.stream_synchronize = [](assay_device* device, void* stream) noexcept {
    ++current_->counts_.synchronisations;
    return current_->open_device_.api().stream_synchronize(device, stream);
  };
  device_api_.event_synchronize = [](assay_device* device, assay_event* event) noexcept {
    ++current_->counts_.synchronisations;
    return current_->open_device_.api().event_synchronize(device, event);
  };
  device_api_.allocate = [](assay_device* device, std::size_t bytes, void** out) noexcept {
    ++current_->counts_.allocations;
    return current_->open_device_.api().allocate(device, bytes, out);
  };
}

CountingHost::~CountingHost() {
  if (current_ == this) current_ = nullptr;
}

void CountingHost::before_mark() {
  if (marks_until_act_ == SIZE_MAX) return;
  if (marks_until_act_-- > 0) return;
  marks_until_act_ = SIZE_MAX;
  act_();
}

assay_launch CountingHost::launch(assay_stage stage, std::uint64_t iteration, measure::Recorder* recorder) {
  assay_launch launch = services_.launch(stage, iteration, recorder);
  inner_phase_begin_ = launch.phase_begin;
  inner_phase_end_ = launch.phase_end;
  launch.phase_begin = [](const assay_launch* l, std::uint32_t phase) noexcept {
    current_->before_mark();
    current_->inner_phase_begin_(l, phase);
  };
  launch.phase_end = [](const assay_launch* l, std::uint32_t phase) noexcept {
    current_->before_mark();
    current_->inner_phase_end_(l, phase);
  };
  current_ = this;
  return launch;
}

std::vector<CountingHost::Block> CountingHost::blocks() const {
  std::vector<Block> blocks;
  for (const auto& [address, bytes] : blocks_) blocks.push_back({address, bytes});
  return blocks;
}

}  // namespace assay::host::validate
