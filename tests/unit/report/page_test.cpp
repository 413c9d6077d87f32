// The HTML around the data: nothing of a record may leave its place in it.
#include "report/page.hpp"

#include "report/page_parts.hpp"

#include <gtest/gtest.h>

namespace assay::host::report {
namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin);
  if (from == std::string::npos) return "";
  return text.substr(from + begin.size(), text.find(end, from + begin.size()) - from - begin.size());
}

const std::string bad = "</script><script>alert('x')</script><!-- & \" {{script}} {{style}} {{data}} \xE2\x80\xA8 end";

TEST(Page, ATextCannotEndTheDataNorTheTitle) {
  const Json data{{"title", bad}, {"cases", {bad}}};
  const std::string page = page_text(data), plain = page_text({{"title", "x"}, {"cases", {"x"}}});
  for (const char* part : {"<script", "</script", "<!--", "-->", "</style", "</title"})
    EXPECT_EQ(count_of(page, part), count_of(plain, part)) << part;
  const std::string read_back = between(page, "<script type=\"application/json\" id=\"data\">", "</script>");
  EXPECT_EQ(Json::parse(read_back), data);
  EXPECT_EQ(between(page, "<title>", "</title>"), html_escaped(bad));
}

TEST(Page, EachPartStandsInItOnce) {
  const std::string page = page_text({{"title", "x"}});
  EXPECT_TRUE(page.starts_with(page_mark));
  EXPECT_EQ(page.find("{{"), std::string::npos);
  EXPECT_EQ(count_of(page, std::string(plot_library())), 1u);
  EXPECT_EQ(count_of(page, std::string(page_style())), 1u);
  for (const std::string_view script : page_scripts()) EXPECT_EQ(count_of(page, std::string(script)), 1u);
  EXPECT_GT(plot_library().size(), 100'000u);
  EXPECT_NE(plot_library_licence().find("Copyright"), std::string_view::npos);
}

TEST(Page, ThePolicyLetsItsOwnPartsAloneRun) {
  const std::string page = page_text({{"title", "x"}});
  const std::string policy = between(page, "http-equiv=\"Content-Security-Policy\" content=\"", "\"");
  EXPECT_TRUE(policy.starts_with("default-src 'none'; script-src 'sha256-")) << policy;
  EXPECT_EQ(policy.find("unsafe"), std::string::npos);
  EXPECT_EQ(policy.find("http"), std::string::npos);
  // What a browser hashes is what stands between the tags.
  std::size_t at = 0;
  for (int script = 0; script < 2; ++script) {
    at = page.find("<script>", at);
    ASSERT_NE(at, std::string::npos);
    at += 8;
    EXPECT_NE(policy.find(source_hash(page.substr(at, page.find("</script>", at) - at))), std::string::npos);
  }
  EXPECT_NE(policy.find("style-src " + source_hash(between(page, "<style>", "</style>"))), std::string::npos);
}

TEST(Page, NoPartAsksForAnotherFile) {
  const std::string page = page_text({{"title", "x"}});
  for (const char* part : {" src=\"", "@import", "url(http", "<link", "<iframe", "fetch(", "XMLHttpRequest("}) {
    std::size_t own = count_of(page, part), of_library = count_of(std::string(plot_library()), part);
    EXPECT_EQ(own, of_library) << part;
  }
}

TEST(Page, ItsScriptsMakeNoHtmlOfATextAndRunNone) {
  for (const std::string_view script : page_scripts())
    for (const char* way : {"innerHTML", "outerHTML", "insertAdjacentHTML", "createContextualFragment", "DOMParser",
                            ".html(", "document.write", "eval(", "new Function", "srcdoc"})
      EXPECT_EQ(script.find(way), std::string_view::npos) << way << " in " << script.substr(0, 80);
}

TEST(Page, HashesAreThoseOfOthers) {
  // echo -n '' | openssl dgst -sha256 -binary | base64
  EXPECT_EQ(source_hash(""), "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='");
  EXPECT_EQ(source_hash("abc"), "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='");
}

}  // namespace
}  // namespace assay::host::report
