// cli/strip_options.h
//
// --strip-paths and --strip-args of verbs that write a file to be shared (format/strip.h).
//
// Thread safety: one thread at a time.

#ifndef GMT_CLI_STRIP_OPTIONS_H_
#define GMT_CLI_STRIP_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/command.h"

namespace gmt::cli {

struct StripOptions {
  bool paths = false, args = false;

  bool any() const { return paths || args; }
  void AddTo(Command& command);
  // Copies the recording `from` without what the options remove.
  absl::Status Copy(const std::string& from, const std::string& to) const;
};

// The recordings to read instead of the given ones: stripped copies, which are removed with this
// object, or the files themselves if nothing is to be stripped.
class StrippedFiles {
 public:
  static absl::StatusOr<StrippedFiles> Make(const StripOptions& options,
                                            const std::vector<std::string>& files);
  StrippedFiles(StrippedFiles&& other) noexcept;
  StrippedFiles& operator=(StrippedFiles&&) = delete;
  ~StrippedFiles();

  const std::vector<std::string>& files() const { return files_; }

 private:
  StrippedFiles() = default;

  std::vector<std::string> files_;
  std::string folder_;  // empty: nothing to remove
};

}  // namespace gmt::cli

#endif  // GMT_CLI_STRIP_OPTIONS_H_
