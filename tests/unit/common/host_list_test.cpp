#include "common/host_list.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temporary_folder.hpp"

namespace assay::host {
namespace {

TEST(HostList, AHostIsANameAndItsSlots) {
  for (const auto& [text, name, slots] : {std::tuple{"n1", "n1", 1},
                                          {"user@n2:4", "user@n2", 4},
                                          {"fe80::1%eth0", "fe80::1%eth0", 1},
                                          {"[::1]:2", "::1", 2},
                                          {"[::1]", "::1", 1}}) {
    const auto host = parse_host(text);
    ASSERT_TRUE(host) << text;
    EXPECT_EQ(host->name, name);
    EXPECT_EQ(host->slots, slots);
    EXPECT_EQ(parse_host(to_text(*host))->name, name);
  }
}

TEST(HostList, WhatSshOrAShellWouldReadOtherwiseIsNoHost) {
  for (const char* text : {"", "-oProxyCommand=x", "a b", "a;b", "$(x)", "a:0", "a:x", "a:4097", "@a", "a@", ":2",
                           "n[1-3]", "[n1]", "n[1", "[::1", "a[::1]", "[::1]a", "[[::1]]", "n*"})
    EXPECT_FALSE(parse_host(text)) << text;
}

TEST(HostList, APlusJoinsTheNodesOfACase) {
  EXPECT_EQ(names_of_nodes("n1+n2+n3"), (std::vector<std::string>{"n1", "n2", "n3"}));
  EXPECT_EQ(names_of_nodes("n1"), std::vector<std::string>{"n1"});
  EXPECT_TRUE(names_of_nodes("").empty());
}

TEST(HostList, AFileNamesItsLineAndKnowsOpenMpisForm) {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "hosts";
  const auto read = [&](const char* text) {
    std::ofstream(file) << text;
    return hosts_in_file(file);
  };
  EXPECT_EQ(slots_of(read("# all\nn1 slots=4\n\nn2:2 # two\nn3\n")), 7);
  for (const auto& [text, message] : {std::pair{"n1\nn2 slot=4\n", ":2: 'n2 slot=4'; expected"},
                                      {"n1:2 slots=4", ":1: "},
                                      {"n1 n2", ":1: "},
                                      {"n1\nn1:2", "names the host 'n1' twice"},
                                      {"\n", "names no host"}}) {
    try {
      read(text);
      ADD_FAILURE() << text;
    } catch (const UsageError& e) {
      EXPECT_NE(std::string(e.what()).find(message), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace assay::host
