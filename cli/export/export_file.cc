#include "cli/export/export_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/terminal.h"

namespace gmt::cli {

absl::StatusOr<ExportFile> ExportFile::Create(const ExportArguments& arguments) {
  auto file = OutputFile::Create(arguments.output, arguments.force);
  if (!file.ok()) return file.status();
  return ExportFile(*std::move(file), arguments.output);
}

// The file is opened at its first use, so that a refused export does not touch it.
std::ostream& ExportFile::stream() {
  if (!stream_.is_open()) stream_.open(file_.path(), std::ios::binary | std::ios::trunc);
  return stream_;
}

uint64_t ExportFile::size() {
  const auto at = stream_.tellp();
  return at > 0 ? static_cast<uint64_t>(at) : 0;
}

absl::Status ExportFile::Commit() {
  stream();
  stream_.close();
  if (!stream_) return absl::UnknownError(absl::StrCat(name_, ": cannot be written"));
  return file_.Commit();
}

void PrintLacks(const answers::Recording& recording) {
  for (const std::string& lack : recording.lacks()) PrintNote(lack);
}

}  // namespace gmt::cli
