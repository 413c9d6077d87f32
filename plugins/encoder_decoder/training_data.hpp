// The batches of a case: where its samples are, and what brings them to the device.
#pragma once
#include <assay/plugin.hpp>

#include <assay/data/loader.hpp>
#include <memory>

#include "settings.hpp"

namespace encoder_decoder {

class TrainingData {
 public:
  // Generates the data set on disk where it is asked for and missing, which may take long: reports its progress.
  TrainingData(const assay::Host& host, const DataSettings& settings, assay::compute::Backend& backend);

  assay::data::Loader& loader() { return *loader_; }

 private:
  std::unique_ptr<assay::data::SampleSource> source_;
  assay::DeviceMemory staging_;
  std::unique_ptr<assay::data::Loader> loader_;  // ends before what it reads from and writes to
};

}  // namespace encoder_decoder
