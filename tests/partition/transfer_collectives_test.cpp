// Transfers as collectives (transfers.cases), and of drawn placements that what is needed is there.
#include "partition/transfer_collectives.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/partition/drawn_plans.h"
#include "tests/partition/vocabularies.h"
#include "tests/support/cases.h"

namespace taso {
namespace {

using test::CaseCount;
using test::CaseValue;
using test::TextCase;

Shape numbers_in(const std::string& text) {
  Shape numbers;
  for (const std::string& word : test::words_of(text)) numbers.push_back(std::stoll(word));
  return numbers;
}

Mesh mesh_in(std::string text) {
  std::replace(text.begin(), text.end(), 'x', ' ');
  return test::mesh_of_sizes(numbers_in(text));
}

Placement placement_in(const std::string& text, const Shape& shape, const Mesh& mesh) {
  Placement placement;
  AxisCuts cuts(shape.size());
  const std::vector<std::string> words = test::words_of(text);
  for (std::size_t m = 0; m < mesh.axes.size(); ++m) {
    if (words.at(m) == "r") continue;
    if (words.at(m) == "sum" || words.at(m) == "max") {
      placement.partial.push_back(m);
      placement.reducer = words.at(m);
    } else {
      cuts.at(std::stoul(words.at(m))).push_back(m);
    }
  }
  placement.boxes = boxes_cut_by(cuts, shape, mesh);
  return placement;
}

class TransferCase : public testing::TestWithParam<TextCase> {};

TEST_P(TransferCase, IsDoneByCollectives) {
  const TextCase& one = GetParam();
  SCOPED_TRACE(one.place());
  const Mesh mesh = mesh_in(one.text("mesh"));
  const Shape shape = numbers_in(one.text("tensor"));
  const Placement have = placement_in(one.text("have"), shape, mesh);
  Placement need = placement_in(one.text("need"), shape, mesh);
  for (IndexBox& box : need.boxes) {
    if (one.has("halo")) {
      const std::int64_t halo = one.integer("halo");
      box[0] = {std::max<std::int64_t>(0, box[0].begin - halo), std::min(shape[0], box[0].end + halo)};
    }
    if (one.has("take")) {
      const Shape bounds = numbers_in(one.text("take"));
      box[0] = {bounds.at(0), bounds.at(1)};
    }
  }
  const CollectiveVocabulary& vocabulary = test::vocabularies().at(one.text("vocabulary", "all"));
  EXPECT_EQ(to_string(collective_transfer(have, need, shape, mesh, vocabulary)), one.text("steps"));
}

INSTANTIATE_TEST_SUITE_P(Files, TransferCase,
                         testing::ValuesIn(test::load_cases("tests/partition/transfers.cases",
                                                            {{"vocabulary", CaseValue::text},
                                                             {"mesh", CaseValue::text, CaseCount::once},
                                                             {"tensor", CaseValue::text, CaseCount::once},
                                                             {"have", CaseValue::text, CaseCount::once},
                                                             {"need", CaseValue::text, CaseCount::once},
                                                             {"halo", CaseValue::integer},
                                                             {"take", CaseValue::words},
                                                             {"steps", CaseValue::text, CaseCount::once}})),
                         test::case_name);

TEST(AxisCuts, OfRegularPlacementsOnly) {
  const Mesh mesh = test::mesh_of_sizes({2, 2});
  const Shape shape = {8, 6};
  for (const AxisCuts& cuts : std::vector<AxisCuts>{{{}, {}}, {{0}, {1}}, {{0, 1}, {}}, {{1, 0}, {}}, {{}, {1}}}) {
    const Placement placement{boxes_cut_by(cuts, shape, mesh), {}, ""};
    EXPECT_EQ(axis_cuts(placement, shape, mesh), cuts);
  }
  Placement halo{boxes_cut_by({{0}, {}}, shape, mesh), {}, ""};
  ++halo.boxes[0][0].end;
  EXPECT_EQ(axis_cuts(halo, shape, mesh), std::nullopt);
  EXPECT_EQ(axis_cuts({boxes_cut_by({{0}, {}}, {7, 6}, mesh), {}, ""}, {7, 6}, mesh), std::nullopt);
  EXPECT_EQ(axis_cuts(on_first(shape, mesh), shape, mesh), std::nullopt);
}

}  // namespace
}  // namespace taso
