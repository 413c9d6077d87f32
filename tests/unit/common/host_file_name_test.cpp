#include "common/host_file_name.hpp"

#include <gtest/gtest.h>

#include <set>

namespace assay::host {
namespace {

TEST(HostFileName, UsualNamesStayAndOthersAreSpelt) {
  for (const auto& [host, name] : {std::pair{"n1", "n1"},
                                   {"gpu-07.cluster_a.example", "gpu-07.cluster_a.example"},
                                   {"user@host:22", "user+40host+3a22"},
                                   {"fe80::1%eth0", "fe80+3a+3a1+25eth0"},
                                   {"user@[::1]", "user+40+5b+3a+3a1+5d"},
                                   {"::1", "+3a+3a1"},
                                   {".", "+2e"},
                                   {"..", "+2e."},
                                   {".hidden", "+2ehidden"},
                                   {"a/../b", "a+2f..+2fb"},
                                   {"a+3a", "a+2b3a"},
                                   {"a b\n", "a+20b+0a"},
                                   {"k\xc3\xb6ln", "k+c3+b6ln"},
                                   {"", ""}}) {
    EXPECT_EQ(file_name_of_host(host), name);
    EXPECT_EQ(host_of_file_name(name), host);
  }
}

TEST(HostFileName, HostsThatDifferHaveNamesThatDiffer) {
  const std::string label(60, 'a'), longest = label + "." + label + "." + label + "." + label + ".de";
  std::set<std::string> names;
  std::size_t hosts = 0;
  for (const std::string& host : {std::string("u@n1"), std::string("u_n1"), std::string("u:n1"), std::string("u%n1"),
                                  std::string("u+40n1"), longest, longest + "x", "u@" + longest, std::string(300, ':'),
                                  std::string(301, ':'), file_name_of_host(longest)}) {
    const std::string name = file_name_of_host(host);
    EXPECT_TRUE(names.insert(name).second) << host;
    EXPECT_LE(name.size(), 150U);
    EXPECT_EQ(file_name_of_host(host), name);
    ++hosts;
  }
  EXPECT_EQ(names.size(), hosts);
  EXPECT_FALSE(host_of_file_name(file_name_of_host(longest))) << "its end is a hash";
  EXPECT_EQ(host_of_file_name(file_name_of_host(std::string(150, 'n'))), std::string(150, 'n'));
}

TEST(HostFileName, WhatIsNoSuchNameHasNoHost) {
  for (const char* name : {"a+", "a+4", "a+4x", "a+zz", "+-00", "a+41", "a:b", ".a", "a+4A", "a+40+"})
    EXPECT_FALSE(host_of_file_name(name)) << name;
}

}  // namespace
}  // namespace assay::host
