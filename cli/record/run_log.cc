#include "cli/record/run_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <random>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "session/session_file.h"

namespace gmt::cli {
namespace {

std::string RandomId() {
  std::random_device random;
  return absl::StrCat(absl::Hex(random(), absl::kZeroPad8), absl::Hex(random(), absl::kZeroPad8));
}

// Directories for the log, best first: those of sessions, then the one for temporary files.
std::vector<std::string> Directories() {
  std::vector<std::string> directories;
  char path[PATH_MAX];
  for (int n = 0; session::SessionDirectory(n, path); ++n) {
    if (path[0] != '\0') directories.push_back(path);
  }
  const char* temporary = getenv("TMPDIR");
  directories.push_back(temporary != nullptr ? temporary : "/tmp");
  return directories;
}

}  // namespace

absl::StatusOr<RunLog> RunLog::Create() {
  const std::string run_id = RandomId();
  for (const std::string& directory : Directories()) {
    mkdir(directory.c_str(), 0700);
    const std::string path = absl::StrCat(directory, "/", run_id, ".run");
    const int fd = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) continue;
    close(fd);
    return RunLog(run_id, path);
  }
  return absl::ErrnoToStatus(errno,
                             "no directory for shared memory or temporary files can be written to");
}

RunLog::RunLog(RunLog&& other) noexcept
    : run_id_(std::move(other.run_id_)), path_(std::move(other.path_)) {
  other.path_.clear();
}

RunLog::~RunLog() {
  if (!path_.empty()) unlink(path_.c_str());
}

std::vector<RunEntry> RunLog::Read() const {
  std::vector<RunEntry> entries;
  std::ifstream file(path_);
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> fields = absl::StrSplit(line, '\t');
    RunEntry entry;
    if (fields.size() != 3 || !absl::SimpleAtoi(fields[0], &entry.pid)) continue;
    entry.session = fields[1];
    entry.output = fields[2];
    // If the file of a recording was deleted, the recording continues in another file.
    const auto moved = std::find_if(entries.begin(), entries.end(), [&](const RunEntry& e) {
      return !e.session.empty() && e.session == entry.session;
    });
    if (moved == entries.end()) {
      entries.push_back(entry);
    } else {
      *moved = entry;
    }
  }
  return entries;
}

void NoteExit(const RunEntry& entry, const ChildExit& exit) {
  if (entry.session.empty()) return;
  const int fd = open(entry.session.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return;  // already complete
  // Writes to the file instead of mapping it: another process that truncates the session must not
  // end this one with SIGBUS.
  session::Header header;
  const auto put = [fd](size_t offset, const auto& value) {
    (void)!pwrite(fd, &value, sizeof(value), static_cast<off_t>(session::kControlOffset + offset));
  };
  struct stat st;
  if (fstat(fd, &st) == 0 && pread(fd, &header, sizeof(header), 0) == sizeof(header) &&
      session::CheckHeader(header, static_cast<uint64_t>(st.st_size)) == nullptr &&
      header.pid == static_cast<uint64_t>(entry.pid)) {
    put(offsetof(session::Control, exit_code), exit.code);
    put(offsetof(session::Control, exit_known_by_parent), uint32_t{1});
    put(offsetof(session::Control, exit_kind),
        exit.signalled ? session::ExitKind::kSignalled : session::ExitKind::kExited);
  }
  close(fd);
}

bool IsBeingWritten(const std::string& output) {
  const int fd = open(output.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool locked = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  return locked;
}

}  // namespace gmt::cli
