// Checkpoints of what is not the last level: outcomes of candidates, terms of smaller levels.
#include "generator/journal.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "generator/level_file.h"
#include "operators/registry.h"
#include "support/file.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

using test::registry;

JournalEntry entry(const char* text, std::uint8_t kind) {
  const auto rules = parse_rules(text, "text", registry());
  JournalEntry result;
  result.kind = kind;
  result.why = "because\nof this";
  GeneralRule& rule = result.rule;
  rule.rule = rules.value().at(0);
  rule.source_ops = 2;
  rule.target_ops = 1;
  rule.source_weight_ops = 3;
  rule.target_weight_ops = 4;
  rule.is_weight = {false, true};
  rule.example_types = {{ElementType::f32, {2, 3}, true}, {ElementType::f32, {3}, true}};
  rule.example_attributes = {std::nullopt, 0.1, std::int64_t{-7}, std::vector<std::int64_t>{1, 2}, SymbolValue{"relu"}};
  rule.opened = 5;
  return result;
}

const char* const first_rule =
    "rule a: matmul(x, w), matmul(x, v) => s.0, s.1 where s = split(matmul(x, concat(w, v; axis=-1)); axis=-1, "
    "sizes=[dim(w, -1), dim(v, -1)]) if rank(w) == 2\n  proof axioms, bounded 3\n  class exact\n";
const char* const second_rule = "rule b: relu(matmul_bias_act(x, w, b)) => matmul_bias_act(x, w, b; act=relu)\n";

void expect_equal(const JournalEntry& a, const JournalEntry& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.why, b.why);
  EXPECT_EQ(to_string(a.rule.rule, registry()), to_string(b.rule.rule, registry()));
  EXPECT_EQ(a.rule.rule.source, b.rule.rule.source);
  EXPECT_EQ(a.rule.rule.target, b.rule.rule.target);
  EXPECT_EQ(a.rule.rule.conditions, b.rule.rule.conditions);
  EXPECT_EQ(a.rule.rule.where.line, b.rule.rule.where.line);
  EXPECT_EQ(a.rule.source_ops, b.rule.source_ops);
  EXPECT_EQ(a.rule.target_ops, b.rule.target_ops);
  EXPECT_EQ(a.rule.source_weight_ops, b.rule.source_weight_ops);
  EXPECT_EQ(a.rule.target_weight_ops, b.rule.target_weight_ops);
  EXPECT_EQ(a.rule.is_weight, b.rule.is_weight);
  EXPECT_EQ(a.rule.example_types, b.rule.example_types);
  EXPECT_EQ(a.rule.example_attributes, b.rule.example_attributes);
  EXPECT_EQ(a.rule.opened, b.rule.opened);
}

TEST(Journal, EntriesComeBackWhole) {
  for (const char* const text : {first_rule, second_rule}) {
    const JournalEntry written = entry(text, 2);
    const std::string bytes = to_bytes(written);
    const auto read = entry_from_bytes(bytes);
    ASSERT_TRUE(read.has_value());
    expect_equal(written, *read);
    for (std::size_t size = 0; size < bytes.size(); ++size)
      EXPECT_FALSE(entry_from_bytes(std::string_view(bytes).substr(0, size)).has_value()) << size;
  }
}

TEST(Journal, WhatWasCutOffIsDroppedAtEveryByte) {
  const std::string path = testing::TempDir() + "journal_test.journal";
  std::filesystem::remove(path);
  const Hash128 inputs{1, 2}, first{3, 4}, second{5, 6};
  const JournalEntry one = entry(first_rule, 0), two = entry(second_rule, 5);
  std::uintmax_t after_first = 0;
  {
    const auto journal = Journal::open(path, inputs);
    ASSERT_TRUE(journal.ok()) << journal.error().to_string();
    EXPECT_EQ((*journal)->find(first), nullptr);
    (*journal)->add(first, one);
    after_first = std::filesystem::file_size(path);
    (*journal)->add(second, two);
    EXPECT_TRUE((*journal)->status());
  }
  const std::string whole = read_file(path).value();
  for (std::size_t size = 0; size <= whole.size(); size += size + 13 < whole.size() ? 13 : 1) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    {
      const auto journal = Journal::open(path, inputs);
      ASSERT_TRUE(journal.ok()) << size << ": " << journal.error().to_string();
      ASSERT_EQ((*journal)->find(first) != nullptr, size >= after_first) << size;
      ASSERT_EQ((*journal)->find(second) != nullptr, size == whole.size()) << size;
      if ((*journal)->find(first) == nullptr) (*journal)->add(first, one);
      if ((*journal)->find(second) == nullptr) (*journal)->add(second, two);
    }
    ASSERT_EQ(read_file(path).value(), whole) << size;
  }
  const auto again = Journal::open(path, inputs);
  ASSERT_TRUE(again.ok());
  expect_equal(*(*again)->find(first), one);
  expect_equal(*(*again)->find(second), two);
  const auto other = Journal::open(path, Hash128{1, 3});
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().to_string().find("made from another profile"), std::string::npos);
}

TEST(LevelFile, ComesBackWholeOrIsRefused) {
  std::vector<FoundTerm> terms(2);
  terms[0].term = {3, 2, {7, 8}};
  terms[0].block = 5;
  terms[0].weight_ops = 1;
  terms[0].fingerprints = {{1, ~std::uint64_t{2}}};
  terms[1].term = {4, 1, {9}};
  terms[1].fingerprints = {{11, 12}, {13, 14}};
  const Hash128 enumeration{21, 22};
  const std::string bytes = level_to_bytes(enumeration, terms);
  const auto read = level_from_bytes(bytes, enumeration, "file");
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  ASSERT_EQ(read->size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ((*read)[i].term, terms[i].term);
    EXPECT_EQ((*read)[i].block, terms[i].block);
    EXPECT_EQ((*read)[i].weight_ops, terms[i].weight_ops);
    EXPECT_EQ((*read)[i].fingerprints, terms[i].fingerprints);
  }
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(level_from_bytes(bytes.substr(0, size), enumeration, "file").ok()) << size;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_FALSE(level_from_bytes(damaged, enumeration, "file").ok()) << at;
  }
  const auto other = level_from_bytes(bytes, Hash128{21, 23}, "file");
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().to_string().find("another profile"), std::string::npos);
}

}  // namespace
}  // namespace taso
