// `assay report` on real runs: where the page goes, what it holds, what is refused.
#include <sys/stat.h>

#include <fstream>

#include "e2e/support/sandbox.hpp"
#include "support/files.hpp"

namespace assay::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Report : public Sandbox {
 protected:
  Report() : Sandbox(PLUGINS) {}
  void make_run(const std::string& name = "x") {
    run_experiment({.plugin = "measured_work",
                    .name = name,
                    .params = "work = 0.01",
                    .measure = "warmup = 0\nsteps = 5",
                    .sweep = "elements = [16, 32]"});
  }
  // What the page holds for its script.
  static json data_of(const fs::path& page) {
    const std::string text = text_of(page), begin = "<script type=\"application/json\" id=\"data\">";
    const std::size_t from = text.find(begin);
    if (from == std::string::npos) throw std::runtime_error(page.string() + " is no report");
    return json::parse(text.substr(from + begin.size(), text.find("</script>", from) - from - begin.size()));
  }
  void refused(const std::vector<std::string>& arguments, const std::string& why) {
    const RunResult result = run(arguments);
    EXPECT_EQ(result.exit.code, 2) << result.output;
    EXPECT_PRED2(contains, result.output, why);
  }
  // A program of this name that is found first.
  void put_program(const std::string& name, const std::string& script) {
    put_file(folder() / "bin" / name, "#!/bin/sh\n" + script);
    fs::permissions(folder() / "bin" / name, fs::perms::owner_all);
    set_variable("PATH", (folder() / "bin").string() + ":/usr/bin:/bin");
  }
};

TEST_F(Report, OfARunLiesBesideItsTables) {
  make_run();
  EXPECT_PRED2(contains, output(), "HTML report: /") << "nothing on the PATH is this program";
  EXPECT_PRED2(contains, output(), "/assay report out/x/");
  const RunResult made = run({"report", run_folder().string()});
  EXPECT_EQ(made.exit.code, 0) << made.output;
  const fs::path page = run_folder() / "report.html";
  EXPECT_EQ(made.output, "written: " + page.string() + "\n");
  EXPECT_LT(fs::file_size(page), 2'000'000u);
  const json data = data_of(page);
  EXPECT_EQ(data["title"], "x");
  ASSERT_EQ(data["cases"].size(), 2u);
  EXPECT_EQ(data["cases"][0]["steps"]["ms"].size(), 5u);
  EXPECT_EQ(data["cases"][0]["status"], "ok");
  // Made again, it replaces itself.
  EXPECT_EQ(run({"report", run_folder().string()}).exit.code, 0);
}

// A pipe would be waited for, and the place of a device or of a link's file taken.
TEST_F(Report, WritesFilesAlone) {
  make_run();
  const std::string run_path = run_folder().string();
  const fs::path pipe = folder() / "pipe", link = folder() / "link.html";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  fs::create_symlink(folder() / "nothing.html", link);
  for (const char* force : {"", "--force"}) {
    std::vector<std::string> more;
    if (*force) more.emplace_back(force);
    const auto refused_there = [&](const std::string& file, const std::string& why) {
      std::vector<std::string> arguments{"report", run_path, "-o", file};
      arguments.insert(arguments.end(), more.begin(), more.end());
      refused(arguments, why);
    };
    refused_there(pipe.string(), "pipe is no file but a pipe or a device");
    refused_there("/dev/null", "/dev/null is no file but a pipe or a device");
    refused_there((folder() / "new").string() + "/", "new/ is a folder; give the name of a file");
  }
  refused({"report", run_path, "-o", link.string()}, "link.html is a link");
  EXPECT_FALSE(fs::exists(folder() / "new"));
  refused({"report", run_path, "-o", "x.html", "--plot", "steps"}, "-o ends in .html, and --plot asks for one plot");
  refused({"report", run_path, "-o", "x.pdf"},
          "-o ends in .pdf, and a report writes none: expected a file that ends in");
  refused({"report", run_path, "-o", "x.svg", "--format", "html"}, "-o ends in .svg, and --format is html");
  put_file(folder() / "torn" / "cases.jsonl", "{\"schema\": 1, \"index\"");
  refused({"report", (folder() / "torn").string()}, "the last line is torn after 21 bytes");
}

