// viewer/html/content_policy.h
//
// The Content-Security-Policy of a page that is a single file: only the scripts that it was built
// with run, identified by their hashes, and nothing is loaded from anywhere. Text from a recording,
// such as a frame's name, can therefore never be executed, whatever the page does with it.
//
// Thread safety: pure functions.

#ifndef GMT_VIEWER_HTML_CONTENT_POLICY_H_
#define GMT_VIEWER_HTML_CONTENT_POLICY_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace gmt::viewer {

// Returns the contents of all <ELEMENT ...>...</ELEMENT>, normalized as a browser hashes them.
// REQUIRES: `element` is in lower case.
std::vector<std::string> InlineTexts(absl::string_view html, absl::string_view element);

// Returns "'sha256-...' 'sha256-...'" of all such elements, or "'none'" if there are none.
std::string HashSources(absl::string_view html, absl::string_view element);

// Returns the policy of a page that queries the server it came from.
std::string PagePolicy(absl::string_view html);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_HTML_CONTENT_POLICY_H_
