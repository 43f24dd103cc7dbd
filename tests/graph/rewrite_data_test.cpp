// Runs tests/data/rewrite/*.txt. A file holds cases; a case is a sequence of sections, each begun by a line "== KIND":
//
//   == case NAME
//   == rules            rule text (absent: only the normal form is tested)
//   == graph            a graph
//   == matches N        the rules have N matches in the normal form of the graph
//   == becomes          applying some match gives this graph (without rules: normalize gives it)
//   == exhausts         applying the first match that applies, again and again, ends in this graph
//   == fails            no match can be applied; the reason of the first holds this text
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "graph/graph_text.h"
#include "graph/rewrite.h"
#include "operators/registry.h"
#include "support/file.h"

namespace taso {
namespace {

struct Case {
  std::string file, name;
  std::map<std::string, std::string> sections;
};

std::vector<Case> load_cases() {
  std::vector<Case> cases;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(TASO_SOURCE_DIR "/tests/data/rewrite"))
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    const std::string text = read_file(path.string()).value();
    std::string* section = nullptr;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      const std::string line = text.substr(begin, end - begin);
      begin = end + 1;
      if (line.rfind("== ", 0) == 0) {
        const std::size_t space = line.find(' ', 3);
        const std::string kind = line.substr(3, space == std::string::npos ? space : space - 3);
        const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
        if (kind == "case") {
          cases.push_back({path.stem().string(), rest, {}});
          section = nullptr;
        } else {
          section = &cases.back().sections[kind];
          *section = rest;
        }
      } else if (section != nullptr) {
        *section += line + "\n";
      }
    }
  }
  return cases;
}

class RewriteData : public testing::TestWithParam<Case> {};

TEST_P(RewriteData, Holds) {
  const Case& test = GetParam();
  const Expected<OperatorRegistry> registry = OperatorRegistry::load(TASO_SOURCE_DIR "/specs/operators");
  ASSERT_TRUE(registry.ok()) << registry.error().to_string();
  const OperatorRegistry& catalog = *registry;
  auto graph_of = [&](const std::string& section) {
    Expected<Graph> graph = parse_graph(test.sections.at(section), section, catalog);
    EXPECT_TRUE(graph.ok()) << (graph ? "" : graph.error().to_string());
    Graph result = graph ? *graph : Graph();
    normalize(result, catalog);
    EXPECT_TRUE(result.validate().ok());
    return result;
  };
  for (const auto& [kind, text] : test.sections)
    ASSERT_THAT(kind, testing::AnyOf("rules", "graph", "matches", "becomes", "exhausts", "fails"));
  Graph graph = graph_of("graph");
  Expected<std::vector<Substitution>> rules = std::vector<Substitution>();
  if (test.sections.count("rules") != 0) rules = parse_rules(test.sections.at("rules"), "rules", catalog);
  ASSERT_TRUE(rules.ok()) << rules.error().to_string();
  const RuleIndex index(*rules, catalog);
  if (test.sections.count("matches") != 0) {
    EXPECT_EQ(index.find_all(graph).size(), static_cast<std::size_t>(std::stoi(test.sections.at("matches"))));
  }
  if (test.sections.count("becomes") != 0) {
    const Graph expected = graph_of("becomes");
    bool found = rules->empty() && graph.equals(expected);
    std::string seen = to_text(graph);
    for (const auto& [rule, match] : index.find_all(graph)) {
      const Expected<Graph> result = apply(graph, index.rules()[rule], match, catalog);
      seen += "---- " + index.rules()[rule].name + "\n" + (result ? to_text(*result) : result.error().message + "\n");
      if (!result) continue;
      EXPECT_TRUE(result->validate().ok());
      Graph again = *result;
      normalize(again, catalog);
      EXPECT_TRUE(again.equals(*result)) << "not in normal form:\n" << to_text(*result) << "but\n" << to_text(again);
      found = found || result->equals(expected);
    }
    EXPECT_TRUE(found) << "expected\n" << to_text(expected) << "found\n" << seen;
  }
  if (test.sections.count("fails") != 0) {
    std::string reason;
    std::string expected = test.sections.at("fails");
    expected.erase(expected.find_last_not_of('\n') + 1);
    for (const auto& [rule, match] : index.find_all(graph)) {
      const Expected<Graph> result = apply(graph, index.rules()[rule], match, catalog);
      EXPECT_FALSE(result.ok()) << to_text(*result);
      if (!result && reason.empty()) reason = result.error().message;
    }
    EXPECT_THAT(reason, testing::HasSubstr(expected));
    EXPECT_FALSE(reason.empty());
  }
  if (test.sections.count("exhausts") != 0) {
    Graph now = graph;
    for (int step = 0; step < 50; ++step) {
      bool changed = false;
      for (const auto& [rule, match] : index.find_all(now)) {
        Expected<Graph> result = apply(now, index.rules()[rule], match, catalog);
        if (!result) continue;
        now = std::move(*result);
        changed = true;
        break;
      }
      if (!changed) break;
      ASSERT_LT(step, 49) << "does not end:\n" << to_text(now);
    }
    const Graph expected = graph_of("exhausts");
    EXPECT_TRUE(now.equals(expected)) << "expected\n" << to_text(expected) << "found\n" << to_text(now);
  }
}

std::string test_name(const testing::TestParamInfo<Case>& test) {
  std::string name = test.param.file + "_" + test.param.name;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Files, RewriteData, testing::ValuesIn(load_cases()), test_name);

}  // namespace
}  // namespace taso
