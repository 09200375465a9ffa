// viewer/html/standalone_page.h
//
// The page with recordings embedded, as one file small enough to mail (standalone_html.h). If the
// whole recording fits the size limit, all of it is included. Otherwise the smallest blocks are
// left out, and the file states which they are and how much memory they held. Totals, answers, and
// the stacks of what is live at the peak, at the end and at out-of-memory errors stay complete.
//
//   size         file          reduced or left out
//   <= limit     everything    -
//   >  limit     precision of event times, from 1/4,000,000 of the recording; then blocks, smallest
//      first
//
// Thread safety: same as the examinations and questions. Cost: each attempt encodes all blocks it
// keeps.

#ifndef GMT_VIEWER_HTML_STANDALONE_PAGE_H_
#define GMT_VIEWER_HTML_STANDALONE_PAGE_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace gmt::viewer {

struct StandaloneFile;

// Returns the default size limit in bytes for a standalone file of that many events: 5 bytes per
// event, but at least 5 MB and at most 20 MB, which mail servers accept.
uint64_t DefaultStandaloneSize(uint64_t events);

struct StandalonePage {
  std::string html;
  uint64_t blocks = 0, omitted_blocks = 0;  // in all files
  uint64_t smaller_than = 0;                // bytes; 0: nothing was left out
  int64_t time_error_ns = 0;                // maximum error of an event's time
};

// `about_several`: answers about several files (protocol.ts) by the name of their part:
//   "compare"  the Compare of each pair of files, as {"file", "other", "compare"}
//   "ranks"    Ranks
// Fails if the files do not fit into `max_bytes` even without blocks, or if `page` is not a valid
// page.
absl::StatusOr<StandalonePage> MakeStandalonePage(std::string_view page, std::string_view version,
                                                  const std::vector<StandaloneFile>& files,
                                                  const nlohmann::ordered_json& about_several,
                                                  uint64_t max_bytes);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_HTML_STANDALONE_PAGE_H_
