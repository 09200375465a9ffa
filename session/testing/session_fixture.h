// session/testing/session_fixture.h
//
// For tests: a session mapped into this process, and directories for session files.

#ifndef GMT_SESSION_TESTING_SESSION_FIXTURE_H_
#define GMT_SESSION_TESTING_SESSION_FIXTURE_H_

#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "session/session_file.h"

namespace gmt::session {

// Small enough to create a hundred sessions per second.
inline SessionSizes SmallSizes() {
  SessionSizes sizes;
  sizes.info_bytes = 4096;
  sizes.ring = 256;
  sizes.live = 1024;
  sizes.live_levels = 0;
  sizes.stack_index = 64;
  sizes.arena = 1024;
  sizes.arena_growth = 0;
  sizes.text_index = 64;
  sizes.code_index = 64;
  sizes.modules = 8;
  sizes.in_flight = 16;
  sizes.contexts = 16;
  return sizes;
}

// Adds a stack with the given words. Returns its id, or 0 if there is no room.
inline uint32_t AddStack(const StackTable& stacks, const std::vector<uint64_t>& frames,
                         uint16_t flags = 0, uint32_t generation = 0,
                         const std::vector<uint32_t>& codes = {}, uint32_t like = 0,
                         uint64_t fingerprint = 0) {
  StackTable::Buffer stack;
  stack.fingerprint = fingerprint;
  std::copy(frames.begin(), frames.end(), stack.frames);
  return stacks.Add(stack, static_cast<uint32_t>(frames.size()), flags, generation, codes.data(),
                    like);
}

// A directory for the sessions of this test (GPUMEMTRACE_DIR), in a tmpfs if there is one with
// room, as for real ones: a file system on a disk adds blocks of its own to a file that it has
// written back. The destructor removes it with its contents.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string path = HasRoom("/dev/shm") ? "/dev/shm" : "/tmp";
    path += "/gmt-session-XXXXXX";
    path_ = mkdtemp(path.data());
    setenv("GPUMEMTRACE_DIR", path_.c_str(), 1);
  }
  ~ScratchDirectory() {
    unsetenv("GPUMEMTRACE_DIR");
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  static bool HasRoom(const char* path) {
    struct statvfs file_system;
    return access(path, W_OK) == 0 && statvfs(path, &file_system) == 0 &&
           file_system.f_bavail * file_system.f_frsize >= uint64_t{1} << 30;
  }

  std::string path_;
};

// A session as its traced process sees it.
class ScratchSession {
 public:
  explicit ScratchSession(const SessionSizes& sizes = SmallSizes(), std::string_view info = "") {
    if (CreateSession(sizes, info, &created_) != 0) abort();
  }
  ~ScratchSession() {
    munmap(created_.base, created_.size);
    close(created_.fd);
  }
  ScratchSession(const ScratchSession&) = delete;
  ScratchSession& operator=(const ScratchSession&) = delete;

  const SessionMap& map() const { return created_.map; }
  Control& control() const { return created_.map.control(); }
  char* bytes() const { return static_cast<char*>(created_.base); }
  size_t size() const { return created_.size; }
  int fd() const { return created_.fd; }
  std::string path() const { return created_.path; }

 private:
  ScratchDirectory directory_;
  CreatedSession created_;
};

// Runs `test` in a child with its own mount namespace. Returns its result, or -1 if not permitted.
inline int InOwnMounts(const std::function<int()>& test) {
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      _exit(255);
    _exit(test());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) != 255 ? WEXITSTATUS(status) : -1;
}

inline bool MountTmpfs(const std::string& path, const char* size) {
  return mount("tmpfs", path.c_str(), "tmpfs", 0, size) == 0;
}

}  // namespace gmt::session

#endif  // GMT_SESSION_TESTING_SESSION_FIXTURE_H_
