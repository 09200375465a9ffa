// viewer/html/page_html.h
//
// The page, as used by the server and by standalone files: one HTML file that contains its script
// and style, embedded in the program.
//
// Thread safety: any thread. Ownership: the text lives until the program exits.

#ifndef GMT_VIEWER_HTML_PAGE_HTML_H_
#define GMT_VIEWER_HTML_PAGE_HTML_H_

#include <string_view>

namespace gmt::viewer {

// Returns an empty string if the program was built without Node.js.
std::string_view PageHtml();

// Returns the error message for that case: what is missing and how to get it.
std::string_view PageMissing();

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_HTML_PAGE_HTML_H_
