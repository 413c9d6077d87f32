#include "record/environment_file.hpp"

#include "record/environment.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace assay::host::record {
namespace {

using Json = nlohmann::ordered_json;

Json captured() {
  return Json::parse(R"({
    "schema": 1, "captured": "2026-11-20T12:00:00Z", "command": "assay run x.toml",
    "cpu": {"model": "M", "usable_cores": 2}, "memory": {"total_mib": 100.0, "available_mib": 50.0},
    "gpu": {"driver": "580.1"}, "load_average": [0.5, 0.5, 0.5],
    "job": {"scheduler": "Slurm", "id": "70", "partition": "gpu"},
    "variables": {"OMP_NUM_THREADS": "2", "SLURM_JOB_ID": "70"}})");
}

std::string id_of(const Json& json) { return environment_file(json.dump())->id; }

TEST(EnvironmentFile, TheIdIsOfWhatLasts) {
  EXPECT_EQ(id_of(captured()), "4c17abba78f008cb") << "the same in every build";
  Json later = captured();
  later["captured"] = "2026-11-21T12:00:00Z", later["command"] = "assay run x.toml --resume";
  later["load_average"] = {3, 2, 1}, later["memory"]["available_mib"] = 10.0;
  later["job"] = {{"scheduler", "Slurm"}, {"id", "71"}, {"nodes", "n2"}};
  later["variables"]["SLURM_JOB_ID"] = "71";
  EXPECT_EQ(id_of(later), id_of(captured()));
  later.erase("job"), later["variables"].erase("SLURM_JOB_ID");
  EXPECT_EQ(id_of(later), id_of(captured())) << "a run by hand on the same machine";
}

TEST(EnvironmentFile, WhateverElseChangesMakesAnother) {
  for (const char* path : {"/cpu/model", "/gpu/driver", "/variables/OMP_NUM_THREADS", "/variables/NEW", "/os"}) {
    Json other = captured();
    other[Json::json_pointer(path)] = "other";
    EXPECT_NE(id_of(other), id_of(captured())) << path;
  }
}

TEST(EnvironmentFile, TheOrderOfFactsDoesNotCount) {
  Json turned = Json::object();
  const Json json = captured();
  for (auto at = json.rbegin(); at != json.rend(); ++at) turned[at.key()] = at.value();
  EXPECT_EQ(id_of(turned), id_of(captured()));
}

TEST(EnvironmentFile, HasWhatLastsAndTheInvocationsApart) {
  const auto file = environment_file(captured().dump());
  const Json json = Json::parse(file->text);
  EXPECT_EQ(json["memory"], Json({{"total_mib", 100.0}}));
  EXPECT_EQ(json["variables"], Json({{"OMP_NUM_THREADS", "2"}}));
  EXPECT_FALSE(json.contains("job"));
  ASSERT_EQ(json["invocations"].size(), 1u);
  EXPECT_EQ(json["invocations"][0]["command"], "assay run x.toml");
  EXPECT_EQ(json["invocations"][0]["job"]["id"], "70");
  const auto environment = Environment::parse(file->text);
  EXPECT_EQ(environment->fact_or("command", "none"), "none");
  ASSERT_EQ(environment->invocations().size(), 1u);
  EXPECT_EQ(*find(environment->invocations()[0], "memory.available_mib"), "50.0");
}

std::string joined(const std::vector<std::string>& texts) {
  JoinedEnvironment environment;
  for (const std::string& text : texts) environment.add(text);
  return environment.text();
}

TEST(EnvironmentFile, InvocationsAreJoinedEachOnce) {
  Json later = captured();
  later["command"] = "assay run x.toml --resume";
  const std::string first = environment_file(captured().dump())->text, second = environment_file(later.dump())->text;
  const std::string both = joined({first, second});
  Json expected = Json::parse(first);
  expected["invocations"].push_back(Json::parse(second)["invocations"][0]);
  EXPECT_EQ(both, expected.dump(2) + "\n");
  EXPECT_EQ(joined({both, first, second}), both);
  EXPECT_EQ(joined({"half a fi", first}), first + "\n");
  EXPECT_EQ(joined({first, "half a fi"}), first + "\n");
  EXPECT_EQ(joined({first, first.substr(0, first.size() - 3)}), first + "\n") << "torn behind its head";
  EXPECT_EQ(joined({first, first + "}"}), first + "\n") << "more than an object";
}

TEST(EnvironmentFile, FilesOfAnotherFormAreJoinedToo) {
  const auto invocations = [](const std::string& text) { return Json::parse(text)["invocations"]; };
  // In one line; with a member behind the list; with the list's first words at another depth.
  const std::string a = R"({"os": 1, "invocations": [{"n": 1}]})",
                    b = R"({"os": 1, "invocations": [{"n": 2}, {"n": 1}]})";
  EXPECT_EQ(invocations(joined({a, b})).dump(), R"([{"n":1},{"n":2}])");
  const std::string c = "{\n  \"invocations\": [{\"n\": 1}], \"os\": 1}",
                    d = "{\n  \"invocations\": [{\"n\": 2}], \"os\": 1}";
  EXPECT_EQ(invocations(joined({c, d})).dump(), R"([{"n":1},{"n":2}])");
  const std::string deep = "{\"job\": {\n  \"invocations\": [1]}, \"invocations\": [{\"n\": 1}]}";
  const std::string other = "{\"job\": {\n  \"invocations\": [1]}, \"invocations\": [{\"n\": 2}]}";
  EXPECT_EQ(invocations(joined({deep, other})).dump(), R"([{"n":1},{"n":2}])");
  EXPECT_EQ(joined({R"({"invocations": "none"})", a}),
            "{\n  \"invocations\": [\n    {\n      \"n\": 1\n    }\n  ]\n}\n");
}

TEST(EnvironmentFile, WhatIsNoObjectHasNone) {
  EXPECT_FALSE(environment_file("half a fi"));
  EXPECT_FALSE(environment_file("[]"));
}

}  // namespace
}  // namespace assay::host::record
