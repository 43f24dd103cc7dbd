#include "optimizer/html/page.h"

#include <fmt/format.h>

#include "optimizer/html/assets.h"
#include "support/markup.h"

namespace taso {

std::string page_begin(std::string_view title) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<title>{}</title>\n<style>\n{}</style></head>\n<body>\n",
      escape_markup(title), report_css);
}

}  // namespace taso