TEST_F(Report, SeveralRunsAreCompared) {
  make_run("first");
  make_run("second");
  const RunResult made = run({"report", run_folder("first").string(), run_folder("second").string()});
  EXPECT_EQ(made.exit.code, 0) << made.output;
  EXPECT_EQ(made.output, "written: report.html\n");
  const json data = data_of(folder() / "report.html");
  ASSERT_EQ(data["comparisons"].size(), 1u);
  EXPECT_EQ(data["comparisons"][0]["metrics"][0]["cases"].size(), 2u);
  EXPECT_NE(data["comparisons"][0]["metrics"][0]["cases"][0]["sides"][1]["verdict"], "");
  EXPECT_EQ(data["cases"].size(), 4u);
}

TEST_F(Report, TheHistoryIsOfTheGivenRunsCases) {
  set_variable("ASSAY_CACHE_DIR", "");
  for (int i = 0; i < 3; ++i) make_run();
  make_run("other");
  const RunResult made = run({"report", run_folder("x").string(), "--history", "--results", "out"});
  EXPECT_EQ(made.exit.code, 0) << made.output;
  const json history = data_of(run_folder("x") / "report.html")["history"];
  EXPECT_EQ(history["metric"], "step");
  ASSERT_EQ(history["series"].size(), 2u) << history;
  for (const json& series : history["series"]) EXPECT_EQ(series["points"].size(), 3u);
  EXPECT_EQ(history["series"][1]["case_ids"], json({1}));
  EXPECT_FALSE(data_of(run_folder("x") / "report.html").contains("comparison"));

  const std::string path = run_folder("x").string();
  refused({"report", path, "--metric", "step"}, "--metric goes with --history");
  refused({"report", path, "--history", "--results", "out", "--metric", "stepp"}, "did you mean 'step'?");
  refused({"report", path, "--history", "--results", "out", "--since", "long"}, "--since is 'long'; expected a day");
  refused({"report", path, "--history", "--results", "out/other"}, "no run that is given lies below out/other");
  refused({"report", path, "--history", "--results", "nowhere"}, "nowhere is no folder");
}

