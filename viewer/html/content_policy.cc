#include "viewer/html/content_policy.h"

#include "absl/strings/str_cat.h"

namespace gmt::viewer {

std::string_view PolicyOf(std::string_view page) {
  constexpr std::string_view kOpen = "<meta http-equiv=\"Content-Security-Policy\" content=\"";
  // A script could contain the text of the tag.
  page = page.substr(0, page.find("<script"));
  const size_t open = page.find(kOpen);
  if (open == std::string_view::npos) return {};
  page.remove_prefix(open + kOpen.size());
  return page.substr(0, page.find('"'));
}

std::string PolicyHeader(std::string_view page) {
  const std::string own(PolicyOf(page));
  return absl::StrCat(own.empty() ? "default-src 'none'" : own, "; frame-ancestors 'none'");
}

}  // namespace gmt::viewer
