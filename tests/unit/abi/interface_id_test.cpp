// The ids of the interfaces that are C++: made of the compiler's macros, and what two of them differ in, in words.
#include <gtest/gtest.h>
#include <assay/comm/communicator.hpp>
#include <assay/compute/backend.hpp>

#include <string>

namespace assay {
namespace {

using compute::interface_difference;
using compute::part_of_id;

constexpr const char* usual =
    "assay.x/1 revision 5; release 1.0.0; calls itanium; library libstdc++; _GLIBCXX_USE_CXX11_ABI 1; _GLIBCXX_DEBUG 0";

TEST(InterfaceId, IsMadeOfTheCompilersMacros) {
  for (const std::string_view id : {compute::interface_id, comm::interface_id}) {
    EXPECT_EQ(part_of_id(id, "release"), PROJECT_VERSION) << "ASSAY_SDK_RELEASE follows the project's version";
    EXPECT_EQ(part_of_id(id, "calls"), "itanium");
#ifdef _LIBCPP_VERSION
    EXPECT_EQ(part_of_id(id, "library"), "libc++");
#else
    EXPECT_EQ(part_of_id(id, "library"), "libstdc++");
    EXPECT_EQ(part_of_id(id, "_GLIBCXX_USE_CXX11_ABI"), std::to_string(_GLIBCXX_USE_CXX11_ABI));
    EXPECT_EQ(part_of_id(id, "_GLIBCXX_DEBUG"), "0");
#endif
  }
  EXPECT_EQ(part_of_id(compute::interface_id, "assay.compute/1").substr(0, 9), "revision ");
  EXPECT_EQ(part_of_id(comm::interface_id, "assay.comm.backend/1").substr(0, 9), "revision ");
  EXPECT_EQ(part_of_id(usual, "rel"), "");
  EXPECT_EQ(part_of_id(usual, "nothing"), "");
}

// The refusal of a plugin with that id, up to the ids themselves.
std::string reported(const std::string& plugin, const std::string& library = usual) {
  const std::string text = interface_difference(plugin, library, "the backend");
  if (!text.empty()) {
    EXPECT_NE(text.find("(the plugin's is '" + plugin + "', that of the backend '" + library + "')"),
              std::string::npos);
  }
  return text.substr(0, text.find(" (the plugin's is"));
}

std::string with(const std::string& part, const std::string& instead) {
  std::string id = usual;
  return id.replace(id.find(part), part.size(), instead);
}

TEST(InterfaceId, WhatDiffersIsToldWithItsRemedy) {
  EXPECT_EQ(reported(usual), "");
  EXPECT_EQ(reported(with("release 1.0.0", "release 0.9.0")),
            "the plugin was built with the SDK of release 0.9.0, the backend with 1.0.0: build the plugin with the SDK "
            "that came with assay");
  EXPECT_EQ(reported(with("_GLIBCXX_USE_CXX11_ABI 1", "_GLIBCXX_USE_CXX11_ABI 0")),
            "the plugin was built with _GLIBCXX_USE_CXX11_ABI=0 (the old layout of strings), the backend with 1: "
            "compile the plugin, and what it links, with -D_GLIBCXX_USE_CXX11_ABI=1");
  EXPECT_EQ(reported(with("_GLIBCXX_DEBUG 0", "_GLIBCXX_DEBUG 1")),
            "the plugin was built with _GLIBCXX_DEBUG (the containers of libstdc++ that check themselves), the backend "
            "with the usual ones: compile the plugin without -D_GLIBCXX_DEBUG");
  EXPECT_EQ(reported(usual, with("_GLIBCXX_DEBUG 0", "_GLIBCXX_DEBUG 1")),
            "the plugin was built with the usual containers of libstdc++, the backend with _GLIBCXX_DEBUG: compile the "
            "plugin with it, too");
  EXPECT_EQ(reported(with("library libstdc++; _GLIBCXX_USE_CXX11_ABI 1; _GLIBCXX_DEBUG 0",
                          "library libc++; _LIBCPP_ABI_VERSION 1")),
            "the plugin was built with the standard library libc++, the backend with libstdc++: compile the plugin "
            "with -stdlib=libstdc++");
  EXPECT_EQ(reported(with("revision 5", "revision 4")),
            "the plugin was built for another interface than the backend offers: build both from one SDK release "
            "against one standard library");
}

TEST(InterfaceId, AllThatDiffersIsTold) {
  const std::string text =
      reported(with("_GLIBCXX_USE_CXX11_ABI 1; _GLIBCXX_DEBUG 0", "_GLIBCXX_USE_CXX11_ABI 0; _GLIBCXX_DEBUG 1"));
  EXPECT_NE(text.find("-D_GLIBCXX_USE_CXX11_ABI=1; and the plugin was built with _GLIBCXX_DEBUG"), std::string::npos)
      << text;
}

}  // namespace
}  // namespace assay
