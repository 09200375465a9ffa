// collector/sessions/target_files.h
//
// TargetFiles: gives access to the files that the target has mapped, even if the target has another
// root (a container, a chroot) or has ended before its names are looked up.
//
// The target's root is held open from the start, so that it can be read after the process and its
// /proc entry are gone. What was mounted below it may disappear with its last process. Frames in
// such modules stay module + offset, and the report says that they are not on this machine.
//
// Thread safety: const methods from any thread.

#ifndef GMT_COLLECTOR_SESSIONS_TARGET_FILES_H_
#define GMT_COLLECTOR_SESSIONS_TARGET_FILES_H_

#include <cstdint>
#include <string>

namespace gmt::collector {

class TargetFiles {
 public:
  // `pid`: of a process that is known to be the target; 0 if it is gone already.
  explicit TargetFiles(uint64_t pid);
  ~TargetFiles();
  TargetFiles(const TargetFiles&) = delete;
  TargetFiles& operator=(const TargetFiles&) = delete;

  // The prefix of its paths; empty if its root is ours or unknown.
  const std::string& root() const { return root_; }
  // "/proc/PID", for deleted files that it still has mapped; empty if it was gone already.
  const std::string& process() const { return process_; }

 private:
  std::string root_, process_;
  int root_fd_ = -1;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_SESSIONS_TARGET_FILES_H_
