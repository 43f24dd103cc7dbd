#include "support/markup.h"

#include <gtest/gtest.h>

namespace taso {
namespace {

TEST(EscapeMarkup, WritesWhatHasAMeaningAsEntities) {
  EXPECT_EQ(escape_markup("a < b && \"c\" > d\n\te"), "a &lt; b &amp;&amp; &quot;c&quot; &gt; d&#10;\te");
  EXPECT_EQ(escape_markup(std::string_view("x\0\x1b[0my", 7)), "x[0my") << "control characters are left out";
  EXPECT_EQ(escape_markup("5.0 \u00b5s"), "5.0 \u00b5s");
  EXPECT_EQ(escape_markup(""), "");
}

}  // namespace
}  // namespace taso
