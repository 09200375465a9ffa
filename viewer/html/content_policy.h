// viewer/html/content_policy.h
//
// The Content-Security-Policy of a page that is a single file. The page is built with one
// (viewer/page/vite.config.ts): only its own scripts and styles, identified by their hashes, are
// used, and nothing is loaded from elsewhere. Text from a recording, such as a frame's name, can
// therefore never be executed, whatever the page does with it. Data that are added to the page are
// no scripts and need no hash.
//
// Thread safety: pure functions.

#ifndef GMT_VIEWER_HTML_CONTENT_POLICY_H_
#define GMT_VIEWER_HTML_CONTENT_POLICY_H_

#include <string>
#include <string_view>

namespace gmt::viewer {

// Returns the policy in the head of the page; "" if there is none.
std::string_view PolicyOf(std::string_view page);

// Returns the header with which a server sends the page: its policy, and that no page may frame it.
// Nothing of a page without a policy is executed.
std::string PolicyHeader(std::string_view page);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_HTML_CONTENT_POLICY_H_
