#include <assay/train/pipeline_schedule.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <assay/plugin.hpp>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>

namespace assay::train {
namespace {

using Kind = PipelineAction::Kind;

std::vector<PipelineSchedule> schedules_of(const PipelineShape& shape) {
  std::vector<PipelineSchedule> ranks;
  for (std::int64_t rank = 0; rank < shape.ranks; ++rank) ranks.emplace_back(shape, rank);
  return ranks;
}

std::string works_of(const PipelineSchedule& schedule, bool with_chunks = false) {
  std::string text;
  for (const PipelineAction& a : schedule.actions()) {
    if (a.kind != Kind::forward && a.kind != Kind::backward) continue;
    text +=
        (text.empty() ? "" : " ") + std::string(a.kind == Kind::forward ? "F" : "B") + std::to_string(a.micro_batch);
    if (with_chunks) text += "." + std::to_string(a.chunk);
  }
  return text;
}

std::vector<PipelineShape> shapes() {
  std::vector<PipelineShape> all;
  for (std::int64_t ranks = 1; ranks <= 8; ++ranks)
    for (std::int64_t virtual_stages = 1; virtual_stages <= 4; ++virtual_stages)
      for (std::int64_t micro_batches = 1; micro_batches <= 24; ++micro_batches)
        for (const Receives receives : {Receives::beside_work, Receives::between_works})
          if (virtual_stages == 1 || (ranks > 1 && micro_batches % ranks == 0))
            all.push_back({ranks, virtual_stages, micro_batches, receives});
  return all;
}

std::string text_of(const PipelineShape& s) {
  return std::to_string(s.ranks) + " ranks, " + std::to_string(s.virtual_stages) + " virtual stages, " +
         std::to_string(s.micro_batches) + " micro-batches, receives " +
         (s.receives == Receives::beside_work ? "beside work" : "between works");
}

TEST(PipelineSchedule, OneForwardOneBackward) {
  const auto ranks = schedules_of({3, 1, 4});
  EXPECT_EQ(works_of(ranks[0]), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(works_of(ranks[1]), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(works_of(ranks[2]), "F0 B0 F1 B1 F2 B2 F3 B3");
}

// The order of Megatron-LM's forward_backward_pipelining_with_interleaving.
TEST(PipelineSchedule, Interleaved) {
  const auto ranks = schedules_of({2, 2, 4});
  EXPECT_EQ(works_of(ranks[0], true),
            "F0.0 F1.0 F0.1 F1.1 F2.0 B0.1 F3.0 B1.1 F2.1 B0.0 F3.1 B1.0 B2.1 B3.1 B2.0 B3.0");
  EXPECT_EQ(works_of(ranks[1], true),
            "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 F2.0 B0.0 F3.0 B1.0 F2.1 B2.1 F3.1 B3.1 B2.0 B3.0");
}

TEST(PipelineSchedule, ReceivesBeforeTheWorkBesideWhichAMessageComes) {
  const auto last_of = [](const PipelineShape& shape) {
    std::string text;
    const PipelineSchedule last(shape, 1);
    for (const PipelineAction& a : last.actions())
      text += std::string(text.empty() ? "" : " ") + "FBSR"[static_cast<int>(a.kind)] + std::to_string(a.micro_batch);
    return text;
  };
  EXPECT_EQ(last_of({2, 1, 3, Receives::beside_work}), "R0 R1 F0 B0 S0 F1 R2 B1 S1 F2 B2 S2");
  // Behind that work, and before what is sent behind it in the common order.
  EXPECT_EQ(last_of({2, 1, 3, Receives::between_works}), "R0 F0 R1 B0 S0 F1 B1 R2 S1 F2 B2 S2");
}

// Each work once; of a chunk backwards in the order of the micro-batches, whose first one writes what the others add
// to.
TEST(PipelineSchedule, DoesEachWorkOnceAndAddsGradientsInOrder) {
  for (const PipelineShape& shape : shapes())
    for (const PipelineSchedule& schedule : schedules_of(shape)) {
      std::set<std::tuple<Kind, std::int64_t, std::int64_t>> done;
      std::vector<std::int64_t> last(static_cast<std::size_t>(shape.virtual_stages), -1);
      for (const PipelineAction& a : schedule.actions()) {
        if (a.kind != Kind::forward && a.kind != Kind::backward) continue;
        EXPECT_TRUE(done.insert({a.kind, a.chunk, a.micro_batch}).second) << text_of(shape);
        if (a.kind == Kind::forward) continue;
        EXPECT_TRUE(done.contains({Kind::forward, a.chunk, a.micro_batch})) << text_of(shape);
        EXPECT_EQ(a.micro_batch, ++last[static_cast<std::size_t>(a.chunk)]) << text_of(shape);
      }
      EXPECT_EQ(done.size(), static_cast<std::size_t>(2 * shape.virtual_stages * shape.micro_batches));
    }
}

// With sends and receives that each wait for their opposite, the strictest library there may be, all ranks come to the
// end, and each reads what the stage beside it has made of the same micro-batch.
TEST(PipelineSchedule, NeverWaitsInACircle) {
  for (const PipelineShape& shape : shapes()) {
    const auto ranks = schedules_of(shape);
    using Message = std::tuple<bool, std::int64_t, std::int64_t>;  // of backward; the stage that made it; micro-batch
    std::vector<std::size_t> at(ranks.size(), 0);
    std::vector<std::map<std::int64_t, Message>> places(ranks.size());
    std::vector<Message> made(ranks.size());
    const auto stage_of = [&](std::size_t rank, const PipelineAction& a) {
      return a.chunk * shape.ranks + static_cast<std::int64_t>(rank);
    };
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        const auto& actions = ranks[r].actions();
        while (at[r] < actions.size()) {
          const PipelineAction& a = actions[at[r]];
          if (a.kind == Kind::receive) break;  // the sender carries it out
          if (a.kind == Kind::send) {
            const auto peer = static_cast<std::size_t>(a.peer);
            if (at[peer] >= ranks[peer].actions().size()) break;
            const PipelineAction& there = ranks[peer].actions()[at[peer]];
            if (there.kind != Kind::receive || there.peer != static_cast<std::int64_t>(r)) break;
            ASSERT_EQ(there.is_gradient, a.is_gradient) << text_of(shape);
            ASSERT_EQ(there.micro_batch, a.micro_batch) << text_of(shape);
            ASSERT_FALSE(places[peer].contains(there.place)) << text_of(shape) << ": overwritten before it is read";
            ASSERT_LT(there.place, ranks[peer].receive_places());
            places[peer][there.place] = made[r];
            ++at[peer];
          } else {
            const bool is_backward = a.kind == Kind::backward;
            const std::int64_t stage = stage_of(r, a), source = stage + (is_backward ? 1 : -1);
            const bool has_source = source >= 0 && source < shape.ranks * shape.virtual_stages;
            ASSERT_EQ(a.read_place >= 0, has_source) << text_of(shape);
            if (has_source) {
              ASSERT_TRUE(places[r].contains(a.read_place)) << text_of(shape);
              ASSERT_EQ(places[r][a.read_place], Message(is_backward, source, a.micro_batch)) << text_of(shape);
              places[r].erase(a.read_place);
            }
            made[r] = {is_backward, stage, a.micro_batch};
            std::size_t behind = at[r] + 1;
            while (behind < actions.size() && actions[behind].kind == Kind::receive) ++behind;
            ASSERT_EQ(a.sends, behind < actions.size() && actions[behind].kind == Kind::send);
          }
          ++at[r];
          goes_on = true;
        }
      }
    }
    for (std::size_t r = 0; r < ranks.size(); ++r)
      ASSERT_EQ(at[r], ranks[r].actions().size()) << text_of(shape) << ": rank " << r << " waits";
  }
}

// No more activations than the published orders have, each in a place that no other micro-batch has meanwhile.
TEST(PipelineSchedule, KeepsFewActivations) {
  for (const PipelineShape& shape : shapes()) {
    const auto ranks = schedules_of(shape);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> held;  // by chunk and place
      for (const PipelineAction& a : ranks[r].actions()) {
        if (a.kind == Kind::forward) {
          ASSERT_TRUE(held.emplace(std::pair(a.chunk, a.place), a.micro_batch).second) << text_of(shape);
        } else if (a.kind == Kind::backward) {
          ASSERT_EQ(held.at({a.chunk, a.place}), a.micro_batch) << text_of(shape);
          held.erase({a.chunk, a.place});
        }
      }
      EXPECT_LE(ranks[r].receive_places(), 2 + 2 * shape.virtual_stages) << text_of(shape) << " on rank " << r;
      if (shape.virtual_stages > 1) continue;
      EXPECT_EQ(ranks[r].activation_places()[0],
                std::min(shape.micro_batches, shape.ranks - static_cast<std::int64_t>(r)))
          << text_of(shape);
    }
  }
}

// The time of a step whose forwards take 1 of a rank's units of work, and backwards 2, on ranks whose works run one
// after the other, and so do their messages, which take no time: each starts when all works before it are done and its
// opposite has started.
std::int64_t time_of_step(const std::vector<PipelineSchedule>& ranks, const std::vector<std::int64_t>& work) {
  struct Rank {
    std::size_t at = 0;
    std::int64_t works_end = 0, messages_end = 0, posted = -1;  // the latter of the message that waits
    std::map<std::int64_t, std::int64_t> came;                  // by place
  };
  std::vector<Rank> state(ranks.size());
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      Rank& own = state[r];
      for (const auto& actions = ranks[r].actions(); own.at < actions.size();) {
        const PipelineAction& a = actions[own.at];
        if (a.kind == Kind::forward || a.kind == Kind::backward) {
          const std::int64_t ready = a.read_place >= 0 ? own.came.at(a.read_place) : 0;
          own.works_end = std::max(own.works_end, ready) + (a.kind == Kind::forward ? 1 : 2) * work[r];
          ++own.at;
          goes_on = true;
          continue;
        }
        own.posted = std::max(own.works_end, own.messages_end);
        const auto peer = static_cast<std::size_t>(a.peer);
        Rank& other = state[peer];
        if (other.posted < 0 || ranks[peer].actions()[other.at].peer != static_cast<std::int64_t>(r)) break;
        const std::int64_t end = std::max(own.posted, other.posted);
        const PipelineAction& there = ranks[peer].actions()[other.at];
        (a.kind == Kind::receive ? own.came[a.place] : other.came[there.place]) = end;
        for (Rank* each : {&own, &other}) each->messages_end = end, each->posted = -1, ++each->at;
        goes_on = true;
      }
    }
  }
  std::int64_t end = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    EXPECT_EQ(state[r].at, ranks[r].actions().size()) << "rank " << r;
    end = std::max(end, state[r].works_end);
  }
  return end;
}

