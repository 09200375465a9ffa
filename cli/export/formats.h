// cli/export/formats.h
//
// The formats of `gpumemtrace export`. A format is one entry of ExportFormats(): its name, what it
// keeps of a recording, the options that it takes, and the function that writes it.
//
// Thread safety: pure functions, except that the functions of formats print notes.

#ifndef GMT_CLI_EXPORT_FORMATS_H_
#define GMT_CLI_EXPORT_FORMATS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/frame_options.h"
#include "cli/strip_options.h"
#include "cli/window_options.h"

namespace gmt::cli {

struct ExportArguments {
  std::vector<std::string> files, tables;
  std::string format, output, keep, at, heap;
  std::optional<int32_t> device;
  std::string max_events, max_mb;
  bool force = false, list = false, json = false;
  WindowOptions window;
  FrameOptions frames;
  StripOptions strip;

  const std::string& file() const { return files.front(); }
};

struct ExportFormat {
  const char* name;
  const char* consumer;  // what opens the file
  const char* keeps;
  const char* drops;
  // Those options that only some formats take: "--at", "--heap", ...
  std::vector<std::string> options;
  bool takes_several;
  absl::StatusOr<int> (*run)(const ExportArguments& arguments);
};

const std::vector<ExportFormat>& ExportFormats();

// The functions of the formats. Each writes arguments.output, completely or not at all, and returns
// the exit code of the verb.
absl::StatusOr<int> ExportTorch(const ExportArguments& arguments);
absl::StatusOr<int> ExportHtmlPage(const ExportArguments& arguments);
absl::StatusOr<int> ExportPprof(const ExportArguments& arguments);
absl::StatusOr<int> ExportFolded(const ExportArguments& arguments);
absl::StatusOr<int> ExportSpeedscope(const ExportArguments& arguments);
absl::StatusOr<int> ExportCsv(const ExportArguments& arguments);
absl::StatusOr<int> ExportJsonLines(const ExportArguments& arguments);
absl::StatusOr<int> ExportPerfetto(const ExportArguments& arguments);
absl::StatusOr<int> ExportChrome(const ExportArguments& arguments);
absl::StatusOr<int> ExportHeaptrack(const ExportArguments& arguments);
absl::StatusOr<int> ExportSqlite(const ExportArguments& arguments);
absl::StatusOr<int> ExportArrow(const ExportArguments& arguments);
absl::StatusOr<int> ExportStripped(const ExportArguments& arguments);

}  // namespace gmt::cli

#endif  // GMT_CLI_EXPORT_FORMATS_H_
