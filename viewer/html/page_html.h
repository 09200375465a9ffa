// viewer/html/page_html.h
//
// The page that both doors show: one HTML file with its script and style in it, part of the program.
//
// Thread safety: any thread. Ownership: lives as long as the program.

#ifndef GMT_VIEWER_HTML_PAGE_HTML_H_
#define GMT_VIEWER_HTML_PAGE_HTML_H_

#include <string_view>

namespace gmt::viewer {

// Empty where the program was built without Node.js.
std::string_view PageHtml();

// What to tell who asks for the page then: what is missing and how to get it.
std::string_view PageMissing();

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_HTML_PAGE_HTML_H_
