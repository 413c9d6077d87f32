#include "batch/site.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "sites.hpp"
#include "support/files.hpp"
#include "support/temporary_folder.hpp"

namespace assay::host::batch {
namespace {

std::vector<std::string> mistakes_in(const std::string& text) {
  std::vector<std::string> texts;
  for (const auto& mistake : site_from_text(text, "s.toml").mistakes) texts.push_back(mistake.to_string());
  return texts;
}

Site site_in(const std::string& text) {
  const SiteResult result = site_from_text("schema = 1\n" + text, "/sites/here.toml");
  for (const auto& mistake : result.mistakes) ADD_FAILURE() << mistake.to_string();
  return result.site.value_or(Site{});
}

TEST(SiteFile, EveryKey) {
  const Site site = site_in(R"toml([slurm]
cluster = "west"
partition = "gpu,long"
account = "a-1"
qos = "high"
constraint = "[rack1*2&ib]"
reservation = "r.1"
gpus_per_node = 8
time_max = "4h"
requeue = false
exclusive = false
exclude = ["n3", "m[1-4]"]
sbatch_extra = ["--mem=0"]
srun_extra = ["--cpu-bind=none"]
environment = ["CUDA_HOME", "NCCL_IB_HCA=mlx5 0"]
prologue = ["module load x", "export A=$(hostname)"]
assay = "/opt/assay/bin/assay"
[slurm.limits]
array_parallel = 4
attempts = 3
node_hours = 12.5
case_budget = "90s"
margin = "2m"
[slurm.canary]
enable = false
)toml");
  EXPECT_EQ(site.name, "here");
  EXPECT_EQ(slurm_of(site).cluster, "west");
  EXPECT_EQ(site.environment, (std::vector<std::string>{"CUDA_HOME", "NCCL_IB_HCA=mlx5 0"}));
  EXPECT_EQ(slurm_of(site).partition, "gpu,long");
  EXPECT_EQ(slurm_of(site).account, "a-1");
  EXPECT_EQ(slurm_of(site).qos, "high");
  EXPECT_EQ(slurm_of(site).constraint, "[rack1*2&ib]");
  EXPECT_EQ(slurm_of(site).reservation, "r.1");
  EXPECT_EQ(site.gpus_per_node, 8);
  EXPECT_EQ(site.time_max, std::chrono::hours(4));
  EXPECT_FALSE(slurm_of(site).requeue);
  EXPECT_FALSE(slurm_of(site).exclusive);
  EXPECT_EQ(site.exclude, (std::vector<std::string>{"n3", "m1", "m2", "m3", "m4"}));
  EXPECT_EQ(slurm_of(site).sbatch_extra, std::vector<std::string>{"--mem=0"});
  EXPECT_EQ(slurm_of(site).srun_extra, std::vector<std::string>{"--cpu-bind=none"});
  EXPECT_EQ(site.prologue.size(), 2U);
  EXPECT_EQ(site.assay, "/opt/assay/bin/assay");
  EXPECT_EQ(site.limits.array_parallel, 4);
  EXPECT_EQ(site.limits.attempts, 3);
  EXPECT_EQ(site.limits.node_hours, 12.5);
  EXPECT_EQ(site.limits.case_budget, std::chrono::seconds(90));
  EXPECT_EQ(site.limits.margin, std::chrono::minutes(2));
  EXPECT_FALSE(site.canary);
  EXPECT_EQ(site.capacity(), std::chrono::minutes(238));
}

TEST(SiteFile, NothingButATableIsNeeded) {
  const Site site = site_in("[slurm]\n");
  EXPECT_TRUE(slurm_of(site).requeue);
  EXPECT_TRUE(site.canary);
  EXPECT_EQ(site.time_max, std::chrono::hours(1));
}

TEST(SiteFile, EightMistakesAtOnceWithTheirPlaces) {
  const auto mistakes = mistakes_in(R"(schema = 2
[slurm]
partiton = "gpu"
account = ""
gpus_per_node = -1
time_max = "soon"
exclude = "n3"
[slurm.limits]
attempts = 0
margn = "2m"
)");
  ASSERT_EQ(mistakes.size(), 8U);
  const std::vector<std::pair<std::string, std::string>> expected{{"s.toml:1:10: ", "schema is 2"},
                                                                  {"s.toml:3:1: ", "did you mean 'partition'"},
                                                                  {"s.toml:4:11: ", "[slurm] account"},
                                                                  {"s.toml:5:17: ", "[slurm] gpus_per_node is -1"},
                                                                  {"s.toml:6:12: ", "[slurm] time_max is \"soon\""},
                                                                  {"s.toml:7:11: ", "an array of names of nodes"},
                                                                  {"s.toml:9:12: ", "[slurm.limits] attempts is 0"},
                                                                  {"s.toml:10:1: ", "did you mean 'margin'"}};
  for (std::size_t i = 0; i < mistakes.size(); ++i) {
    EXPECT_TRUE(mistakes[i].starts_with(expected[i].first)) << mistakes[i];
    EXPECT_NE(mistakes[i].find(expected[i].second), std::string::npos) << mistakes[i];
  }
}

TEST(SiteFile, WhatIsMissingAndWhatIsNoToml) {
  EXPECT_EQ(mistakes_in("").size(), 2U);
  EXPECT_EQ(mistakes_in("schema = 1\nslurm = 3\n").size(), 1U);
  EXPECT_FALSE(mistakes_in("schema = \n").empty());
  EXPECT_EQ(mistakes_in("schema = 1\n[slurm]\ntime_max = \"8m\"\n[slurm.limits]\nmargin = \"5m\"\n").size(), 1U);
  EXPECT_FALSE(read_site("/nowhere/s.toml").mistakes.empty());
}

// Values become words of options and of a script: what a shell or Slurm reads as more than a name is refused.
TEST(SiteFile, ValuesCannotBecomeMoreThanAWord) {
  for (const char* key : {"partition", "account", "qos", "constraint", "reservation", "assay"})
    for (const char* value : {"a b", "a b; rm -rf x", "a;b", "$(id)", "`id`", "${HOME}", "a\\nb", "a\\tb", "a\\\"b",
                              "a'b", "a\\\\b", "a>b", "a#b", "a\\u0000b", "a\\u00a0b", ""})
      EXPECT_EQ(mistakes_in(fmt::format("schema = 1\n[slurm]\n{} = \"{}\"\n", key, value)).size(), 1U)
          << key << " = " << value;
  for (const char* value : {"n1 n2", "n1;id", "$(id)", ""})
    EXPECT_EQ(mistakes_in(fmt::format("schema = 1\n[slurm]\nexclude = [\"{}\"]\n", value)).size(), 1U) << value;
}

TEST(SiteFile, OptionsAndLinesStayOnTheirLine) {
  for (const char* key : {"sbatch_extra", "srun_extra"}) {
    for (const char* value : {"mem=0", "", " --mem=0", "--a\\n#SBATCH --uid=0", "--a\\rb"})
      EXPECT_EQ(mistakes_in(fmt::format("schema = 1\n[slurm]\n{} = [\"{}\"]\n", key, value)).size(), 1U) << value;
  }
  EXPECT_EQ(mistakes_in("schema = 1\n[slurm]\nprologue = [\"a\\nb\"]\n").size(), 1U);
}

TEST(SiteFile, AnotherClusterHasAKey) {
  for (const char* option : {"-M west", "-Mwest", "--clusters=west", "--mem=0 --clusters west", "-N2", "-w n1", "-wn1",
                             "--nodelist=n1", "--nodel=n1", "--mem=0 --wrap=id", "--wra id", "-J x", "-F hosts"}) {
    const auto mistakes = mistakes_in(fmt::format("schema = 1\n[slurm]\nsbatch_extra = [\"{}\"]\n", option));
    ASSERT_EQ(mistakes.size(), 1U) << option;
    EXPECT_NE(mistakes[0].find("the key 'cluster'"), std::string::npos) << mistakes[0];
  }
  for (const char* name : {"", "9A", "A B", "=x", "A-B"})
    EXPECT_EQ(mistakes_in(fmt::format("schema = 1\n[slurm]\nenvironment = [\"{}\"]\n", name)).size(), 1U) << name;
}

TEST(SiteFile, AContainerIsOfARuntimeThatTheKindHas) {
  const Site site = site_in(
      "[ssh]\nhosts = [\"a\"]\ncontainer = { image = \"x.sif\", runtime = \"apptainer\", mounts = "
      "[\"/data:/d:ro\"] }\n");
  EXPECT_EQ(site.container.image, "x.sif");
  for (const auto& [text, part] : std::vector<std::pair<const char*, const char*>>{
           {"image = \"a\"", "runtime is \"\"; expected one of apptainer, podman"},
           {"image = \"a\", runtime = \"pyxis\"", "expected one of apptainer, podman"},
           {"image = \"a'b\", runtime = \"podman\"", "the name or file of an image"},
           {"runtime = \"podman\"", "has no image"},
           {"image = \"a\", runtime = \"podman\", mounts = [\"data\"]", "folders as \"/data\""},
           {"image = \"a\", runtime = \"podman\", options = [\"-v $(id)\"]", "quoted where a shell"},
           {"image = \"a\", runtime = \"podman\", gpus = 1", "unknown key 'gpus' in [ssh.container]"}}) {
    const auto mistakes = mistakes_in(fmt::format("schema = 1\n[ssh]\nhosts = [\"a\"]\ncontainer = {{ {} }}\n", text));
    ASSERT_GE(mistakes.size(), 1U) << text;
    EXPECT_NE(mistakes[0].find(part), std::string::npos) << mistakes[0];
  }
  EXPECT_NE(mistakes_in("schema = 1\n[kubernetes]\ncontainer = { image = \"a\" }\n")[0].find("unknown table"),
            std::string::npos);
}

TEST(SiteFile, AWrongRuntimeIsReportedWhereItStands) {
  const std::string table = "schema = 1\n[slurm]\n[slurm.container]\nimage = \"a\"\n";
  const auto wrong = mistakes_in(table + "runtime = \"docker\"\n"), missing = mistakes_in(table);
  ASSERT_EQ(wrong.size(), 1U);
  EXPECT_TRUE(wrong[0].starts_with("s.toml:5:")) << wrong[0];
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_TRUE(missing[0].starts_with("s.toml:4:")) << missing[0] << ": at the image, which has none";
}

TEST(SiteFile, HostsHaveNoSlots) {
  EXPECT_TRUE(mistakes_in("schema = 1\n[ssh]\nhosts = [\"n1\", \"u@[fe80::1]\", \"fe80::2\"]\n").empty());
  const auto mistakes = mistakes_in("schema = 1\n[ssh]\nhosts = [\"2:2\", \"[fe80::1]:2\"]\n");
  ASSERT_EQ(mistakes.size(), 2U);
  EXPECT_NE(mistakes[0].find("expected \"2\": "), std::string::npos) << mistakes[0];
  EXPECT_NE(mistakes[1].find("expected \"[fe80::1]\": "), std::string::npos) << mistakes[1];
}

TEST(SiteFile, AVariableStandsOnce) {
  for (const char* kind : {"[slurm]", "[ssh]\nhosts = [\"a\"]"}) {
    const auto mistakes = mistakes_in(fmt::format("schema = 1\n{}\nenvironment = [\"A=b\", \"B\", \"A=c\"]\n", kind));
    ASSERT_EQ(mistakes.size(), 1U) << kind;
    EXPECT_NE(mistakes[0].find("environment has A twice"), std::string::npos) << mistakes[0];
  }
}

TEST(SiteFile, AClusterIsOneWordOfAShell) {
  for (const char* name : {"a&touch", "a(b)", "a,b", "a|b", "a*", "a b", ""}) {
    const auto mistakes = mistakes_in(fmt::format("schema = 1\n[slurm]\ncluster = \"{}\"\n", name));
    ASSERT_EQ(mistakes.size(), 1U) << name;
    EXPECT_NE(mistakes[0].find("cluster"), std::string::npos) << mistakes[0];
  }
  EXPECT_EQ(slurm_of(site_in("[slurm]\ncluster = \"west-1.b_c\"\n")).cluster, "west-1.b_c");
}

TEST(SiteFile, OptionsOfSrunAreWordsOfAShell) {
  for (const char* option :
       {"--mpi=none", "--mem 4G", "--constraint='[a|b]'", "--container-image=$HOME/a", "--a=b\\\\ c"})
    EXPECT_TRUE(mistakes_in(fmt::format("schema = 1\n[slurm]\nsrun_extra = [\"{}\"]\n", option)).empty()) << option;
  for (const char* option : {"--a=b; reboot", "--a=b|c", "--a='b", "--a=$(id)", "--a=b # c", "-a `id`", "--a=b &"})
    EXPECT_EQ(mistakes_in(fmt::format("schema = 1\n[slurm]\nsrun_extra = [\"{}\"]\n", option)).size(), 1U) << option;
}

TEST(SiteFile, OptionsThatOnlyLookLikeAssaysAreTheSites) {
  for (const char* option : {"--mem=0", "--time-min=5", "--nice=5", "--no-kill", "--wckey=a", "--export=NONE"})
    EXPECT_TRUE(mistakes_in(fmt::format("schema = 1\n[slurm]\nsbatch_extra = [\"{}\"]\n", option)).empty()) << option;
}

TEST(SiteFile, AHealthCheckIsFoundBesideTheSiteFile) {
  const Site site = site_in("[slurm]\n[slurm.health]\nexperiment = \"checks/node.toml\"\ngbytes_per_s_min = 90\n");
  EXPECT_EQ(site.health.experiment, "/sites/checks/node.toml");
  EXPECT_EQ(site.health.gbytes_per_s_min, 90);
  EXPECT_EQ(site_in("[slurm]\n[slurm.health]\nexperiment = \"/c/node.toml\"\n").health.experiment, "/c/node.toml");
  EXPECT_EQ(mistakes_in("schema = 1\n[slurm]\n[slurm.health]\ntflop_per_s_min = 1.5\n").size(), 1U);
}

TEST(SiteFile, GpusMayHaveAType) {
  const Site site = site_in("[slurm]\ngpus_per_node = \"a100-sxm4.80gb:4\"\n");
  EXPECT_EQ(site.gpus_per_node, 4);
  EXPECT_EQ(site.gpu_type, "a100-sxm4.80gb");
  for (const char* value :
       {"\"8\"", "\"h100\"", "\":8\"", "\"h100:\"", "\"h100:-1\"", "\"h100:2000\"", "\"h 1:8\"", "1.5"})
    EXPECT_EQ(mistakes_in(fmt::format("schema = 1\n[slurm]\ngpus_per_node = {}\n", value)).size(), 1U) << value;
}

TEST(SiteFile, GpusAreAskedForInSeveralWays) {
  EXPECT_FALSE(site_in("[slurm]\nsbatch_extra = [\"--gres=lscratch:5\"]\n").asks_for_gpus());
  for (const char* text : {"gpus_per_node = 1", "sbatch_extra = [\"--gres=gpu:h100:8\"]", "sbatch_extra = [\"-G8\"]",
                           "sbatch_extra = [\"--gpus-per-task=1\"]"})
    EXPECT_TRUE(site_in(fmt::format("[slurm]\n{}\n", text)).asks_for_gpus()) << text;
}

class Sites : public ::testing::Test {
 protected:
  Sites() { ::setenv("XDG_CONFIG_HOME", home_.path().c_str(), 1); }
  ~Sites() override { ::unsetenv("XDG_CONFIG_HOME"); }
  void add(const std::string& name) { test::put_file(sites_folder() / (name + ".toml"), "schema = 1\n[slurm]\n"); }
  std::string refusal(const std::optional<std::string>& word) {
    try {
      return "found " + find_site(word).string();
    } catch (const SiteError& e) {
      return e.what();
    }
  }
  test::TemporaryFolder home_;
};

TEST_F(Sites, WithoutAWordTheOnlyOneOrTheDefault) {
  EXPECT_NE(refusal({}).find("there is no site file"), std::string::npos);
  add("b");
  EXPECT_EQ(find_site({}).filename(), "b.toml");
  add("a");
  EXPECT_NE(refusal({}).find("which site?"), std::string::npos);
  EXPECT_NE(refusal({}).find("a, b"), std::string::npos);
  add("default");
  EXPECT_EQ(find_site({}).filename(), "default.toml");
}

TEST_F(Sites, ByNameOrPath) {
  add("berlin");
  EXPECT_EQ(find_site("berlin"), sites_folder() / "berlin.toml");
  EXPECT_EQ(find_site("./x"), "./x");
  EXPECT_EQ(find_site("x.toml"), "x.toml");
  EXPECT_NE(refusal("berlni").find("did you mean 'berlin'"), std::string::npos) << refusal("berlni");
}

}  // namespace
}  // namespace assay::host::batch
