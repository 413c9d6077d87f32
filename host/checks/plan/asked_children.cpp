#include "plan/asked_children.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

#include "common/child.hpp"
#include "plugin/plugin_library.hpp"

namespace assay::host::plan {
namespace {

constexpr std::size_t questions_of_child = 10'000, questions_worth_a_child = 8;

// What one child was asked, and what it answered.
struct Share {
  std::size_t next, end;
  std::vector<nlohmann::json> answers;
  std::size_t overdue = 0;
};

// Texts of plugins need not be UTF-8.
std::string line_of(const nlohmann::json& answer) {
  return answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// Takes the whole lines of a child. The question that it did not live through is answered by `answer_of_death`.
void take_answers(const ChildEnd& end, std::size_t asked, Share& share, const Patience& patience,
                  const AnswerOfDeath& answer_of_death) {
  std::size_t at = 0;
  while (share.next < asked) {
    const std::size_t line_end = end.text.find('\n', at);
    if (line_end == std::string::npos) break;
    nlohmann::json answer = nlohmann::json::parse(end.text.substr(at, line_end - at), nullptr, false);
    at = line_end + 1;
    if (answer.is_object() && answer.contains("no")) throw plugin::PluginError(answer["no"].get<std::string>());
    if (answer.is_discarded()) break;
    share.answers.push_back(std::move(answer));
    ++share.next;
  }
  if (share.next == asked) return;
  if (end.is_overdue) ++share.overdue;
  share.answers.push_back(answer_of_death(
      end.is_overdue ? ChildDeath{fmt::format("more than {} s without an end", patience.of_question.count() / 1000)}
                     : ChildDeath{end.how(), end.signal()}));
  ++share.next;
  if (share.overdue < patience.most_overdue) return;
  for (; share.next < share.end; ++share.next)
    share.answers.push_back(
        answer_of_death({fmt::format("{} others that took too long, after which it was not asked", share.overdue)}));
}

}  // namespace

std::vector<nlohmann::json> ask_children(std::size_t count, const std::function<Answer()>& open_in_child,
                                         const AnswerOfDeath& answer_of_death, const Patience& patience) {
  const std::size_t parts =
      std::clamp<std::size_t>(count / questions_worth_a_child, 1, std::max(1U, std::thread::hardware_concurrency()));
  std::vector<Share> shares;
  for (std::size_t p = 0; p < parts; ++p) shares.push_back({count * p / parts, count * (p + 1) / parts, {}});
  for (;;) {
    std::vector<std::function<void(const Send&)>> children;
    std::vector<std::pair<Share*, std::size_t>> asked;
    for (Share& share : shares) {
      if (share.next == share.end) continue;
      const std::size_t first = share.next, last = std::min(share.end, first + questions_of_child);
      asked.emplace_back(&share, last);
      children.emplace_back([&open_in_child, first, last](const Send& send) {
        Answer answer;
        try {
          answer = open_in_child();
        } catch (const std::exception& e) {
          send(line_of(nlohmann::json{{"no", e.what()}}));
          return;
        }
        for (std::size_t i = first; i < last; ++i) send(line_of(answer(i)));
      });
    }
    if (children.empty()) break;
    ChildOptions options;
    options.deadline = patience.of_question;
    options.deadline_of_each_text = true;
    const std::vector<ChildEnd> ends = run_in_children(children, options);
    for (std::size_t i = 0; i < ends.size(); ++i)
      take_answers(ends[i], asked[i].second, *asked[i].first, patience, answer_of_death);
  }
  std::vector<nlohmann::json> answers;
  for (Share& share : shares)
    answers.insert(answers.end(), std::make_move_iterator(share.answers.begin()),
                   std::make_move_iterator(share.answers.end()));
  return answers;
}

}  // namespace assay::host::plan
