// The table that makes a verdict of evidence, over all of its arguments.

#include "verifier/decision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace taso::decisions {
namespace {

using Unbounded = Evidence::Unbounded;
using Axioms = Evidence::Axioms;
using Instances = Evidence::Instances;
using Landmarks = Evidence::Landmarks;
using Definedness = Evidence::Definedness;

// The values of an enumeration whose last one is given.
template <class Enum>
std::vector<Enum> values(Enum last) {
  std::vector<Enum> result;
  for (int value = 0; value <= static_cast<int>(last); ++value) result.push_back(static_cast<Enum>(value));
  return result;
}
constexpr bool either[] = {false, true};

// Each combination of values once.
void for_all(const std::function<void(const Evidence&)>& visit) {
  Evidence e;
  for (e.same_outputs = false;; e.same_outputs = true) {
    for (const Unbounded unbounded : values(Unbounded::proved))
      for (const Axioms axioms : values(Axioms::derived))
        for (const Instances instances : values(Instances::agree))
          for (const Landmarks landmarks : values(Landmarks::agree))
            for (const Definedness definedness : values(Definedness::shown))
              for (const bool uncovered : either)
                for (const bool asks_of_values : either)
                  for (const bool contradictory : either)
                    for (const bool beyond_floats : either)
                      for (const bool rounds_attributes : either)
                        visit({e.same_outputs, unbounded, axioms, instances, landmarks, uncovered, asks_of_values,
                               definedness, contradictory, beyond_floats, rounds_attributes});
    if (e.same_outputs) return;
  }
}

std::string text(const Evidence& e) {
  std::string result;
  for (const int value :
       {int{e.same_outputs}, static_cast<int>(e.unbounded), static_cast<int>(e.axioms), static_cast<int>(e.instances),
        static_cast<int>(e.landmarks), int{e.uncovered}, int{e.asks_of_values}, static_cast<int>(e.definedness),
        int{e.contradictory}, int{e.beyond_floats}, int{e.rounds_attributes}})
    result += std::to_string(value) + " ";
  return result;
}

bool numbers_differ(const Evidence& e) {
  return e.instances == Instances::numbers_differ || e.landmarks == Landmarks::numbers_differ;
}
bool gives(const Decision& decision, Reason reason) {
  return std::find(decision.reasons.begin(), decision.reasons.end(), reason) != decision.reasons.end();
}

TEST(Decision, TheTableHasAllRows) {
  std::size_t rows = 0;
  for_all([&](const Evidence&) { ++rows; });
  EXPECT_EQ(rows, 2U * 4 * 3 * 7 * 3 * 3 * 2 * 2 * 2 * 2 * 2);
}

TEST(Decision, WhatIsProvedHasAProof) {
  std::size_t proved = 0;
  for_all([&](const Evidence& e) {
    if (decide(e).kind != VerdictKind::proved) return;
    ++proved;
    const bool unbounded = e.unbounded == Unbounded::proved;
    // Axioms alone are no proof, and neither are instances; what axioms and instances prove together was compared.
    EXPECT_TRUE(unbounded || (e.axioms == Axioms::derived && e.instances == Instances::agree)) << text(e);
    EXPECT_TRUE(e.same_outputs) << text(e);
    EXPECT_FALSE(numbers_differ(e)) << text(e);
    // Types may differ somewhere if the proof for all sizes has instances at which they do not.
    EXPECT_TRUE(e.instances != Instances::types_differ || unbounded) << text(e);
    EXPECT_FALSE(e.contradictory) << text(e);
    EXPECT_FALSE(e.beyond_floats) << text(e);
    EXPECT_FALSE(unbounded && e.uncovered) << text(e);
    EXPECT_NE(e.definedness, Definedness::not_shown) << text(e);
    // The proof for all sizes includes that the target is defined; that of axioms does not.
    EXPECT_TRUE(unbounded || !e.asks_of_values || e.definedness == Definedness::shown) << text(e);
  });
  EXPECT_GT(proved, 0U);
}

TEST(Decision, WhatIsRefutedHasACounterexample) {
  for_all([&](const Evidence& e) {
    const Decision decision = decide(e);
    if (decision.kind != VerdictKind::refuted) return;
    EXPECT_TRUE(numbers_differ(e) || e.instances == Instances::types_differ) << text(e);
    EXPECT_TRUE(gives(decision, Reason::differ) || gives(decision, Reason::differ_by_rounding)) << text(e);
  });
}

// Differences refute all but what is proved for all sizes, whatever axioms say: these may be false.
TEST(Decision, DifferencesRefuteWhatIsNotProvedForAllSizes) {
  for_all([&](const Evidence& e) {
    if (!e.same_outputs || e.unbounded == Unbounded::proved) return;
    if (!numbers_differ(e) && e.instances != Instances::types_differ) return;
    EXPECT_EQ(decide(e).kind, VerdictKind::refuted) << text(e);
  });
}

TEST(Decision, ContradictionsBetweenProversAreReportedAndNeverProved) {
  for_all([&](const Evidence& e) {
    if (!e.same_outputs || e.unbounded != Unbounded::proved) return;
    const Decision decision = decide(e);
    if (numbers_differ(e)) {
      // Rounding explains the difference; nothing else does.
      EXPECT_EQ(decision.kind, e.rounds_attributes ? VerdictKind::refuted : VerdictKind::unknown) << text(e);
      EXPECT_TRUE(gives(decision, e.rounds_attributes ? Reason::differ_by_rounding : Reason::contradiction)) << text(e);
    } else if (e.uncovered) {
      EXPECT_EQ(decision.kind, VerdictKind::unknown) << text(e);
      EXPECT_TRUE(gives(decision, Reason::uncovered)) << text(e);
    }
    if (numbers_differ(e) || e.uncovered) {
      EXPECT_TRUE(decision.settled) << text(e);
    }
  });
}

TEST(Decision, ReasonsAreGivenExactlyForWhatIsNotProved) {
  for_all([&](const Evidence& e) {
    const Decision decision = decide(e);
    EXPECT_EQ(decision.kind == VerdictKind::proved, decision.reasons.empty()) << text(e);
    // Nothing is said of what was not asked.
    EXPECT_FALSE(gives(decision, Reason::not_derived) && e.axioms != Axioms::not_derived) << text(e);
    EXPECT_FALSE(gives(decision, Reason::not_unbounded) && e.unbounded != Unbounded::not_proved &&
                 e.unbounded != Unbounded::of_nothing)
        << text(e);
    EXPECT_FALSE(gives(decision, Reason::instances_undecided) &&
                 (e.instances == Instances::not_examined || e.instances == Instances::agree))
        << text(e);
    EXPECT_TRUE(decision.kind != VerdictKind::refuted || decision.settled) << text(e);
    EXPECT_TRUE(decision.kind != VerdictKind::proved || !decision.settled) << text(e);
  });
}

// The verifier stops asking where a decision is settled.
TEST(Decision, WhatIsSettledStaysSo) {
  for_all([&](const Evidence& e) {
    const Decision decision = decide(e);
    if (!decision.settled) return;
    Evidence earlier = e;
    earlier.axioms = Axioms::not_asked;
    earlier.definedness = Definedness::not_asked;
    earlier.asks_of_values = earlier.contradictory = earlier.beyond_floats = false;
    EXPECT_EQ(decide(earlier), decision) << text(e);
  });
}

// What is not known never helps: a proof stays one if an answer takes the place of silence, unless that answer is
// against it.
TEST(Decision, SilenceProvesNothing) {
  for_all([&](const Evidence& e) {
    const bool proved = decide(e).kind == VerdictKind::proved;
    Evidence more = e;
    if (e.unbounded == Unbounded::not_asked) {
      more.unbounded = Unbounded::not_proved;
      EXPECT_EQ(decide(more).kind, decide(e).kind) << text(e);
    }
    more = e;
    if (e.axioms == Axioms::not_asked) {
      more.axioms = Axioms::not_derived;
      EXPECT_EQ(decide(more).kind, decide(e).kind) << text(e);
    }
    more = e;
    if (e.landmarks == Landmarks::not_examined) {
      more.landmarks = Landmarks::agree;
      EXPECT_EQ(decide(more).kind, decide(e).kind) << text(e);
    }
    more = e;
    for (const Instances silent : {Instances::none, Instances::undecided, Instances::forms_differ})
      if (e.instances == Instances::not_examined) {
        more.instances = silent;
        EXPECT_EQ(decide(more).kind, decide(e).kind) << text(e);
      }
    if (proved && e.unbounded != Unbounded::proved) {
      EXPECT_EQ(e.instances, Instances::agree) << text(e);
    }
  });
}

// What a target asks of values is a matter of definitions, so that no other question has to be asked for it to count.
TEST(Decision, TargetsThatDivideMoreAreNamedWhateverElseWasAsked) {
  for_all([&](const Evidence& e) {
    if (!asks_for_domain(e) || e.definedness == Definedness::shown) return;
    const Decision decision = decide(e);
    EXPECT_NE(decision.kind, VerdictKind::proved) << text(e);
    if (!decision.settled && !e.contradictory && !e.beyond_floats) {
      EXPECT_TRUE(gives(decision, Reason::target_undefined)) << text(e);
    }
  });
  Evidence e;
  e.axioms = Axioms::derived;
  e.asks_of_values = true;
  EXPECT_THAT(decide(e).reasons, ::testing::ElementsAre(Reason::target_undefined)) << "no instance was examined";
}

TEST(Decision, NothingAskedIsNothingKnown) {
  EXPECT_EQ(decide({}).kind, VerdictKind::unknown);
  EXPECT_THAT(decide({}).reasons, ::testing::ElementsAre(Reason::too_little_asked));
}

}  // namespace
}  // namespace taso::decisions
