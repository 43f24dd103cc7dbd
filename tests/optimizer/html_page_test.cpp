// The HTML report in headless Chromium: what its script makes of it. Skipped where there is no Chromium.
#include <gtest/gtest-spi.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "support/file.h"
#include "tests/optimizer/reports.h"

namespace taso::testing {
namespace {

/// Put at the end of a page: does what a test says once the page has drawn itself, and writes down what is seen then.
constexpr const char* probe_begin = R"(<script>
addEventListener('error', (event) => console.error(event.message));
const key = (side, name) => document.querySelectorAll('.drawing')[side].dispatchEvent(
    new KeyboardEvent('keydown', {key: name, bubbles: true, cancelable: true}));
const drawn = () => new Promise((done) => setTimeout(done, 500));
function coloursOf(canvas) {
  const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  return new Set(new Uint32Array(data.buffer)).size;
}
const all = (selector, of) => [...document.querySelectorAll(selector)].map(of);
drawn().then(async () => {
)";
constexpr const char* probe_end = R"(
  await drawn();
  const seen = document.createElement('pre');
  seen.id = 'seen';
  seen.textContent = 'SEEN' + btoa(encodeURIComponent(JSON.stringify({
    drawn: all('.drawing', (canvas) => Number(canvas.dataset.drawn)),
    colours: all('.drawing', coloursOf),
    map_colours: all('.map', coloursOf),
    ground: getComputedStyle(document.body).backgroundColor,
    found: document.getElementById('found').textContent,
    nodes: all('.node', (panel) => panel.textContent),
    sizes: all('.size', (size) => size.textContent),
    focused: all('.drawing', (canvas) => canvas === document.activeElement),
    places: all('.rule li', (item) => item.textContent),
    measures: all('.measure', (panel) => panel.checkVisibility()),
    wide: document.documentElement.scrollWidth > innerWidth,
  }))) + 'NEES';
  document.body.append(seen);
});
</script>)";

std::string decoded(const std::string& text) {
  std::string plain;  // Base64, then percent encoding.
  unsigned bits = 0, value = 0;
  for (const char c : text) {
    const std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::size_t digit = alphabet.find(c);
    if (digit == std::string_view::npos) break;
    value = value << 6 | static_cast<unsigned>(digit);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    plain += static_cast<char>(value >> bits & 0xFF);
  }
  std::string json;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (plain[i] != '%') {
      json += plain[i];
      continue;
    }
    json += static_cast<char>(std::stoi(plain.substr(i + 1, 2), nullptr, 16));
    i += 2;
  }
  return json;
}

class HtmlPage : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("chromium --version > /dev/null 2>&1") != 0)
      GTEST_SKIP() << "SKIP: no chromium (scripts/setup --developer installs it)";
  }

  /// What is seen on the page after `script`, at an address that ends in `fragment`, with more options of Chromium. It
  /// must load without a word on the console.
  nlohmann::json seen(const std::string& page, const std::string& script = "", const std::string& fragment = "",
                      const std::string& options = "") {
    const std::size_t end = page.rfind("</body>");
    write_file(folder / "page.html", page.substr(0, end) + probe_begin + script + probe_end + page.substr(end));
    const std::string command =
        "timeout 120 chromium --headless --no-sandbox --disable-gpu --no-first-run " + options +
        " --user-data-dir=" + (folder / ("profile" + std::to_string(++runs_))) +
        " --window-size=1400,1200 --virtual-time-budget=8000 --enable-logging=stderr --dump-dom "
        "'file://" +
        (folder / "page.html") + fragment + "' > " + (folder / "dom") + " 2> " + (folder / "log");
    EXPECT_EQ(std::system(command.c_str()), 0);
    const std::string log = value_of(read_file(folder / "log")), dom = value_of(read_file(folder / "dom"));
    EXPECT_EQ(log.find("CONSOLE"), std::string::npos) << log;
    const std::size_t begin = dom.rfind(">SEEN"), stop = dom.find("NEES<", begin);
    EXPECT_NE(begin, std::string::npos) << log;
    if (begin == std::string::npos || stop == std::string::npos) return nlohmann::json::object();
    return nlohmann::json::parse(decoded(dom.substr(begin + 5, stop - begin - 5)));
  }

  TemporaryFolder folder;

 private:
  int runs_ = 0;  ///< Each has a profile of its own: a process that is about to end may still hold the last one.
};

