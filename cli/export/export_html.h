// cli/export/export_html.h
//
// `export --format html`: recordings as one page that opens without this program.

#ifndef GMT_CLI_EXPORT_EXPORT_HTML_H_
#define GMT_CLI_EXPORT_EXPORT_HTML_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace gmt::cli {

struct HtmlExport {
  std::vector<std::string> files;
  std::string output;
  std::optional<uint64_t> max_bytes;  // of the page; nullopt: depends on the number of events
  bool force = false;
};

// Prints on stderr what was written and what was left out.
absl::Status ExportHtml(const HtmlExport& options);

}  // namespace gmt::cli

#endif  // GMT_CLI_EXPORT_EXPORT_HTML_H_