// The formula is of messages that never wait for one another; here those of a rank go one after the other.
TEST(PipelineSchedule, HasTheBubbleOfTheFormula) {
  for (const PipelineShape& shape : shapes()) {
    const std::int64_t work = 3 * shape.virtual_stages * shape.micro_batches;
    const std::vector<std::int64_t> equal(static_cast<std::size_t>(shape.ranks), 1);
    const std::int64_t time = time_of_step(schedules_of(shape), equal);
    const double idle = static_cast<double>(time - work) / static_cast<double>(time);
    EXPECT_NEAR(idle, pipeline_bubble_share(shape), 1e-9) << text_of(shape);
  }
}

// The same, where no message waits for another one.
std::int64_t time_of_works(const std::vector<PipelineSchedule>& ranks, const std::vector<std::int64_t>& work) {
  std::map<std::tuple<Kind, std::int64_t, std::int64_t>, std::int64_t> ends;  // by direction, rank and micro-batch
  std::vector<std::size_t> at(ranks.size(), 0);
  std::vector<std::int64_t> free_from(ranks.size(), 0);
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (std::size_t r = 0; r < ranks.size(); ++r)
      for (const auto& actions = ranks[r].actions(); at[r] < actions.size(); ++at[r], goes_on = true) {
        const PipelineAction& a = actions[at[r]];
        if (a.kind != Kind::forward && a.kind != Kind::backward) continue;
        const auto rank = static_cast<std::int64_t>(r);
        if (a.read_place >= 0) {
          const auto made = ends.find({a.kind, rank + (a.kind == Kind::forward ? -1 : 1), a.micro_batch});
          if (made == ends.end()) break;
          free_from[r] = std::max(free_from[r], made->second);
        }
        free_from[r] += (a.kind == Kind::forward ? 1 : 2) * work[r];
        ends[{a.kind, rank, a.micro_batch}] = free_from[r];
      }
  }
  return *std::max_element(free_from.begin(), free_from.end());
}

