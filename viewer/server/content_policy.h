// viewer/server/content_policy.h
//
// The Content-Security-Policy of a page that is one file: nothing runs but the scripts that it was
// built with, named by their hashes, and nothing is loaded from anywhere. What a recording says, in a
// frame's name for one, can then not become code, whatever the page does with it.
//
// Thread safety: pure functions.

#ifndef GMT_VIEWER_SERVER_CONTENT_POLICY_H_
#define GMT_VIEWER_SERVER_CONTENT_POLICY_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace gmt::viewer {

// The contents of all <ELEMENT ...>...</ELEMENT>, as a browser hashes them.
// REQUIRES: `element` in lower case.
std::vector<std::string> InlineTexts(absl::string_view html, absl::string_view element);

// "'sha256-...' 'sha256-...'" of all of them; "'none'" where there are none.
std::string HashSources(absl::string_view html, absl::string_view element);

// Of a page that asks the server it came from.
std::string PagePolicy(absl::string_view html);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_SERVER_CONTENT_POLICY_H_
