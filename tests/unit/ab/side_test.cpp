#include "ab/side.hpp"

#include <gtest/gtest.h>

namespace assay::host::ab {
namespace {

using Command = std::vector<std::string>;

SideSpec side_b() {
  SideSpec side;
  side.label = "B", side.experiment = "x.toml", side.executable = "new/assay", side.folder = "out/b";
  side.settings = {"work=2"}, side.plugin_folders = {"new/plugins"}, side.environment = {{"FAST", "1"}};
  return side;
}

const CommonPart common{{"work=1"}, {"size=small"}, {"plugins"}};

// What is of the side alone stands last where the last one counts, and first where the first one does.
TEST(Side, RunsItsNextRepeat) {
  const Command shared{"new/assay", "run",    "x.toml", "--plugin-path", "new/plugins", "--plugin-path", "plugins",
                       "--set",     "work=1", "--set",  "work=2",        "--filter",    "size=small"};
  Command first = shared, third = shared;
  first.insert(first.end(), {"--set", "run.repeat=1", "--output", "out/b/", "--quiet"});
  third.insert(third.end(), {"--set", "run.repeat=3", "--output", "out/b/", "--quiet", "--resume"});
  EXPECT_EQ(turn_command(side_b(), common, 1), first);
  EXPECT_EQ(turn_command(side_b(), common, 3), third);
  Command check = shared;
  check.insert(check.end(), {"--set", "run.repeat=2", "--set", "run.allow=[\"oom\"]", "--dry-run"});
  EXPECT_EQ(check_command(side_b(), common), check);
}

TEST(Side, IsToldByWhatIsItsOwn) {
  EXPECT_EQ(description_of(side_b()), "work=2, plugins of new/plugins, FAST=1, run by new/assay");
  SideSpec plain;
  plain.executable = this_program;
  EXPECT_EQ(description_of(plain), "as the experiment has it");
  EXPECT_EQ(description_of(side_b(), true), "x.toml, work=2, plugins of new/plugins, FAST=1, run by new/assay");
}

TEST(Side, EqualsOneWithAnotherFolder) {
  SideSpec other = side_b();
  other.label = "A", other.folder = "out/a";
  EXPECT_TRUE(side_b().equals(other));
  for (const auto change : {0, 1, 2, 3, 4}) {
    SideSpec changed = side_b();
    if (change == 0) changed.settings.clear();
    if (change == 1) changed.plugin_folders.clear();
    if (change == 2) changed.environment.clear();
    if (change == 3) changed.executable = this_program;
    if (change == 4) changed.experiment = "y.toml";
    EXPECT_FALSE(side_b().equals(changed)) << change;
  }
}

}  // namespace
}  // namespace assay::host::ab
