// viewer/html/standalone_html.h
//
// The page with data embedded, as a single HTML file that loads nothing from anywhere:
//
//   <!doctype html> ... <meta http-equiv="Content-Security-Policy" ...> twice, and the <title>
//   <script type="application/octet-stream" data-gmt="0/lane/1">BASE64</script>     data, in parts
//   ...
//   <script type="module">the page</script>
//
// A part is a named sequence of bytes, gzipped; a browser inflates it without a library. Long parts
// are split over several elements, because parsers limit the size of one.
//
// Thread safety: pure functions.

#ifndef GMT_VIEWER_HTML_STANDALONE_HTML_H_
#define GMT_VIEWER_HTML_STANDALONE_HTML_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gmt::viewer {

struct DataPart {
  std::string name;  // of letters, digits, '/', '_' and '-'
  std::string gzipped;
};

// Returns the same output for the same input on every run and machine.
std::string Gzip(std::string_view bytes);

// Returns the exact size in bytes of StandaloneHtml()'s result. REQUIRES: `page` is PageHtml().
uint64_t StandaloneSize(std::string_view page, std::string_view title,
                        const std::vector<DataPart>& parts);

// `page`: PageHtml(). `title`: any text; it is escaped. Returns "" if `page` is not a valid page,
// or has no policy (content_policy.h).
std::string StandaloneHtml(std::string_view page, std::string_view title,
                           const std::vector<DataPart>& parts);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_HTML_STANDALONE_HTML_H_
