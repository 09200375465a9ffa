// viewer/html/mailed_html.h
//
// The page with data in it, as one HTML file that asks nobody for anything:
//
//   <!doctype html> ... <meta http-equiv="Content-Security-Policy" ...> <title>run.gmt</title> ...
//   <script type="application/octet-stream" data-gmt="0/lane/1">BASE64</script>     data, in parts
//   ...
//   <script type="module">the page</script>
//
// A part is some bytes with a name, gzipped; a browser inflates that without a library. Long ones are
// split over several elements, because parsers have limits for one.
//
// Thread safety: pure functions.

#ifndef GMT_VIEWER_HTML_MAILED_HTML_H_
#define GMT_VIEWER_HTML_MAILED_HTML_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gmt::viewer {

struct DataPart {
  std::string name;  // of letters, digits, '/', '_' and '-'
  std::string gzipped;
};

// The same bytes for the same input, whenever and wherever.
std::string Gzip(std::string_view bytes);

// How long the file is that MailedHtml makes of them, to the byte. REQUIRES: `page` is one.
uint64_t MailedSize(std::string_view page, std::string_view title,
                    const std::vector<DataPart>& parts);

// `page`: PageHtml(). `title` is for a person and may hold anything.
std::string MailedHtml(std::string_view page, std::string_view title,
                       const std::vector<DataPart>& parts);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_HTML_MAILED_HTML_H_
