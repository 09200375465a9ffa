#include "viewer/html/content_policy.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "viewer/html/sha256.h"

namespace gmt::viewer {
namespace {

// Returns the position of `what` in `text` at or after `from`, ignoring case.
size_t FindIgnoringCase(absl::string_view text, absl::string_view what, size_t from) {
  const auto found = std::search(
      text.begin() + std::min(from, text.size()), text.end(), what.begin(), what.end(),
      [](char a, char b) { return absl::ascii_tolower(static_cast<unsigned char>(a)) == b; });
  return found == text.end() ? absl::string_view::npos : static_cast<size_t>(found - text.begin());
}

// Browsers normalize newlines to line feeds before they hash (HTML, "Normalizing newlines").
std::string WithLineFeeds(absl::string_view text) {
  std::string normal;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      normal.push_back(text[i]);
    } else if (i + 1 >= text.size() || text[i + 1] != '\n') {
      normal.push_back('\n');
    }
  }
  return normal;
}

bool EndsTagName(char c) { return c == '>' || c == '/' || absl::ascii_isspace(c); }

}  // namespace

std::vector<std::string> InlineTexts(absl::string_view html, absl::string_view element) {
  const std::string open = absl::StrCat("<", element), close = absl::StrCat("</", element);
  std::vector<std::string> texts;
  size_t at = 0;
  while ((at = FindIgnoringCase(html, open, at)) != absl::string_view::npos) {
    at += open.size();
    if (at >= html.size() || !EndsTagName(html[at])) continue;
    const size_t begin = html.find('>', at);
    const size_t end = FindIgnoringCase(html, close, begin);
    if (begin == absl::string_view::npos || end == absl::string_view::npos) break;
    texts.push_back(WithLineFeeds(html.substr(begin + 1, end - begin - 1)));
    at = end + close.size();
  }
  return texts;
}

std::string HashSources(absl::string_view html, absl::string_view element) {
  std::vector<std::string> sources;
  for (const std::string& text : InlineTexts(html, element)) {
    sources.push_back(absl::StrCat("'sha256-", absl::Base64Escape(Sha256(text)), "'"));
  }
  return sources.empty() ? "'none'" : absl::StrJoin(sources, " ");
}

std::string PagePolicy(absl::string_view html) {
  return absl::StrCat("default-src 'none'; script-src ", HashSources(html, "script"),
                      "; style-src ", HashSources(html, "style"),
                      "; connect-src 'self'; img-src data: blob:; base-uri 'none'; "
                      "form-action 'none'; frame-ancestors 'none'");
}

}  // namespace gmt::viewer