// Of ranks that differ: by the formula where the last one has most work, and less where an earlier one has. The common
// order of messages, which is that of equal ranks, adds a hundredth at most.
TEST(PipelineSchedule, HasTheBubbleOfTheFormulaForStagesThatDiffer) {
  constexpr std::array<std::int64_t, 8> some_work{4, 6, 5, 4, 5, 6, 4, 5};
  for (const std::int64_t ranks : {2, 3, 5, 8})
    for (const std::int64_t micro_batches : {1, 3, 8, 24})
      for (const std::int64_t most : {ranks - 1, std::int64_t{0}}) {
        const PipelineShape shape{ranks, 1, micro_batches};
        std::vector<std::int64_t> work(some_work.begin(), some_work.begin() + ranks);
        work[static_cast<std::size_t>(most)] = 7;
        const double worked = 3 * static_cast<double>(micro_batches) *
                              static_cast<double>(std::accumulate(work.begin(), work.end(), std::int64_t{0})) /
                              static_cast<double>(ranks);
        const auto schedules = schedules_of(shape);
        const double idle = 1 - worked / static_cast<double>(time_of_works(schedules, work));
        const double formula = pipeline_bubble_share(shape, {work.begin(), work.end()});
        if (most == 0)
          EXPECT_LE(idle, formula + 1e-9) << text_of(shape);
        else
          EXPECT_NEAR(idle, formula, 1e-9) << text_of(shape);
        EXPECT_LE(1 - worked / static_cast<double>(time_of_step(schedules, work)), formula + 0.01) << text_of(shape);
      }
}

