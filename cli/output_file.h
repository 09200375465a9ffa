// cli/output_file.h
//
// OutputFile: the file that `-o OUT` names. An existing OUT is refused without --force, and is
// replaced only after the new file is complete: until Commit(), everything goes to a temporary file
// next to it, which is removed on failure.
//
// Example
//   absl::StatusOr<OutputFile> out = OutputFile::Create(options.output, options.force);
//   if (!out.ok()) return out.status();
//   ... write out->path() ...
//   return out->Commit();
//
// Thread safety: one thread at a time.

#ifndef GMT_CLI_OUTPUT_FILE_H_
#define GMT_CLI_OUTPUT_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gmt::cli {

class OutputFile {
 public:
  static absl::StatusOr<OutputFile> Create(const std::string& path, bool force);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  // The path to write to. It is OUT itself if OUT is not a regular file (/dev/stdout, a pipe).
  const std::string& path() const { return written_; }
  absl::Status Commit();

 private:
  OutputFile(std::string path, std::string written);
  std::string path_;
  std::string written_;  // empty if it needs no removal
};

}  // namespace gmt::cli

#endif  // GMT_CLI_OUTPUT_FILE_H_
