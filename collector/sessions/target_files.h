// collector/sessions/target_files.h
//
// TargetFiles: where a collector finds the files that its target has mapped, though the target may
// have another root (a container, a chroot) or be gone before its names are looked up.
//
// The target's root is held open from the start, so that it can be read when the process and its
// /proc entry are gone. What was mounted below it may be gone with its last process: such modules
// stay module + offset, and the report says that they are not on this machine.
//
// Thread safety: const methods from any thread.

#ifndef GMT_COLLECTOR_SESSIONS_TARGET_FILES_H_
#define GMT_COLLECTOR_SESSIONS_TARGET_FILES_H_

#include <cstdint>
#include <string>

namespace gmt::collector {

class TargetFiles {
 public:
  // `pid`: of a process that is known to be the target; 0 where it is gone already.
  explicit TargetFiles(uint64_t pid);
  ~TargetFiles();
  TargetFiles(const TargetFiles&) = delete;
  TargetFiles& operator=(const TargetFiles&) = delete;

  // What its paths begin with; empty where its root is ours, or nothing is known of it.
  const std::string& root() const { return root_; }
  // "/proc/PID", for deleted files that it still has; empty where it was gone already.
  const std::string& process() const { return process_; }

 private:
  std::string root_, process_;
  int root_fd_ = -1;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_SESSIONS_TARGET_FILES_H_
