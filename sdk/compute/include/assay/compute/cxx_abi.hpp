// What both sides of a C++ interface must share beside the interface itself: the release of the SDK, how the compiler
// lays out classes and calls their functions, and how its library lays out strings and containers. As text, made of the
// macros that say so, for the ids of interfaces that cross from one library to another; and what two ids differ in, for
// people.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <version>  // the macros of the standard library

#define ASSAY_TEXT_OF_TOKEN(token) #token
#define ASSAY_TEXT_OF(macro) ASSAY_TEXT_OF_TOKEN(macro)

// The release that these headers are of: the version of the project, to which a test holds it.
#define ASSAY_SDK_RELEASE "1.1.0"

#if !defined(__GXX_ABI_VERSION) || __GXX_ABI_VERSION < 1002
#error "this compiler does not follow the Itanium C++ ABI: __GXX_ABI_VERSION is not defined, or below 1002"
#endif

#if defined(_LIBCPP_ABI_VERSION)
#define ASSAY_CXX_LIBRARY_ABI "library libc++; _LIBCPP_ABI_VERSION " ASSAY_TEXT_OF(_LIBCPP_ABI_VERSION)
#elif defined(_GLIBCXX_DEBUG) /* its containers hold more than those of others */
#define ASSAY_CXX_LIBRARY_ABI \
  "library libstdc++; _GLIBCXX_USE_CXX11_ABI " ASSAY_TEXT_OF(_GLIBCXX_USE_CXX11_ABI) "; _GLIBCXX_DEBUG 1"
#else
#define ASSAY_CXX_LIBRARY_ABI \
  "library libstdc++; _GLIBCXX_USE_CXX11_ABI " ASSAY_TEXT_OF(_GLIBCXX_USE_CXX11_ABI) "; _GLIBCXX_DEBUG 0"
#endif

// Parts of a name and a value, which interface_difference() separates. __GXX_ABI_VERSION is left out: g++ 12, g++ 13
// and clang have three, which differ in corners (the mangling of some templates) that none of our interfaces touches,
// and their code works together.
#define ASSAY_CXX_ABI "release " ASSAY_SDK_RELEASE "; calls itanium; " ASSAY_CXX_LIBRARY_ABI

namespace assay::compute {

// The value of a part of an interface's id: of "_GLIBCXX_DEBUG" in "...; _GLIBCXX_DEBUG 0" it is "0". Empty: none.
inline std::string_view part_of_id(std::string_view id, std::string_view name) {
  while (!id.empty()) {
    const std::string_view part = id.substr(0, id.find("; "));
    if (part.size() > name.size() && part.starts_with(name) && part[name.size()] == ' ')
      return part.substr(name.size() + 1);
    id.remove_prefix(part.size() == id.size() ? part.size() : part.size() + 2);
  }
  return {};
}

// Why a plugin that was built for one interface cannot use a library that offers another, with the remedy: the ids that
// both were compiled with. `library` is what people call it. Empty where the ids are the same.
inline std::string interface_difference(std::string_view built_for, std::string_view offered,
                                        const std::string& library) {
  if (built_for == offered) return "";
  std::string text;
  const auto say = [&](std::string_view of_plugin, std::string_view of_library, std::string_view remedy) {
    text.append(text.empty() ? "" : "; and ").append("the plugin was built with ").append(of_plugin);
    text.append(", ").append(library).append(" with ").append(of_library).append(": ").append(remedy);
  };
  const auto both = [&](std::string_view name) {
    return std::pair(std::string(part_of_id(built_for, name)), std::string(part_of_id(offered, name)));
  };
  const auto differ = [](const auto& values) {
    return values.first != values.second && !values.first.empty() && !values.second.empty();
  };
  if (const auto release = both("release"); differ(release))
    say("the SDK of release " + release.first, release.second, "build the plugin with the SDK that came with assay");
  if (const auto library_name = both("library"); differ(library_name))
    say("the standard library " + library_name.first, library_name.second,
        "compile the plugin with -stdlib=" + library_name.second);
  if (const auto strings = both("_GLIBCXX_USE_CXX11_ABI"); differ(strings))
    say("_GLIBCXX_USE_CXX11_ABI=" + strings.first + (strings.first == "0" ? " (the old layout of strings)" : ""),
        strings.second, "compile the plugin, and what it links, with -D_GLIBCXX_USE_CXX11_ABI=" + strings.second);
  if (const auto debug = both("_GLIBCXX_DEBUG"); differ(debug))
    say(debug.first == "1" ? "_GLIBCXX_DEBUG (the containers of libstdc++ that check themselves)"
                           : "the usual containers of libstdc++",
        debug.second == "1" ? "_GLIBCXX_DEBUG" : "the usual ones",
        debug.first == "1" ? "compile the plugin without -D_GLIBCXX_DEBUG" : "compile the plugin with it, too");
  if (const auto abi = both("_LIBCPP_ABI_VERSION"); differ(abi))
    say("version " + abi.first + " of libc++'s ABI", abi.second, "compile the plugin with the same libc++");
  if (text.empty())
    text = "the plugin was built for another interface than " + library +
           " offers: build both from one SDK release against one standard library";
  return text.append(" (the plugin's is '")
      .append(built_for)
      .append("', that of ")
      .append(library)
      .append(" '")
      .append(offered)
      .append("')");
}

}  // namespace assay::compute
