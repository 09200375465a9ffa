// cli/output_file.h
//
// OutputFile: the file that `-o OUT` names. An existing OUT is refused without --force, and is
// replaced only when the new one is whole: until Commit() everything goes to a file beside it,
// which is removed where something failed.
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

  // Write here. It is OUT itself where OUT is no regular file (/dev/stdout, a pipe).
  const std::string& path() const { return written_; }
  absl::Status Commit();

 private:
  OutputFile(std::string path, std::string written);
  std::string path_;
  std::string written_;  // empty once it needs no removal
};

}  // namespace gmt::cli

#endif  // GMT_CLI_OUTPUT_FILE_H_
