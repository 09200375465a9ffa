// cli/record/claimed_output.h
//
// ClaimedOutput: a new file for a recording that may begin later. The file is created at once, so
// that no other program gets the same name. Its lock (flock) shows that it is being written, and is
// passed with the descriptor to the collector.
//
// Thread safety: one thread at a time. Ownership: owns the descriptor; the file remains when the
// object is destroyed.

#ifndef GMT_CLI_RECORD_CLAIMED_OUTPUT_H_
#define GMT_CLI_RECORD_CLAIMED_OUTPUT_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace gmt::cli {

class ClaimedOutput {
 public:
  // Creates the first free name: `wanted`, or with a number before its extension. Returns
  // ALREADY_EXISTS if no name is free, NOT_FOUND if the directory does not exist, and
  // PERMISSION_DENIED if it is not writable.
  static absl::StatusOr<std::unique_ptr<ClaimedOutput>> Make(const std::filesystem::path& wanted);
  ~ClaimedOutput();
  ClaimedOutput(const ClaimedOutput&) = delete;
  ClaimedOutput& operator=(const ClaimedOutput&) = delete;

  const std::string& path() const { return path_; }
  int fd() const { return fd_; }
  // Closes the descriptor after a child has inherited it. The lock lasts until the last copy is
  // closed.
  void HandOver();
  // Removes the file if nothing was written. REQUIRES: no process will write to it.
  void RemoveIfEmpty();

 private:
  ClaimedOutput(std::string path, int fd);
  const std::string path_;
  int fd_;  // -1 after HandOver()
  uint64_t device_ = 0, inode_ = 0;
};

}  // namespace gmt::cli

#endif  // GMT_CLI_RECORD_CLAIMED_OUTPUT_H_
