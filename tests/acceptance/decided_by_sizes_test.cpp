// What the importer decides by the sizes of symbolic extents, or what the samples show, and is not so at all sizes.
#include <gmock/gmock.h>

#include <cstring>
#include <functional>

#include "tests/acceptance/symbolic.h"
#include "verifier/symbolic_sizes.h"

namespace taso::acceptance {
namespace {

using testing::HasSubstr;

// The rules are true.
struct Decision {
  const char* name;
  std::function<void(ModelBuilder&)> add;  // makes "z" of "x" ([n, 2])
  const char* rule;
  std::vector<const char*> sizes;  // where the result was another
  const char* why = "";            // what the program says
};

class DecidedBySizes : public Symbolic, public testing::WithParamInterface<Decision> {};

TEST_P(DecidedBySizes, IsDoneAtNoSize) {
  const Decision& decision = GetParam();
  ModelBuilder builder(17, "decided");
  builder.add_symbolic_input("x", {"n", "2"});
  for (const auto& [name, number] : std::map<std::string, std::int64_t>{
           {"zero", 0}, {"one", 1}, {"least", 20}, {"most", 300}, {"many", 30000}, {"end", std::int64_t{1} << 62}})
    builder.add_initializer(name, {1}, std::vector<std::int64_t>{number});
  builder.add_node("Shape", {"x"}, {"shape"}, {}, "shape");
  builder.add_node("Gather", {"shape", "zero"}, {"size"}, {{"axis", 0}}, "size");
  decision.add(builder);
  builder.add_symbolic_output("z", {"some", "2"});
  const std::string rules = folder_ / "own.rules";
  ASSERT_TRUE(write_file_atomically(rules, decision.rule).ok());
  std::vector<std::vector<std::string>> shapes;
  for (const char* size : decision.sizes) shapes.push_back({"x:" + std::string(size) + ",2"});
  optimize_for_all(message(builder.serialize()), shapes, {"--rules", rules, "-v"});
  EXPECT_THAT(warnings_ + report_, HasSubstr(decision.why));
}

constexpr const char* first_of_two =
    "rule r: slice(concat(x, y; axis=-2); starts=[0, 0], sizes=[dim(x, -2), dim(x, -1)], steps=[1, 1]) => x\n";

// Ends the model at 649 rows, beyond which the samples see nothing: "z" is "part" and the row of a table.
void end_at_649(ModelBuilder& b) {
  b.add_initializer("table", {650, 2}, numbers(1300));
  b.add_node("Gather", {"table", "size"}, {"row"}, {{"axis", 0}}, "row");
  b.add_node("Concat", {"part", "row"}, {"z"}, {{"axis", 0}}, "z");
}

INSTANTIATE_TEST_SUITE_P(
    All, DecidedBySizes,
    testing::Values(
        Decision{"FarBeyondTheSamples",
                 [](ModelBuilder& b) {
                   b.add_node("Slice", {"x", "zero", "many", "zero"}, {"y"}, {}, "first");
                   b.add_node("Concat", {"y", "x"}, {"both"}, {{"axis", 0}}, "both");
                   b.add_node("Slice", {"both", "zero", "size", "zero"}, {"z"}, {}, "slice");
                 },
                 first_of_two,
                 {"5", "30001"},
                 "node 5 (slice): sizes may depend on extents that are not known at all sizes"},
        Decision{"WhereTheModelHasAnotherForm",
                 [](ModelBuilder& b) {
                   b.add_node("Slice", {"x", "zero", "least", "zero"}, {"y"}, {}, "first");
                   b.add_node("Concat", {"y", "x"}, {"both"}, {{"axis", 0}}, "both");
                   b.add_node("Slice", {"both", "zero", "least", "zero"}, {"z"}, {}, "slice");
                 },
                 first_of_two,
                 {"15", "30"},
                 "node 1 (slice): slice: that the last element must lie inside x does not follow"},
        Decision{"IntegersOfExtentsThatAreNotKnown",
                 [](ModelBuilder& b) {
                   b.add_initializer("table", {600, 2}, numbers(1200));
                   b.add_node("Slice", {"x", "zero", "most", "zero"}, {"y"}, {}, "first");
                   b.add_node("Shape", {"y"}, {"shape_of_y"}, {}, "shape_of_y");
                   b.add_node("Gather", {"shape_of_y", "zero"}, {"size_of_y"}, {{"axis", 0}}, "size_of_y");
                   b.add_node("Slice", {"table", "zero", "size_of_y", "zero"}, {"rows"}, {}, "rows");
                   b.add_node("Concat", {"rows", "x"}, {"both"}, {{"axis", 0}}, "both");
                   b.add_node("Slice", {"both", "zero", "size", "zero"}, {"z"}, {}, "slice");
                 },
                 first_of_two,
                 {"5", "301", "450"},
                 "carried: 1 x Slice: extents of what it computes are not known at all sizes"},
        Decision{
            "FromTheEndAtSomeSizes",
            [](ModelBuilder& b) {
              b.add_initializer("table", {600, 2}, numbers(1200));
              b.add_node("Sub", {"most", "size"}, {"rest"}, {}, "rest");
              b.add_node("Slice", {"table", "zero", "rest", "zero"}, {"rows"}, {}, "rows");
              b.add_node("Neg", {"rows"}, {"negative"}, {}, "negative");
              b.add_node("Neg", {"negative"}, {"z"}, {}, "positive");
            },
            "rule r: neg(neg(x)) => slice(concat(x, neg(x); axis=-2); starts=[0, 0], sizes=[dim(x, -2), dim(x, -1)], "
            "steps=[1, 1]) if rank(x) == 2\n",
            {"5", "310", "400"}},
        Decision{"ASliceThatIsNone",
                 [](ModelBuilder& b) {
                   b.add_node("Sub", {"least", "size"}, {"before"}, {}, "before");
                   b.add_node("Sub", {"size", "least"}, {"after"}, {}, "after");
                   b.add_node("Slice", {"x", "before", "end", "zero"}, {"y"}, {}, "last");
                   b.add_node("Neg", {"y"}, {"negative"}, {}, "negative");
                   b.add_node("Slice", {"negative", "zero", "after", "zero"}, {"z"}, {}, "slice");
                 },
                 first_of_two,
                 {"15", "19", "30"},
                 "node 6 (slice): sizes may depend on extents that are not known at all sizes"},
        Decision{"AnExpansionThatIsNone",
                 [](ModelBuilder& b) {
                   b.add_initializer("twenty", {2}, std::vector<std::int64_t>{20, 2});
                   b.add_node("Slice", {"x", "zero", "least", "zero"}, {"y"}, {}, "first");
                   b.add_node("Expand", {"y", "twenty"}, {"all"}, {}, "expand");
                   b.add_node("Neg", {"all"}, {"z"}, {}, "negative");
                 },
                 first_of_two,
                 {"1", "20", "30"},
                 "a node may be another name of what it reads there"},
        Decision{"AReshapeThatIsNone",
                 [](ModelBuilder& b) {
                   b.add_initializer("rows", {2}, std::vector<std::int64_t>{-1, 2});
                   b.add_node("Squeeze", {"x"}, {"thin"}, {}, "squeeze");
                   b.add_node("Reshape", {"thin", "rows"}, {"y"}, {}, "again");
                   b.add_node("Neg", {"y"}, {"z"}, {}, "negative");
                 },
                 first_of_two,
                 {"1", "5"}},
        Decision{"SlicesThatAreAlikeAtSomeSizes",
                 [](ModelBuilder& b) {
                   b.add_initializer("five", {1}, std::vector<std::int64_t>{5});
                   b.add_initializer("last_five", {1}, std::vector<std::int64_t>{-5});
                   b.add_node("Sub", {"size", "five"}, {"place"}, {}, "place");
                   b.add_node("Slice", {"x", "last_five", "end", "zero"}, {"p"}, {}, "last");
                   b.add_node("Slice", {"x", "place", "size", "zero"}, {"q"}, {}, "slice");
                   b.add_node("Concat", {"p", "q"}, {"both"}, {{"axis", 0}}, "both");
                   b.add_node("Neg", {"both"}, {"negative"}, {}, "negative");
                   b.add_node("Neg", {"negative"}, {"z"}, {}, "positive");
                 },
                 "rule r: neg(neg(x)) => x\n",
                 {"3", "4", "9"},
                 "2 x Slice: extents of what it computes are not known at all sizes"},
        Decision{"ARangeInLargeSteps",
                 [](ModelBuilder& b) {
                   b.add_initializer("table", {600, 2}, numbers(1200));
                   b.add_initializer("start", {}, std::vector<std::int64_t>{0});
                   b.add_initializer("step", {}, std::vector<std::int64_t>{30000});
                   b.add_node("Squeeze", {"size"}, {"limit"}, {}, "limit");
                   b.add_node("Range", {"start", "limit", "step"}, {"places"}, {}, "range");
                   b.add_node("Shape", {"places"}, {"count"}, {}, "count");
                   b.add_node("Slice", {"table", "zero", "count", "zero"}, {"z"}, {}, "slice");
                 },
                 first_of_two,
                 {"5", "30001"},
                 "Range of symbolic extents is not known at all sizes"},
        Decision{"AMinimumOfALengthUnderAnotherName",
                 [](ModelBuilder& b) {
                   b.add_initializer("table", {600, 2}, numbers(1200));
                   b.add_initializer("two", {1}, std::vector<std::int64_t>{2});
                   b.add_node("ConstantOfShape", {"size"}, {"zeros"}, {}, "zeros");
                   b.add_node("Cast", {"zeros"}, {"again"}, {{"to", 1}}, "cast");
                   b.add_node("Shape", {"again"}, {"length"}, {}, "length");
                   b.add_node("Min", {"length", "two"}, {"least_length"}, {}, "min");
                   b.add_node("Slice", {"table", "zero", "least_length", "zero"}, {"rows"}, {}, "rows");
                   b.add_node("Neg", {"rows"}, {"z"}, {}, "negative");
                 },
                 first_of_two,
                 {"1", "5"}},
        Decision{"AMaskThatBeginsFarAway",
                 [](ModelBuilder& b) {
                   b.add_initializer("far", {}, std::vector<std::int64_t>{-30000});
                   b.add_node("Trilu", {"x", "far"}, {"y"}, {{"upper", 1}}, "mask");
                   b.add_node("Neg", {"y"}, {"z"}, {}, "negative");
                 },
                 "rule r: neg(mul(x, y)) => mul(neg(x), y)\n",
                 {"5", "30010"}},
        // What the samples show of lists that the file holds.
        Decision{"ALengthThatIsRounded",
                 [](ModelBuilder& b) {
                   b.add_initializer("scales", {2}, std::vector<float>{1.01F, 1});
                   b.add_node("Resize", {"x", "", "scales"}, {"large"}, {{"mode", "nearest"}}, "resize");
                   b.add_node("Slice", {"large", "zero", "size", "zero"}, {"part"}, {}, "slice");
                   end_at_649(b);
                 },
                 first_of_two,
                 {"5", "99", "150", "649"}},
        Decision{"AnExpansionToTheLength",
                 [](ModelBuilder& b) {
                   b.add_initializer("two", {1}, std::vector<std::int64_t>{2});
                   b.add_initializer("three", {1}, std::vector<std::int64_t>{3});
                   b.add_initializer("from_end", {1}, std::vector<std::int64_t>{-300});
                   b.add_initializer("rows", {2}, std::vector<std::int64_t>{-1, 2});
                   b.add_node("Slice", {"x", "from_end", "most", "zero"}, {"middle"}, {}, "middle");
                   b.add_node("Concat", {"three", "size", "two"}, {"target"}, {{"axis", 0}}, "target");
                   b.add_node("Expand", {"middle", "target"}, {"all"}, {}, "expand");
                   b.add_node("Reshape", {"all", "rows"}, {"z"}, {}, "z");
                 },
                 first_of_two,
                 {"5", "300", "599"}},
        // The list of its slice is that of another one at most samples.
        Decision{"AQuotientThatIsOne",
                 [](ModelBuilder& b) {
                   b.add_initializer("image", {4}, std::vector<std::int64_t>{1, 1, -1, 2});
                   b.add_initializer("flat", {2}, std::vector<std::int64_t>{-1, 2});
                   const auto negate = [&](const std::string& name) {
                     for (int i = 0; i < 6; ++i)
                       b.add_node("Neg", {name + std::to_string(i)}, {name + std::to_string(i + 1)}, {},
                                  name + "_" + std::to_string(i));
                   };
                   b.add_node("Reshape", {"x", "image"}, {"columns"}, {}, "columns");
                   b.add_node("MaxPool", {"columns"}, {"p0"}, {{"kernel_shape", {1, 1}}, {"strides", {50, 1}}}, "pool");
                   negate("p");
                   b.add_node("ReduceMean", {"columns"}, {"mean"}, {{"axes", {2}}, {"keepdims", 1}}, "mean");
                   b.add_node("Sigmoid", {"mean"}, {"s0"}, {}, "sigmoid");
                   negate("s");
                   b.add_node("Concat", {"p6", "s6"}, {"both"}, {{"axis", 2}}, "both");
                   b.add_node("Reshape", {"both", "flat"}, {"z"}, {}, "z");
                 },
                 "rule r: neg(neg(neg(neg(neg(neg(max_pool2d(x; kernel=[1, 1], strides=[50, 1], pads=[0, 0, 0, 0], "
                 "dilations=[1, 1]))))))) => slice(concat(max_pool2d(x; kernel=[1, 1], strides=[50, 1], "
                 "pads=[0, 0, 0, 0], dilations=[1, 1]), max_pool2d(x; kernel=[1, 1], strides=[50, 1], "
                 "pads=[0, 0, 0, 0], dilations=[1, 1]); axis=-2); starts=[0, 0, 0, 0], sizes=[dim(x, -4), dim(x, -3), "
                 "(dim(x, -2) - 1) // 50 + 1, dim(x, -1)], steps=[1, 1, 1, 1])\n"
                 "rule s: neg(neg(neg(neg(neg(neg(sigmoid(x))))))) => slice(concat(sigmoid(x), sigmoid(x); axis=-2); "
                 "starts=[0, 0, 0, 0], sizes=[dim(x, -4), dim(x, -3), dim(x, -2), dim(x, -1)], steps=[1, 1, 1, 1]) "
                 "if rank(x) == 4\n",
                 {"5", "51", "600"}},  // the list in the file divides
        // Zeros at every size at which the list is short enough to be looked at.
        Decision{"APositionThatIsDivided",
                 [](ModelBuilder& b) {
                   b.add_initializer("from", {}, std::vector<std::int64_t>{0});
                   b.add_initializer("step", {}, std::vector<std::int64_t>{1});
                   b.add_initializer("thousands", {1}, std::vector<std::int64_t>{4000});
                   b.add_initializer("table", {2, 2}, numbers(4));
                   b.add_node("Gather", {"shape", "from"}, {"limit"}, {{"axis", 0}}, "limit");
                   b.add_node("Range", {"from", "limit", "step"}, {"range"}, {}, "range");
                   b.add_node("Div", {"range", "thousands"}, {"places"}, {}, "places");
                   b.add_node("Gather", {"table", "places"}, {"rows"}, {{"axis", 0}}, "rows");
                   b.add_node("Add", {"x", "rows"}, {"z"}, {}, "z");
                 },
                 first_of_two,
                 {"5", "4050"}},
        // Integers of the model are polynomials of any degree; and a range may be empty.
        Decision{"AProductThatIsZeroAtAllSamples",
                 [](ModelBuilder& b) {
                   b.add_initializer("tail", {21, 2}, numbers(42));
                   b.add_initializer("weights", {10, 2}, numbers(20));
                   b.add_initializer("five", {1}, std::vector<std::int64_t>{5});
                   std::string product;
                   for (std::int64_t i = 2; i <= 20; ++i) {
                     const std::string difference = "d" + std::to_string(i);
                     b.add_initializer("k" + difference, {1}, std::vector<std::int64_t>{i});
                     b.add_node("Sub", {"size", "k" + difference}, {difference}, {}, difference);
                     if (!product.empty())
                       b.add_node("Mul", {product, difference}, {"p" + difference}, {}, "p" + difference);
                     product = product.empty() ? difference : "p" + difference;
                   }
                   b.add_node("Add", {product, "five"}, {"count"}, {}, "count");
                   b.add_node("Slice", {"weights", "zero", "count", "zero"}, {"part"}, {}, "slice");
                   b.add_node("Gather", {"tail", "size"}, {"row"}, {{"axis", 0}}, "row");  // ends the model at 20
                   b.add_node("Concat", {"part", "row"}, {"both"}, {{"axis", 0}}, "both");
                   b.add_node("Add", {"both", "row"}, {"z"}, {}, "z");
                 },
                 first_of_two,
                 {"2", "20"},
                 "a size that is no polynomial of the symbolic extents with coefficients of 64 bits"},
        Decision{"ARangeThatIsEmpty",
                 [](ModelBuilder& b) {
                   b.add_initializer("start", {}, std::vector<std::int64_t>{0});
                   b.add_initializer("step", {}, std::vector<std::int64_t>{1});
                   b.add_initializer("two", {1}, std::vector<std::int64_t>{2});
                   b.add_initializer("seven", {1}, std::vector<std::int64_t>{7});
                   b.add_initializer("v", {1, 2}, numbers(2));
                   b.add_node("Sub", {"size", "two"}, {"less"}, {}, "less");
                   b.add_node("Squeeze", {"less"}, {"limit"}, {}, "limit");
                   b.add_node("Range", {"start", "limit", "step"}, {"places"}, {}, "range");
                   b.add_node("Shape", {"places"}, {"length"}, {}, "length");
                   b.add_node("Add", {"length", "seven"}, {"count"}, {}, "count");
                   b.add_node("Concat", {"count", "two"}, {"target"}, {{"axis", 0}}, "target");
                   b.add_node("Expand", {"v", "target"}, {"rows"}, {}, "expand");
                   b.add_node("Relu", {"rows"}, {"z"}, {}, "relu");
                 },
                 first_of_two,
                 {"1", "2", "5"},
                 "a list has length n - 2, and that this is not negative does not follow"},
        // The rows of a batch stand where an image has its height.
        Decision{
            "CeilingsOfABatch",
            [](ModelBuilder& b) {
              b.add_initializer("image", {4}, std::vector<std::int64_t>{1, 1, -1, 2});
              b.add_initializer("flat", {2}, std::vector<std::int64_t>{-1, 2});
              b.add_node("Reshape", {"x", "image"}, {"columns"}, {}, "columns");
              b.add_node("Neg", {"columns"}, {"negative"}, {}, "negative");
              b.add_node("AveragePool", {"negative"}, {"pooled"},
                         {{"kernel_shape", {2, 1}}, {"strides", {2, 1}}, {"ceil_mode", 1}, {"count_include_pad", 1}},
                         "pool");
              b.add_node("Neg", {"pooled"}, {"positive"}, {}, "positive");
              b.add_node("Reshape", {"positive", "flat"}, {"z"}, {}, "z");
            },
            "rule r: neg(avg_pool2d_include(neg(x); kernel=k, strides=s, pads=p)) => avg_pool2d_include(x; kernel=k, "
            "strides=s, pads=p)\n",
            {"4", "5", "7"},
            "(avg_pool2d_include): it rounds extents that are not one number"},
        // A pooling of pairs and its inverse are of the size only where that is even.
        Decision{
            "EvenSizes",
            [](ModelBuilder& b) {
              b.add_initializer("image", {4}, std::vector<std::int64_t>{1, 1, -1, 2});
              b.add_initializer("flat", {2}, std::vector<std::int64_t>{-1, 2});
              b.add_initializer("kernel", {1, 1, 2, 1}, numbers(2));
              b.add_node("Reshape", {"x", "image"}, {"columns"}, {}, "columns");
              b.add_node("MaxPool", {"columns"}, {"pooled"}, {{"kernel_shape", {2, 1}}, {"strides", {2, 1}}}, "pool");
              b.add_node("ConvTranspose", {"pooled", "kernel"}, {"large"},
                         {{"kernel_shape", {2, 1}}, {"strides", {2, 1}}}, "deconvolution");
              b.add_node("Reshape", {"large", "flat"}, {"y"}, {}, "y");
              b.add_node("Concat", {"y", "x"}, {"both"}, {{"axis", 0}}, "both");
              b.add_node("Slice", {"both", "zero", "size", "zero"}, {"z"}, {}, "slice");
            },
            first_of_two,
            {"4", "5", "7"}}),
    [](const auto& decision) { return decision.param.name; });

// Sizes of a symbol are as many as tell something of others, whatever other symbols there are.
TEST_F(Symbolic, ASizeThatTheSamplesHaveInCommon) {
  for (const char* range : {"n=1:2", "n=1:3", "n=40:"}) {
    ModelBuilder builder(17, "common");
    builder.add_symbolic_input("x", {"n", "2"});
    builder.add_symbolic_input("y", {"m", "2"});
    builder.add_node("Neg", {"x"}, {"negative"}, {}, "negative");
    builder.add_node("Neg", {"negative"}, {"z"}, {}, "positive");
    builder.add_node("Relu", {"y"}, {"w"}, {}, "relu");
    builder.add_symbolic_output("z", {"n", "2"});
    builder.add_symbolic_output("w", {"m", "2"});
    const std::string rules = folder_ / "own.rules";
    const std::string size = range == std::string("n=40:") ? "40" : "2";
    ASSERT_TRUE(
        write_file_atomically(rules, "rule r: neg(neg(x)) => slice(concat(x, x; axis=-2); starts=[0, 0], sizes=[" +
                                         size + ", 2], steps=[1, 1]) if dim(x, -2) == " + size + "\n")
            .ok());
    optimize_for_all(message(builder.serialize()),
                     size == "2" ? std::vector<std::vector<std::string>>{{"x:1,2", "y:5,2"}, {"x:2,2", "y:5,2"}}
                                 : std::vector<std::vector<std::string>>{{"x:40,2", "y:5,2"}, {"x:50,2", "y:5,2"}},
                     {"--rules", rules, "--range", range});
  }
}

// 5 + (n - 2)(n - 3)...(n - 9) is 5 at all sizes of the range: samples do not tell that it is no number.
TEST_F(Symbolic, AnIntegerThatTheSamplesDoNotTell) {
  ModelBuilder builder(17, "not_told");
  builder.add_symbolic_input("x", {"n", "2"});
  builder.add_initializer("zero", {1}, std::vector<std::int64_t>{0});
  builder.add_initializer("five", {1}, std::vector<std::int64_t>{5});
  builder.add_initializer("weights", {10, 2}, numbers(20));
  builder.add_node("Shape", {"x"}, {"shape"}, {}, "shape");
  builder.add_node("Gather", {"shape", "zero"}, {"size"}, {{"axis", 0}}, "size");
  std::string count = "five";
  for (std::int64_t i = 2; i <= 9; ++i) {
    const std::string number = std::to_string(i);
    builder.add_initializer("k" + number, {1}, std::vector<std::int64_t>{i});
    builder.add_node("Sub", {"size", "k" + number}, {"d" + number}, {}, "d" + number);
    if (i > 2) builder.add_node("Mul", {count, "d" + number}, {"p" + number}, {}, "p" + number);
    count = (i > 2 ? "p" : "d") + number;
  }
  builder.add_node("Add", {count, "five"}, {"count"}, {}, "count");
  builder.add_node("Slice", {"weights", "zero", "count", "zero"}, {"rows"}, {}, "slice");
  builder.add_node("Relu", {"rows"}, {"y"}, {}, "relu");
  builder.add_symbolic_output("y", {"some", "2"});
  optimize_for_all(message(builder.serialize()), {{"x:2,2"}, {"x:9,2"}}, {"--range", "n=2:9"});
  EXPECT_THAT(warnings_, HasSubstr("an integer of the model, is not told by its values at the samples"));
}

// A table is cut around its middle, as wide as the input says; what is behind asks how much that is.
ModelBuilder cut_around_the_middle() {
  ModelBuilder builder(17, "middle");
  builder.add_symbolic_input("x", {"n", "2"});
  builder.add_initializer("zero", {1}, std::vector<std::int64_t>{0});
  builder.add_initializer("middle", {1}, std::vector<std::int64_t>{6});
  builder.add_initializer("table", {12, 2}, numbers(24));
  builder.add_node("Shape", {"x"}, {"shape"}, {}, "shape");
  builder.add_node("Gather", {"shape", "zero"}, {"size"}, {{"axis", 0}}, "size");
  builder.add_node("Sub", {"middle", "size"}, {"begin"}, {}, "begin");
  builder.add_node("Add", {"middle", "size"}, {"end"}, {}, "end");
  builder.add_node("Slice", {"table", "begin", "end", "zero"}, {"rows"}, {}, "rows");
  builder.add_node("Shape", {"rows"}, {"shape_of_rows"}, {}, "shape_of_rows");
  builder.add_node("Gather", {"shape_of_rows", "zero"}, {"count"}, {{"axis", 0}}, "count");
  builder.add_node("Slice", {"table", "zero", "count", "zero"}, {"first_rows"}, {}, "first_rows");
  builder.add_node("Add", {"rows", "first_rows"}, {"y"}, {}, "y");
  builder.add_node("Neg", {"x"}, {"negative"}, {}, "negative");
  builder.add_node("Neg", {"negative"}, {"positive"}, {}, "positive");
  builder.add_node("Relu", {"positive"}, {"z"}, {}, "relu");
  builder.add_symbolic_output("z", {"n", "2"});
  builder.add_symbolic_output("y", {"some", "2"});
  return builder;
}

TEST_F(Symbolic, ExtentsThatAreNotKnownStayAlone) {
  const std::string rules = folder_ / "own.rules";
  ASSERT_TRUE(write_file_atomically(rules, "rule r: neg(neg(x)) => x\n").ok());
  const onnx::ModelProto after = optimize_for_all(message(cut_around_the_middle().serialize()),
                                                  {{"x:2,2"}, {"x:6,2"}, {"x:9,2"}}, {"--rules", rules, "-v"});
  EXPECT_EQ(counts(after)["Neg"], 0);
  EXPECT_THAT(report_, HasSubstr("1 of 5 nodes of the file are carried, 0 of them for what they read"));
}

TEST_F(Symbolic, IntegersInListsAreKnownWithinARange) {
  const std::string rules = folder_ / "own.rules";
  ASSERT_TRUE(write_file_atomically(rules, "rule r: neg(neg(x)) => x\n").ok());
  const onnx::ModelProto after =
      optimize_for_all(message(cut_around_the_middle().serialize()), {{"x:1,2"}, {"x:2,2"}, {"x:6,2"}},
                       {"--rules", rules, "-v", "--range", "n=1:6"});
  EXPECT_EQ(counts(after)["Neg"], 0);
  EXPECT_THAT(report_ + warnings_, testing::Not(HasSubstr("not touched")));
  EXPECT_THAT(report_ + warnings_, testing::Not(HasSubstr("are carried")));
}

TEST_F(Symbolic, NothingMoreIsUnderstood) {
  ModelBuilder builder(17, "at_most_two");
  builder.add_symbolic_input("x", {"n", "2"});
  builder.add_initializer("zero", {1}, std::vector<std::int64_t>{0});
  builder.add_initializer("two", {1}, std::vector<std::int64_t>{2});
  builder.add_node("Shape", {"x"}, {"shape"}, {}, "shape");
  builder.add_node("Gather", {"shape", "zero"}, {"size"}, {{"axis", 0}}, "size");
  builder.add_node("Min", {"size", "two"}, {"some"}, {}, "some");
  builder.add_node("Slice", {"x", "zero", "some", "zero"}, {"y"}, {}, "slice");
  builder.add_symbolic_output("y", {"some", "2"});
  optimize_for_all(message(builder.serialize()), {{"x:4,2"}});
  EXPECT_THAT(warnings_,
              HasSubstr("no more of it is understood at all sizes: Min of symbolic extents is not known at all sizes"));
}

// A number of the model is none of the names that stand for sizes.
TEST_F(Symbolic, ANumberThatIsLikeAName) {
  const std::int64_t name = SymbolicSizes({{"n", {}, {2, 3, 5, 7}}}).symbol(0);
  ModelBuilder builder(17, "number");
  builder.add_symbolic_input("x", {"n", "2"});
  builder.add_input("i", {3}, ElementType::i64);
  builder.add_initializer("before", {1}, std::vector<std::int64_t>{name - 1});
  builder.add_initializer("one", {1}, std::vector<std::int64_t>{1});
  builder.add_node("Add", {"before", "one"}, {"number"}, {}, "number");
  builder.add_node("Add", {"i", "number"}, {"j"}, {}, "j");
  builder.add_node("Neg", {"x"}, {"negative"}, {}, "negative");
  builder.add_node("Neg", {"negative"}, {"positive"}, {}, "positive");
  builder.add_node("Relu", {"positive"}, {"z"}, {}, "relu");
  builder.add_symbolic_output("z", {"n", "2"});
  builder.add_output("j", {3}, ElementType::i64);
  const std::string rules = folder_ / "own.rules";
  ASSERT_TRUE(write_file_atomically(rules, "rule r: neg(neg(x)) => x\n").ok());
  const onnx::ModelProto after = optimize_for_all(message(builder.serialize()), {{"x:3,2"}}, {"--rules", rules});
  EXPECT_EQ(counts(after)["Shape"], 0);
  EXPECT_EQ(counts(after)["Neg"], 0);
  const auto& constants = after.graph().initializer();
  EXPECT_TRUE(std::any_of(constants.begin(), constants.end(), [&](const onnx::TensorProto& constant) {
    std::int64_t value = 0;
    if (constant.data_type() != onnx::TensorProto::INT64 || constant.raw_data().size() != sizeof value) return false;
    std::memcpy(&value, constant.raw_data().data(), sizeof value);
    return value == name;
  }));
}

// Weights that are computed when the file is written take names, too.
TEST_F(Symbolic, ListsBesideComputedWeights) {
  ModelBuilder builder(17, "weights");
  builder.add_symbolic_input("x", {"8", "n"});
  builder.add_input("y", {600, 4});
  builder.add_initializer("ones", {300, 4}, std::vector<float>(1200, 1.0F));
  builder.add_initializer("zero", {1}, std::vector<std::int64_t>{0});
  builder.add_initializer("two", {1}, std::vector<std::int64_t>{2});
  builder.add_initializer("eight", {1}, std::vector<std::int64_t>{4});
  builder.add_node("Concat", {"ones", "ones"}, {"weights"}, {{"axis", 0}}, "weights");
  builder.add_node("Add", {"y", "weights"}, {"sum"}, {}, "sum");
  builder.add_node("Shape", {"x"}, {"shape"}, {}, "shape");
  builder.add_node("Gather", {"shape", "one"}, {"size"}, {{"axis", 0}}, "size");
  builder.add_initializer("one", {1}, std::vector<std::int64_t>{1});
  builder.add_node("Mul", {"size", "two"}, {"double"}, {}, "double");
  builder.add_node("Concat", {"double", "eight"}, {"list"}, {{"axis", 0}}, "list");
  builder.add_node("Reshape", {"x", "list"}, {"thin"}, {}, "thin");
  std::string last = "x";
  for (int i = 0; i < 6; ++i) {
    builder.add_node("Neg", {last}, {"n" + std::to_string(i)}, {}, "negative" + std::to_string(i));
    last = "n" + std::to_string(i);
  }
  builder.add_symbolic_output(last, {"8", "n"});
  builder.add_symbolic_output("thin", {"double", "4"});
  builder.add_output("sum", {600, 4});
  const std::string rules = folder_ / "own.rules";
  ASSERT_TRUE(write_file_atomically(
                  rules,
                  "rule r: neg(neg(neg(neg(neg(neg(x)))))) => slice(concat(x, neg(x); axis=-1); starts=[0, 0], "
                  "sizes=[dim(x, -2), dim(x, -1)], steps=[1, 1]) if rank(x) == 2\n")
                  .ok());
  const onnx::ModelProto after =
      optimize_for_all(message(builder.serialize()), {{"x:8,1"}, {"x:8,2"}, {"x:8,50"}}, {"--rules", rules});
  EXPECT_EQ(counts(after)["Slice"], 1);
}

// A subgraph reads a list that depends on the sizes, and its node another tensor than before.
TEST_F(Symbolic, ListsThatSubgraphsRead) {
  ModelBuilder builder(17, "subgraph");
  builder.add_symbolic_input("x", {"n", "2"});
  builder.add_initializer("two", {1}, std::vector<std::int64_t>{2});
  builder.add_node("Shape", {"x"}, {"shape"}, {}, "shape");
  builder.add_node("Mul", {"shape", "two"}, {"list"}, {}, "list");
  builder.add_node("Identity", {"x"}, {"same"}, {}, "same");
  builder.add_node("Neg", {"x"}, {"negative"}, {}, "negative");
  builder.add_node("Neg", {"negative"}, {"z"}, {}, "positive");
  builder.add_symbolic_output("z", {"n", "2"});
  builder.add_symbolic_output("y", {"n", "2"});
  onnx::ModelProto model = message(builder.serialize());
  auto& outer = *model.mutable_graph();
  const auto add_initializer = [](onnx::GraphProto& graph, const std::string& name, bool boolean) {
    auto& tensor = *graph.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(boolean ? onnx::TensorProto::BOOL : onnx::TensorProto::INT64);
    tensor.set_raw_data(std::string(boolean ? "\1" : "\1\0\0\0\0\0\0\0", boolean ? 1 : 8));
  };
  add_initializer(outer, "trips", false);
  add_initializer(outer, "always", true);
  auto& loop = *outer.add_node();
  loop.set_op_type("Loop");
  loop.set_name("loop");
  for (const char* input : {"trips", "always", "same"}) loop.add_input(input);
  loop.add_output("y");
  auto& attribute = *loop.add_attribute();
  attribute.set_name("body");
  attribute.set_type(onnx::AttributeProto::GRAPH);
  auto& body = *attribute.mutable_g();
  body.set_name("body");
  const auto add_value = [](onnx::ValueInfoProto& value, const std::string& name, int type) {
    value.set_name(name);
    value.mutable_type()->mutable_tensor_type()->set_elem_type(type);
  };
  add_value(*body.add_input(), "trip", onnx::TensorProto::INT64);
  add_value(*body.add_input(), "goes_on", onnx::TensorProto::BOOL);
  add_value(*body.add_input(), "state", onnx::TensorProto::FLOAT);
  const auto add_node = [&](const std::string& op_type, const std::vector<std::string>& inputs,
                            const std::string& output) -> onnx::NodeProto& {
    auto& node = *body.add_node();
    node.set_op_type(op_type);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    return node;
  };
  add_node("Identity", {"goes_on"}, "still");
  auto& to = *add_node("Cast", {"list"}, "numbers").add_attribute();
  to.set_name("to");
  to.set_type(onnx::AttributeProto::INT);
  to.set_i(onnx::TensorProto::FLOAT);
  add_node("Add", {"state", "numbers"}, "next");
  add_value(*body.add_output(), "still", onnx::TensorProto::BOOL);
  add_value(*body.add_output(), "next", onnx::TensorProto::FLOAT);
  const onnx::ModelProto after = optimize_for_all(model, {{"x:3,2"}});
  EXPECT_EQ(counts(after)["Mul"], 1);
  EXPECT_EQ(counts(after)["Neg"], 0);
}

// An extent without a name is not that of another input which is called so.
TEST_F(Symbolic, NamesOfExtentsAreApart) {
  ModelBuilder builder(17, "names");
  builder.add_symbolic_input("x", {"", "2"});
  builder.add_symbolic_input("y", {"x[0]", "2"});
  builder.add_node("Concat", {"x", "y"}, {"both"}, {{"axis", 0}}, "both");
  builder.add_node("Shape", {"y"}, {"shape"}, {}, "shape");
  builder.add_initializer("zero", {1}, std::vector<std::int64_t>{0});
  builder.add_node("Gather", {"shape", "zero"}, {"size"}, {{"axis", 0}}, "size");
  builder.add_node("Slice", {"both", "zero", "size", "zero"}, {"z"}, {}, "slice");
  builder.add_symbolic_output("z", {"some", "2"});
  const std::string rules = folder_ / "own.rules";
  ASSERT_TRUE(write_file_atomically(rules, first_of_two).ok());
  optimize_for_all(message(builder.serialize()), {{"x:5,2", "y:3,2"}, {"x:3,2", "y:5,2"}}, {"--rules", rules});
}

}  // namespace
}  // namespace taso::acceptance
