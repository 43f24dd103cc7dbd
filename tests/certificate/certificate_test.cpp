// The text of certificates, and what of it is refused.

#include "certificate/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "support/random.h"

namespace taso {
namespace {

Certificate example() {
  Certificate certificate;
  certificate.original = {"in.onnx", 12, {1, 2}};
  certificate.optimized = {"out.onnx", 13, {3, 0xffffffffffffffff}};
  certificate.external_data = FileIdentity{"out.onnx.data", 5, {0, 0}};
  certificate.plan = FileIdentity{"out.plan.json", 15, {5, 6}};
  certificate.input_shapes = {{"x", {1, 3}}, {"s", {}}};
  certificate.allowed_domains = {"com.microsoft"};
  certificate.rules = {"rule twice:\n  relu(relu(x)) => relu(x)\n"};
  CertificateStep step;
  step.rule = "twice";
  step.match.variables = {{3, 0}, {4, 1}};
  step.match.attributes = {std::nullopt,
                           AttributeValue(std::numeric_limits<std::int64_t>::min()),
                           AttributeValue(std::numeric_limits<std::int64_t>::max()),
                           AttributeValue(0.1),
                           AttributeValue(2.0),
                           AttributeValue(-std::numeric_limits<double>::infinity()),
                           AttributeValue(std::vector<std::int64_t>{}),
                           AttributeValue(std::vector<std::int64_t>{-1, 2}),
                           AttributeValue(SymbolValue{"relu"})};
  step.match.nodes = {7, 9};
  step.match.operand_begin = {-1, 2};
  step.match.port_begin = {0, -1};
  certificate.steps = {step, step};
  return certificate;
}

TEST(Certificate, IsReadAsItWasWritten) {
  const Certificate written = example();
  const std::string text = to_json(written);
  const Expected<Certificate> read = parse_certificate(text, "a.json");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(to_json(*read), text);
  EXPECT_EQ(read->optimized.hash, written.optimized.hash);
  EXPECT_EQ(read->plan, written.plan);
  EXPECT_EQ(read->input_shapes, written.input_shapes);
  EXPECT_EQ(read->allowed_domains, written.allowed_domains);
  ASSERT_EQ(read->steps.size(), 2U);
  const Match &a = read->steps[1].match, &b = written.steps[1].match;
  EXPECT_EQ(a.variables, b.variables);
  EXPECT_EQ(a.attributes, b.attributes);
  EXPECT_EQ(a.nodes, b.nodes);
  EXPECT_EQ(a.operand_begin, b.operand_begin);
  EXPECT_EQ(a.port_begin, b.port_begin);
}

TEST(Certificate, StepsInSubgraphsAreReadAsTheyWereWritten) {
  Certificate written = example();
  const std::vector<CertificateStep> steps = written.steps;
  written.bodies = {{"y", "body", {{"z", "then_branch", {}, steps}}, {}}, {"w", "else_branch", {}, {steps[0]}}};
  const std::string text = to_json(written);
  const Expected<Certificate> read = parse_certificate(text, "a.json");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(to_json(*read), text);
  ASSERT_EQ(read->bodies.size(), 2U);
  EXPECT_EQ(read->bodies[0].bodies.at(0).node, "z");
  EXPECT_EQ(read->bodies[0].bodies.at(0).attribute, "then_branch");
  EXPECT_EQ(read->bodies[0].bodies.at(0).steps.size(), 2U);
  EXPECT_EQ(read->bodies[1].steps.at(0).match.nodes, steps[0].match.nodes);
}

TEST(Certificate, SubgraphsThatAreWrong) {
  const auto message_of = [](const std::vector<BodySteps>& bodies, const std::string& from, const std::string& to) {
    Certificate certificate = example();
    certificate.bodies = bodies;
    std::string text = to_json(certificate);
    const std::size_t place = text.find(from);
    if (place != std::string::npos) text.replace(place, from.size(), to);
    const Expected<Certificate> read = parse_certificate(text, "a.json");
    return read ? std::string() : read.error().to_string();
  };
  const std::vector<BodySteps> one = {{"y", "body", {}, {}}};
  EXPECT_THAT(message_of(one, "\"node\": \"y\"", "\"node\": 1"),
              ::testing::HasSubstr("bodies[0].node: expected a text"));
  EXPECT_THAT(message_of(one, "\"attribute\"", "\"attributes\""),
              ::testing::HasSubstr("bodies[0]: expected an object with 'attribute'"));
  EXPECT_THAT(message_of(one, "\"steps\": []", "\"steps\": 1"),
              ::testing::HasSubstr("bodies[0].steps: expected a list"));
  std::vector<BodySteps> nested = one;
  for (int depth = 0; depth < 100; ++depth) nested = {{"y", "body", nested, {}}};
  EXPECT_THAT(message_of(nested, "nothing", ""), ::testing::HasSubstr("expected at most 100 subgraphs in each other"));
  EXPECT_EQ(message_of(nested[0].bodies, "nothing", ""), "");
}

TEST(Certificate, WithoutStepsIsOne) {
  Certificate none = example();
  none.steps.clear();
  none.external_data.reset();
  none.plan.reset();
  const Expected<Certificate> read = parse_certificate(to_json(none), "a.json");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_TRUE(read->steps.empty());
  EXPECT_FALSE(read->external_data);
  EXPECT_FALSE(read->plan);
}

TEST(Certificate, WhatIsWrongIsSaidInOneLine) {
  struct Case {
    std::string from, to, message;
  };
  const std::vector<Case> cases = {
      {"{\n", "\n", "this is not JSON"},
      {"taso-certificate", "certificate", "this is not a certificate of taso-opt"},
      {"\"version\": 2", "\"version\": 1",
       "a certificate of another version; this program reads version 2, which taso-opt writes now"},
      {"\"symbols\": null", "\"symbols\": 3", "symbols: expected null or an object"},
      {"\"symbols\": null", "\"symbols\": {\"n\": [1]}",
       "symbols.n: expected a list of the least size and the largest one, or null"},
      {"\"symbols\": null", "\"symbols\": {\"n\": [4, 3]}", "symbols.n: expected an integer from 4"},
      {"\"symbols\": null", "\"symbols\": {\"n\": [9223372036854775807, null]}",
       "symbols.n: expected an integer from 1 to 1099511627776"},
      {"\"original\"", "\"orginal\"", "certificate: expected an object with 'original'"},
      {"\"file\": \"in.onnx\"", "\"file\": 3", "original.file: expected a text"},
      {"in.onnx", "../in.onnx", "original.file: expected the name of a file, without a folder"},
      {"\"bytes\": 13", "\"bytes\": -1", "optimized.bytes: expected an integer from 0 to 9223372036854775807"},
      {"00000000000000010000000000000002", "0000000000000001000000000000000g",
       "original.hash: expected 32 hexadecimal digits"},
      {"\"out.plan.json\"", "null", "plan.file: expected a text"},
      {"\"x\": [", "\"x\": [\"n\",", "input_shapes.x: expected an integer from 0 to"},
      {"\"com.microsoft\"", "7", "allowed_domains[0]: expected a text"},
      {"\"rule twice:", "3, \"rule twice:", "rules[0]: expected a text"},
      {"\"rule\":\"twice\"", "\"rule\":null", "steps[0].rule: expected a text"},
      {"\"variables\":[[3,0],", "\"variables\":[[3],", "steps[0].variables: expected pairs of a node and an output"},
      {"\"variables\":[[3,0],", "\"variables\":[[3,-1],", "steps[0].variables: expected an integer from 0 to"},
      {"\"attributes\":[null,", "\"attributes\":[true,", "steps[0].attributes: expected null, an integer"},
      {"\"real\":\"0.1\"", "\"real\":\"0.1x\"", "steps[0].attributes.real: expected a number as text"},
      {"\"nodes\":[7,", "\"nodes\":[7.5,", "steps[0].nodes: expected an integer from 0 to"},
      {"\"nodes\":[7,", "\"nodes\":[99999999999999999999,", "steps[0].nodes: expected an integer from 0 to"},
      {"\"operand_begin\":[", "\"operand\":[", "steps[0]: expected an object with 'operand_begin'"},
      {"\"port_begin\":[0", "\"port_begin\":[-2", "steps[0].port_begin: expected an integer from -1 to"},
  };
  for (const Case& c : cases) {
    std::string text = to_json(example());
    const std::size_t place = text.find(c.from);
    ASSERT_NE(place, std::string::npos) << c.from;
    text.replace(place, c.from.size(), c.to);
    const Expected<Certificate> read = parse_certificate(text, "a.json");
    ASSERT_FALSE(read) << c.to;
    EXPECT_EQ(read.error().code, ErrorCode::bad_input);
    EXPECT_THAT(read.error().to_string(), ::testing::StartsWith("a.json: ")) << c.to;
    EXPECT_THAT(read.error().to_string(), ::testing::HasSubstr(c.message));
    EXPECT_EQ(read.error().to_string().find('\n'), std::string::npos);
  }
}

// No text whatever crashes the reader.
TEST(Certificate, DamagedTextsAreReadOrRefused) {
  const std::string text = to_json(example());
  Random random(3, "damage");
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = text;
    for (std::uint64_t changes = 1 + random.below(3); changes > 0; --changes) {
      const std::size_t place = random.below(damaged.size());
      switch (random.below(3)) {
        case 0:
          damaged[place] = static_cast<char>(random.below(256));
          break;
        case 1:
          damaged.erase(place, 1 + random.below(9));
          break;
        default:
          damaged.insert(place, damaged.substr(random.below(damaged.size()), random.below(12)));
      }
    }
    (void)parse_certificate(damaged, "a.json");
  }
}

TEST(CertificatePath, StandsBesideTheModel) {
  EXPECT_EQ(certificate_path("a/out.onnx"), "a/out.taso.json");
  EXPECT_EQ(certificate_path("out.v1.onnx"), "out.v1.taso.json");
  EXPECT_EQ(certificate_path("model"), "model.taso.json");
}

}  // namespace
}  // namespace taso
