#include "mutation.hpp"

#include <algorithm>
#include <cctype>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

namespace assay::mutants {
namespace {

namespace fs = std::filesystem;

const std::map<std::string, Form> forms{
    {"becomes", Form::expression}, {"does", Form::statement}, {"then", Form::appended}, {"rewritten", Form::rewritten}};

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + file.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// Where `wanted` ends if `text` has it at `begin`, else npos. Any blanks stand for any others: sources are formatted.
std::size_t match(std::string_view text, std::size_t begin, std::string_view wanted) {
  std::size_t at = begin;
  for (std::size_t i = 0; i < wanted.size();) {
    if (is_blank(wanted[i])) {
      if (at == text.size() || !is_blank(text[at])) return text.npos;
      while (i < wanted.size() && is_blank(wanted[i])) ++i;
      while (at < text.size() && is_blank(text[at])) ++at;
    } else if (at < text.size() && text[at] == wanted[i]) {
      ++at, ++i;
    } else {
      return text.npos;
    }
  }
  return at;
}

struct Found {
  std::size_t begin = std::string::npos, end = 0;
};
Found find(std::string_view text, std::size_t from, std::string_view wanted) {
  for (std::size_t begin = from; begin < text.size(); ++begin)
    if (const std::size_t end = match(text, begin, wanted); end != text.npos) return {begin, end};
  return {};
}

// ---- tables --------------------------------------------------------------------------------------------------------

class Reader {
 public:
  explicit Reader(Tables& tables) : tables_(tables) {}

  void read(const fs::path& file) {
    for (const MutantRow& m : tables_.mutants) names_.insert(m.name);
    std::istringstream lines(text_of(file));
    class_ = file.stem().string();
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
      place_ = {file.filename().string() + ":" + std::to_string(number)};
      if (line.empty() || line[0] == '#') continue;
      const std::size_t blank = line.find(' ');
      if (blank == line.npos) place_.fail("'" + line + "' has no value");
      take(line.substr(0, blank), line.substr(blank + 1));
    }
    end_edit();
  }

 private:
  void take(const std::string& key, const std::string& value) {
    if (key == "group") return take_group(value);
    if (key == "mutant") return begin_mutant(value);
    if (tables_.mutants.empty()) place_.fail("'" + key + "' comes before the first mutant");
    if (key == "tried") {
      tables_.mutants.back().tried = with_groups(value);
    } else if (key == "in") {
      end_edit();
      edit_ = {.place = place_, .mutant = tables_.mutants.back().name, .file = value};
    } else if (edit_.file.empty()) {
      place_.fail("'" + key + "' comes before the file, 'in'");
    } else if (key == "after") {
      edit_.after.push_back(value);
    } else if (key == "text") {
      edit_.text += (edit_.text.empty() ? "" : " ") + value;
    } else if (key == "when") {
      edit_.when = value;
    } else if (const auto form = forms.find(key); form != forms.end()) {
      edit_.form = form->second;
      edit_.wrong += (edit_.wrong.empty() ? "" : " ") + value;
    } else {
      place_.fail("'" + key + "' is no key");
    }
  }

  // NAME CASE...
  void take_group(const std::string& value) {
    const std::size_t blank = value.find(' ');
    if (blank == value.npos) place_.fail("a group has a name and cases");
    groups_[value.substr(0, blank)] = with_groups(value.substr(blank + 1));
  }

  std::string with_groups(const std::string& value) const {
    std::istringstream words(value);
    std::string all;
    for (std::string word; words >> word;) {
      const auto group = groups_.find(word);
      if (group == groups_.end() && word.find('/') == word.npos)
        place_.fail("'" + word + "' is neither case nor group");
      all += (all.empty() ? "" : " ") + (group == groups_.end() ? word : group->second);
    }
    return all;
  }

  // NAME: WHAT
  void begin_mutant(const std::string& value) {
    end_edit();
    const std::size_t colon = value.find(": ");
    if (colon == value.npos) place_.fail("a mutant is 'name: what is broken'");
    const std::string name = class_ + "." + value.substr(0, colon);
    if (!names_.insert(name).second) place_.fail("there are two mutants '" + name + "'");
    tables_.mutants.push_back({place_, name, value.substr(colon + 2), class_, ""});
  }

  void end_edit() {
    if (!edit_.file.empty()) {
      if (edit_.text.empty() || edit_.wrong.empty()) edit_.place.fail("an edit has a text and what it becomes");
      tables_.edits.push_back(edit_);
    }
    edit_ = {};
  }

