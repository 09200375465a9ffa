// cli/record/claimed_output.h
//
// ClaimedOutput: a new file for a recording that may begin later. The name is taken at once, so that
// nobody else who asks for it gets it too; the file's lock (flock) says that it is being written, and goes
// with its descriptor to the collector.
//
// Thread safety: one thread at a time. Ownership: of the descriptor; the file stays when the object goes.

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
  // The first free name: `wanted`, or with a number before its extension. ALREADY_EXISTS where none is
  // free; NOT_FOUND, PERMISSION_DENIED where its folder is not there, or cannot be written to.
  static absl::StatusOr<std::unique_ptr<ClaimedOutput>> Make(const std::filesystem::path& wanted);
  ~ClaimedOutput();
  ClaimedOutput(const ClaimedOutput&) = delete;
  ClaimedOutput& operator=(const ClaimedOutput&) = delete;

  const std::string& path() const { return path_; }
  int fd() const { return fd_; }
  // The descriptor is a child's now: the lock goes with the last of its copies.
  void HandOver();
  // Gives the name back, if nothing was written. REQUIRES: nobody will.
  void RemoveIfEmpty();

 private:
  ClaimedOutput(std::string path, int fd);
  const std::string path_;
  int fd_;  // -1: handed over
  uint64_t device_ = 0, inode_ = 0;
};

}  // namespace gmt::cli

#endif  // GMT_CLI_RECORD_CLAIMED_OUTPUT_H_
