// cli/export/export_file.h
//
// ExportFile: the file that an export writes, with a stream. Until Commit() it is a temporary file,
// which is removed on failure (cli/output_file.h).
//
//   auto file = ExportFile::Create(arguments);
//   if (!file.ok()) return file.status();
//   file->stream() << ...;
//   if (absl::Status status = file->Commit(); !status.ok()) return status;
//
// Thread safety: one thread at a time.

#ifndef GMT_CLI_EXPORT_EXPORT_FILE_H_
#define GMT_CLI_EXPORT_EXPORT_FILE_H_

#include <fstream>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "answers/recording.h"
#include "cli/export/formats.h"
#include "cli/output_file.h"

namespace gmt::cli {

class ExportFile {
 public:
  static absl::StatusOr<ExportFile> Create(const ExportArguments& arguments);

  std::ostream& stream();
  uint64_t size();  // bytes written so far; 0 if the output is a pipe
  absl::Status Commit();

 private:
  ExportFile(OutputFile file, std::string name) : file_(std::move(file)), name_(std::move(name)) {}

  OutputFile file_;
  std::string name_;
  std::ofstream stream_;
};

// Prints what the recording itself lacks, which a reader of the exported file could not notice.
void PrintLacks(const answers::Recording& recording);

}  // namespace gmt::cli

#endif  // GMT_CLI_EXPORT_EXPORT_FILE_H_