TEST(PipelineSchedule, RefusesWhatTheInterleavedOrderDoesNotServe) {
  const auto refusal = [](const PipelineShape& shape) {
    try {
      const PipelineSchedule schedule(shape, 0);
    } catch (const Error& e) {
      EXPECT_EQ(e.status(), ASSAY_UNSUPPORTED);
      return std::string(e.what());
    }
    return std::string("served");
  };
  EXPECT_NE(refusal({4, 2, 6}).find("expected accumulation_steps = 4 or 8 in place of 6, or virtual_stages = 1"),
            std::string::npos)
      << refusal({4, 2, 6});
  EXPECT_NE(refusal({4, 2, 3}).find("expected accumulation_steps = 4 in place of 3"), std::string::npos);
  EXPECT_NE(refusal({1, 2, 4}).find("on one rank, or run.ranks / replicas of at least 2"), std::string::npos);
  EXPECT_EQ(refusal({4, 1, 6}), "served");
}

TEST(PipelineSchedule, StatesTheBubble) {
  EXPECT_DOUBLE_EQ(pipeline_bubble_share({4, 1, 8}), 3.0 / 11);
  EXPECT_DOUBLE_EQ(pipeline_bubble_share({4, 2, 8}), 3.0 / 19);
  EXPECT_DOUBLE_EQ(pipeline_bubble_share({1, 1, 8}), 0);
  // Two ranks with 3 and 5 units on 4 micro-batches: 4 * 5 + 3 units, of which ranks work 16 in the mean.
  EXPECT_DOUBLE_EQ(pipeline_bubble_share({2, 1, 4}, {3, 5}), 1 - 16.0 / 23);
  EXPECT_DOUBLE_EQ(pipeline_bubble_share({2, 2, 4}, {3, 5}), 1 - 16.0 / 21.5);
  EXPECT_DOUBLE_EQ(pipeline_bubble_share({4, 2, 8}, {7, 7, 7, 7}), 3.0 / 19);
  EXPECT_DOUBLE_EQ(pipeline_bubble_share({1, 1, 8}, {9}), 0);
}

}  // namespace
}  // namespace assay::train