TEST_F(Report, ATextOfARecordStaysText) {
  make_run();
  const std::string bad = "</script><script>document.title='taken'</script><!--";
  json record = cases().front();
  record["notes"] = {bad};
  record["status"] = "crashed";
  record["reason"] = bad;
  record["log_tail"] = {bad, "\xFF\xFE is no UTF-8"};
  record["params"]["name"] = bad;
  put_file(folder() / "bad/cases.jsonl", record.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
  EXPECT_EQ(run({"report", "bad"}).exit.code, 0);
  EXPECT_EQ(text_of(folder() / "bad/report.html").find("</script><script>document"), std::string::npos);
  EXPECT_EQ(data_of(folder() / "bad/report.html")["cases"][0]["failure"]["log"][0], bad);
}

TEST_F(Report, MistakesAreNamed) {
  refused({"report"}, "no run is given");
  refused({"report", "nowhere"}, "nowhere is not there; expected a run folder");
  make_run();
  const std::string folder_of_run = run_folder().string();
  put_file(folder() / "empty/cases.jsonl", "");
  refused({"report", "empty"}, "empty: no case has finished there, so there is nothing to report");
  refused({"report", folder_of_run, "-o", "out"}, "out is a folder; give the name of a file");
  refused({"report", folder_of_run, "-o", folder_of_run + "/cases.jsonl"}, "-o ends in .jsonl");
  put_file(folder() / "mine.html", "words");
  refused({"report", folder_of_run, "-o", (folder() / "mine.html").string()}, "exists and is not a report");
  refused({"report", folder_of_run, "-o", folder_of_run + "/table.md/report.html"}, "cannot be written: ");
  refused({"report", folder_of_run, "-o", ""}, "-o is \"\"; expected the name of a file");
  refused({"report", folder_of_run, "--format", "pdf"}, "--format is 'pdf'; expected html, svg or png");
  refused({"report", folder_of_run, "--format", "svg"}, "--format svg writes one plot: expected --plot with one of");
  refused({"report", folder_of_run, "--plot", "stepps"}, "did you mean 'steps'?");
  refused({"report", folder_of_run, "--plot", "steps", "--format", "html"}, "the page has all plots");
  refused({"report", folder_of_run, "--plot", "steps", "--width", "10"}, "expected pixels from 300 to 4000");
  refused({"report", folder_of_run, "--baseline", "16"}, "--baseline is a value of --by and needs it");
  refused({"report", folder_of_run, "--by", "nothing"}, "nothing");
  refused({"report", folder_of_run, "--dark"}, "--dark needs --plot");
  refused({"report", folder_of_run, "--plot", "steps", "--open"}, "--open goes with --format html alone");
  EXPECT_FALSE(fs::exists(folder() / "empty/report.html"));
  EXPECT_FALSE(cases().empty());
}

TEST_F(Report, APlotNeedsABrowserAndSaysSo) {
  make_run();
  fs::create_directories(folder() / "bin");
  set_variable("PATH", (folder() / "bin").string());
  const RunResult none = run({"report", run_folder().string(), "--plot", "steps"});
  EXPECT_EQ(none.exit.code, 1);
  EXPECT_PRED2(contains, none.output, "install the package chromium");
  EXPECT_FALSE(fs::exists(run_folder() / "steps.svg"));
}

// What a browser leaves in the page comes out of it; one that fails is reported, and nothing stays behind.
TEST_F(Report, APlotIsWhatTheBrowserHasDrawn) {
  make_run();
  put_program("chromium", "echo '<html><pre id=\"picture\">PHN2Zy8+</pre></html>'\n");
  EXPECT_EQ(run({"report", run_folder().string(), "--plot", "steps", "-o", "a #1?.svg"}).exit.code, 0);
  EXPECT_EQ(text_of(folder() / "a #1?.svg"), "<!-- made by assay report -->\n<svg/>");
  put_program("chromium", "echo '<html><pre id=\"refusal\">bm90aGluZw==</pre></html>'\n");
  const RunResult nothing = run({"report", run_folder().string(), "--plot", "ranks", "-o", "b.svg"});
  EXPECT_EQ(nothing.exit.code, 1);
  EXPECT_PRED2(contains, nothing.output, "assay: nothing\n");
  put_program("chromium", "echo no display >&2\nexit 3\n");
  const RunResult failed = run({"report", run_folder().string(), "--plot", "steps", "-o", "b.svg"});
  EXPECT_EQ(failed.exit.code, 1);
  EXPECT_PRED2(contains, failed.output, "has not drawn the plot (exit code 3); the last it said: no display");
  for (const auto& entry : fs::directory_iterator(folder()))
    EXPECT_EQ(entry.path().string().find(".part-"), std::string::npos) << entry.path();
  EXPECT_FALSE(fs::exists(folder() / "b.svg"));
}

TEST_F(Report, OpensWhatItHasWritten) {
  make_run();
  put_program("xdg-open", "echo \"$1\" > opened.txt\n");
  EXPECT_EQ(run({"report", run_folder().string(), "-o", "page.html", "--open"}).exit.code, 0);
  EXPECT_EQ(text_of(folder() / "opened.txt"), (fs::canonical(folder()) / "page.html").string() + "\n");
  put_program("xdg-open", "exit 3\n");
  const RunResult result = run({"report", run_folder().string(), "-o", "page.html", "--open"});
  EXPECT_EQ(result.exit.code, 0);
  EXPECT_PRED2(contains, result.output, "--open: xdg-open has shown no browser; open ");
}

}  // namespace
}  // namespace assay::test
