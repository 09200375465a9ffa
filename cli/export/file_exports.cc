// The formats of this program itself and of SQLite: html, gmt and sqlite.

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "answers/sql/query.h"
#include "cli/command.h"
#include "cli/export/export_file.h"
#include "cli/export/export_html.h"
#include "cli/export/formats.h"
#include "cli/open_recording.h"
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

absl::StatusOr<int> ExportSqlite(const ExportArguments& arguments) {
  auto rules = arguments.frames.Rules();
  if (!rules.ok()) return rules.status();
  auto output = OutputFile::Create(arguments.output, arguments.force);
  if (!output.ok()) return output.status();
  const auto query = answers::sql::Query::Make();
  if (!query.ok()) return query.status();
  std::vector<std::unique_ptr<answers::Recording>> opened;
  for (const std::string& file : arguments.files) {
    auto recording =
        OpenRecording(file, {.frames = *rules, .text = answers::TextForm::kAsRecorded});
    if (!recording.ok()) return recording.status();
    opened.push_back(*std::move(recording));
    // A stripped copy has a temporary path, and the directories are private.
    (*query)->Add(*opened.back(),
                  arguments.strip.any() ? std::filesystem::path(file).filename().string() : file);
  }
  if (absl::Status status = (*query)->Export(output->path()); !status.ok())
    return absl::Status(status.code(), absl::StrCat(arguments.output, ": ", status.message()));
  if (absl::Status status = output->Commit(); !status.ok()) return status;
  PrintNote(fmt::format("{}: to view: sqlite3 {} 'SELECT * FROM categories'", arguments.output,
                        arguments.output));
  for (const auto& recording : opened) PrintLacks(*recording);
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
