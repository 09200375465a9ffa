// The formats of this program itself: html and gmt.

#include <optional>

#include "absl/strings/numbers.h"
#include "cli/command.h"
#include "cli/export/export_html.h"
#include "cli/export/formats.h"
#include "cli/output_file.h"

namespace gmt::cli {

absl::StatusOr<int> ExportHtmlPage(const ExportArguments& arguments) {
  constexpr double kMaxMegabytes = 400;  // more than browsers can open in one file
  HtmlExport html{arguments.files, arguments.output, std::nullopt, arguments.force};
  double megabytes = 0;
  if (!arguments.max_mb.empty()) {
    const bool is_size = absl::SimpleAtod(arguments.max_mb, &megabytes) && megabytes > 0;
    if (!is_size || megabytes > kMaxMegabytes) {
      return UsageError(
          "--max-mb: expected a number of megabytes up to 400. For more: "
          "gpumemtrace view");
    }
    html.max_bytes = static_cast<uint64_t>(megabytes * 1e6);
  }
  if (absl::Status status = ExportHtml(html); !status.ok()) return status;
  return kDone;
}

absl::StatusOr<int> ExportStripped(const ExportArguments& arguments) {
  if (!arguments.strip.any()) {
    return UsageError("--format gmt needs --strip-paths, --strip-args or both");
  }
  auto output = OutputFile::Create(arguments.output, arguments.force);
  if (!output.ok()) return output.status();
  if (absl::Status status = arguments.strip.Copy(arguments.file(), output->path()); !status.ok())
    return status;
  if (absl::Status status = output->Commit(); !status.ok()) return status;
  return kDone;
}

}  // namespace gmt::cli
