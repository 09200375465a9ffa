// viewer/html/mailed_page.h
//
// The page with recordings in it, as one file that a mail can carry (mailed_html.h). All that is in a
// recording goes in while it fits; then the smallest blocks stay out, and the file says which and how
// much they are. Totals, answers, and the stacks of what is held at the peak, at the end and where
// memory ran out stay whole.
//
//   size         file          left out
//   <= limit     everything    -
//   >  limit     times of events to 1/4,000,000 of the recording; then blocks, from the smallest
//
// Thread safety: that of the examinations and questions. Cost: each try encodes all blocks that it keeps.

#ifndef GMT_VIEWER_HTML_MAILED_PAGE_H_
#define GMT_VIEWER_HTML_MAILED_PAGE_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace gmt::viewer {

struct MailedFile;

// What a mailed file of that many events may need where nobody says: 5 bytes an event, but not less
// than 5 MB and not more than what mail servers take.
uint64_t DefaultMailedSize(uint64_t events);

struct MailedPage {
  std::string html;
  uint64_t blocks = 0, omitted_blocks = 0;  // in all files
  uint64_t smaller_than = 0;                // bytes; 0: nothing was left out
  int64_t time_error_ns = 0;                // of an event's time, at most
};

// `compare`: Compare of protocol.ts of each two files, as {"file", "other", "compare"}.
// Fails where even without blocks the files do not fit into `max_bytes`, or `page` is no page.
absl::StatusOr<MailedPage> MakeMailedPage(std::string_view page, std::string_view version,
                                          const std::vector<MailedFile>& files,
                                          const nlohmann::ordered_json& compare,
                                          uint64_t max_bytes);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_HTML_MAILED_PAGE_H_