  Tables& tables_;
  std::string class_;
  Place place_;
  Edit edit_;
  std::map<std::string, std::string> groups_;
  std::set<std::string> names_;
};

// ---- a copy --------------------------------------------------------------------------------------------------------

// The text stands once in its file, or is the first one behind the anchors, of which the first one stands once.
void locate(Edit& edit, std::string_view source) {
  const auto only = [&](const std::string& wanted) {
    const Found found = find(source, 0, wanted);
    if (found.begin == std::string::npos) edit.place.fail("'" + wanted + "' is no longer in " + edit.file);
    if (find(source, found.begin + 1, wanted).begin != std::string::npos)
      edit.place.fail("'" + wanted + "' stands more than once in " + edit.file + "; say after what it comes");
    return found;
  };
  Found found = only(edit.after.empty() ? edit.text : edit.after[0]);
  const auto go_on_to = [&](const std::string& wanted) {
    found = find(source, found.end, wanted);
    if (found.begin == std::string::npos)
      edit.place.fail("'" + wanted + "' no longer comes after '" + edit.after[0] + "' in " + edit.file);
  };
  for (std::size_t i = 1; i < edit.after.size(); ++i) go_on_to(edit.after[i]);
  if (!edit.after.empty()) go_on_to(edit.text);
  edit.begin = found.begin, edit.end = found.end;
}

std::string condition(const Edit& edit) {
  const std::string lives = "::assay_mutant::on(\"" + edit.mutant + "\")";
  return edit.when.empty() ? lives : "((" + edit.when + ") && " + lives + ")";  // on() counts, and is asked last
}

// source[begin, end) with `edits`, which lie within it: those with the widest text first, the inner ones in what they
// leave as it is.
std::string with_edits(std::string_view source, std::size_t begin, std::size_t end, std::span<const Edit> edits) {
  std::string text;
  while (!edits.empty()) {
    const Edit& outer = edits.front();
    std::size_t count = 1;
    for (; count < edits.size() && edits[count].begin < outer.end; ++count)
      if (edits[count].end > outer.end) edits[count].place.fail("its text overlaps with that of " + outer.place.row);
    const std::string right = with_edits(source, outer.begin, outer.end, edits.subspan(1, count - 1));
    text += source.substr(begin, outer.begin - begin);
    switch (outer.form) {
      case Form::expression: text += "(" + condition(outer) + " ? (" + outer.wrong + ") : (" + right + "))"; break;
      case Form::statement:
        text += "{ if (" + condition(outer) + ") { " + outer.wrong + " } else { " + right + " } }";
        break;
      case Form::appended: text += right + " if (" + condition(outer) + ") { " + outer.wrong + " }"; break;
      case Form::rewritten: text += outer.wrong; break;
    }
    begin = outer.end;
    edits = edits.subspan(count);
  }
  return text + std::string(source.substr(begin, end - begin));
}

// ---- the list ------------------------------------------------------------------------------------------------------

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) result += (c == '"' || c == '\\' ? std::string("\\") : "") + c;
  return result + "\"";
}

}  // namespace

void read_table(Tables& tables, const fs::path& file) { Reader(tables).read(file); }

void require_complete(const Tables& tables, std::span<const std::string> files) {
  std::set<std::string> edited;
  for (const Edit& edit : tables.edits) {
    edited.insert(edit.mutant);
    if (std::find(files.begin(), files.end(), edit.file) == files.end())
      edit.place.fail(edit.file + " is not among the sources that are copied");
    // What verifies is not to be broken itself.
    if (edit.file.find("verif") != edit.file.npos) edit.place.fail(edit.file + " is a part of the verification");
  }
  for (const MutantRow& mutant : tables.mutants) {
    if (mutant.tried.empty()) mutant.place.fail(mutant.name + " is tried in no case");
    if (!edited.contains(mutant.name)) mutant.place.fail(mutant.name + " changes no source");
  }
}

std::string mutated(const std::string& source, const std::string& file, const Tables& tables, std::string& mistakes) {
  std::vector<Edit> edits;
  for (const Edit& edit : tables.edits)
    if (edit.file == file) try {
        edits.push_back(edit);
        locate(edits.back(), source);
      } catch (const std::exception& e) {
        edits.pop_back();
        mistakes += std::string(e.what()) + "\n";
      }
  std::stable_sort(edits.begin(), edits.end(),
                   [](const Edit& a, const Edit& b) { return a.begin != b.begin ? a.begin < b.begin : a.end > b.end; });
  return with_edits(source, 0, source.size(), edits);
}

std::string list_of(const Tables& tables) {
  std::string text =
      "// Made from the tables of source mutants.\n#pragma once\n#include <array>\n#include <string_view>\n\n"
      "namespace assay::mutants {\n\nstruct SourceMutant {\n  std::string_view name, what, mutant_class, tried;\n};\n\n"
      "inline constexpr auto source_mutants = std::to_array<SourceMutant>({\n";
  for (const MutantRow& m : tables.mutants)
    text += "    {" + quoted(m.name) + ", " + quoted(m.what) + ", " + quoted(m.mutant_class) + ", " + quoted(m.tried) +
            "},\n";
  return text + "});\n\n}  // namespace assay::mutants\n";
}

}  // namespace assay::mutants
