#include "doctor/report.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/text_format.hpp"
#include "facts.hpp"

namespace assay::host::doctor {
namespace {

std::string text_of(const Facts& facts, std::size_t width) { return report_text(facts, findings_of(facts), width); }

TEST(DoctorReport, TellsMachineDevicesAndUse) {
  const std::string text = text_of(sound_facts(), 120);
  for (const char* part :
       {"AMD EPYC 9454, 48 of 48 processors usable", "governor performance on 48",
        "NVIDIA H200, 139.6 GiB of 140.6 GiB free, at most 1980 MHz, power limit 700 W", "auto is cuda: NVIDIA H200",
        "communicators: gloo, nccl", "/scratch/results, xfs", "nothing that was looked for"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(DoctorReport, FindingsHaveEffectAndRemedyAndFitTheTerminal) {
  Facts facts = sound_facts();
  facts.machine.governors = {{"powersave", 48}};
  facts.devices[1] = {"cuda", "", {facts.devices[1].devices[0], facts.devices[1].devices[0]}};
  facts.devices[1].devices[1].ordinal = 1;
  facts.devices[1].devices[1].problem = "it is in the compute mode 'prohibited'; nvidia-smi -c 0 allows it";
  const std::string text = text_of(facts, 80);
  for (const char* part :
       {"  error    gpu.unusable: GPU 1", "  warning  cpu.governor: 48 of 48 processors are governed",
        "           Effect: clocks follow the load", "           Remedy: cpupower frequency-set",
        "cuda 1       unusable: it is in the compute mode", "\n1 error, 1 warning\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    EXPECT_LE(display_width(text.substr(begin, end - begin)), 80u) << text.substr(begin, end - begin);
    begin = end + 1;
  }
}

TEST(DoctorReport, JsonHasWhatTheTextHas) {
  Facts facts = sound_facts();
  facts.machine.quota_cores = 2;
  const auto json = report_json(facts, findings_of(facts));
  EXPECT_EQ(json["schema"], "assay.doctor/1");
  EXPECT_EQ(json["use"]["device"], "cuda");
  EXPECT_EQ(json["devices"][1]["devices"][0]["name"], "NVIDIA H200");
  ASSERT_EQ(json["findings"].size(), 1u);
  EXPECT_EQ(json["findings"][0]["name"], "cpu.quota");
  EXPECT_EQ(json["findings"][0]["severity"], "warning");
  EXPECT_FALSE(json["findings"][0]["remedy"].get<std::string>().empty());
  EXPECT_EQ(json["machine"]["processors"]["quota_cores"], 2.0);
}

}  // namespace
}  // namespace assay::host::doctor