TEST_F(HtmlPage, ShowsBothGraphs) {
  const nlohmann::json page = seen(small_report().page());
  EXPECT_EQ(page["drawn"], (std::vector<int>{6, 5}));
  for (const int colours : page["colours"]) EXPECT_GT(colours, 10) << "boxes, lines and texts are drawn";
  for (const int colours : page["map_colours"]) EXPECT_GT(colours, 2);
  EXPECT_EQ(page["sizes"],
            (std::vector<std::string>{"6 nodes, 2 changed, 1 carried", "5 nodes, 1 changed, 1 carried"}));
  EXPECT_EQ(page["measures"], (std::vector<bool>{true, false, false, false, false}));
  EXPECT_EQ(page["found"], "");
  EXPECT_FALSE(page["wide"].get<bool>()) << "nothing sticks out of the page";
}

/// A test of the test: what goes wrong on a page is seen.
TEST_F(HtmlPage, AnErrorOnThePageIsNoticed) {
  EXPECT_NONFATAL_FAILURE([&] { seen(small_report().page(), "console.error('planted');"); }(), "planted");
}

TEST_F(HtmlPage, SearchFindsANode) {
  const std::string page = small_report().page();
  const nlohmann::json linked = seen(page, "", "#search=RELU");
  EXPECT_EQ(linked["found"], "2 in the original, 0 in the result");
  const std::string node = linked["nodes"][0];
  for (const std::string part : {"relu", "f32[2, 3]", "own elementwise", "row -> row", "2 \u00b5s predicted",
                                 "2.5 \u00b5s measured", "region 1 of 1"})
    EXPECT_NE(node.find(part), std::string::npos) << part << "\n" << node;
  const nlohmann::json typed = seen(page,
                                    "const box = document.getElementById('search'); box.value = 'mystery';"
                                    "box.dispatchEvent(new Event('input'));"
                                    "box.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}));");
  EXPECT_EQ(typed["found"], "1 in the original, 1 in the result");
  for (const std::string told : typed["nodes"]) EXPECT_NE(told.find("no map reads it"), std::string::npos) << told;
  EXPECT_EQ(seen(page, "", "#search=nowhere")["found"], "nothing found");
}

TEST_F(HtmlPage, KeysGoAlongLinesAndToTheOtherSide) {
  const nlohmann::json page = seen(small_report().page(),
                                   "document.querySelector('.drawing').focus();"
                                   "key(0, 'ArrowDown'); key(0, 'ArrowDown'); key(0, 'ArrowDown');"
                                   "key(0, '+'); key(0, '-'); key(0, '0'); key(0, 'Enter');");
  const std::string left = page["nodes"][0], right = page["nodes"][1];
  EXPECT_EQ(left.rfind("tanh", 0), 0U) << left;
  EXPECT_EQ(right.rfind("tanh", 0), 0U) << right;
  EXPECT_EQ(page["focused"], (std::vector<bool>{false, true}));
}

TEST_F(HtmlPage, RulesUnfoldToPlaces) {
  const nlohmann::json page = seen(small_report().page(),
                                   "for (const rule of document.querySelectorAll('.rule')) rule.open = true;"
                                   "await drawn(); document.querySelector('.rule button').click();");
  EXPECT_EQ(page["places"], std::vector<std::string>{"relu, relu of first (2000 \u2192 1000 us)"});
  EXPECT_EQ(page["nodes"][0].get<std::string>().rfind("relu", 0), 0U);
  EXPECT_EQ(page["nodes"][1].get<std::string>().rfind("abs", 0), 0U);
}

TEST_F(HtmlPage, IsDarkWhereTheUserWantsIt) {
  const std::string page = small_report().page();
  const nlohmann::json light = seen(page, "", "", "--blink-settings=preferredColorScheme=1");
  const nlohmann::json dark = seen(page, "", "", "--blink-settings=preferredColorScheme=0");
  EXPECT_EQ(light["ground"], "rgb(255, 255, 255)");
  EXPECT_EQ(dark["ground"], "rgb(20, 23, 29)");
  for (const int colours : dark["colours"]) EXPECT_GT(colours, 10);
}

TEST_F(HtmlPage, ALargeGraphIsShown) {
  const nlohmann::json page = seen(large_report(6000).page(), "", "#search=layers.3000/");
  for (const int drawn : page["drawn"]) EXPECT_GT(drawn, 0);
  EXPECT_EQ(page["found"], "1 in the original, 1 in the result");
}

TEST_F(HtmlPage, EmptyGraphsAreShown) {
  const nlohmann::json page = seen(MadeUpReport(Graph(), Graph()).page(), "key(0, 'ArrowDown'); key(0, 'Enter');");
  EXPECT_EQ(page["drawn"], (std::vector<int>{0, 0}));
}

}  // namespace
}  // namespace taso::testing
