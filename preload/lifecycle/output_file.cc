#include "preload/lifecycle/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/launcher.h"

namespace gmt::preload {
namespace {

constexpr int kMaxAttempts = 10000;  // of run.N.gmt

// A cursor over a buffer that remembers whether everything fitted.
struct Text {
  char* at;
  char* end;
  bool fits = true;

  void Append(const char* text, size_t size) {
    if (size >= static_cast<size_t>(end - at)) {
      fits = false;
      return;
    }
    memcpy(at, text, size);
    at += size;
    *at = '\0';
  }
  void Append(const char* text) { Append(text, strlen(text)); }
};

// Appends the value of one % sequence. Returns the first character after the sequence.
const char* AppendField(const char* p, Text* out) {
  char buffer[256] = {};
  switch (*p) {
    case 'h':
      gethostname(buffer, sizeof(buffer) - 1);
      out->Append(buffer);
      return p + 1;
    case 'p':
      snprintf(buffer, sizeof(buffer), "%d", getpid());
      out->Append(buffer);
      return p + 1;
    case 'r':
      out->Append(session::Launcher::Read().rank);
      return p + 1;
    case 'l':
      out->Append(session::Launcher::Read().local_rank);
      return p + 1;
    case 'j':
      // A launcher may take the job name from anywhere. Keep it a single component of the path.
      for (const char* job = session::Launcher::Read().job; *job != '\0'; ++job) {
        out->Append(*job == '/' ? "_" : job, 1);
      }
      return p + 1;
    case '%':
      out->Append("%");
      return p + 1;
    case 'q': {
      const char* close = p[1] == '{' ? strchr(p, '}') : nullptr;
      const size_t length = close == nullptr ? 0 : static_cast<size_t>(close - p - 2);
      if (close == nullptr || length >= sizeof(buffer)) break;
      memcpy(buffer, p + 2, length);
      const char* value = getenv(buffer);
      if (value != nullptr) out->Append(value);
      return close + 1;
    }
    default:
      break;
  }
  out->Append("%");  // an unknown sequence is kept unchanged
  return p;
}

// Creates the file if it does not exist. Returns a locked descriptor, or -errno.
int CreateNew(const char* path) {
  const int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return -errno;
  flock(fd, LOCK_EX | LOCK_NB);
  return fd;
}

// Returns whether the existing recording of this name belongs to this run.
bool OfThisRun(const char* path, const char* run_id) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  bool ours = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;  // still being written
  if (!ours && *run_id != '\0') {
    char head[4096];  // the run id is in the file's header, as text
    const ssize_t n = read(fd, head, sizeof(head));
    ours = n > 0 && memmem(head, static_cast<size_t>(n), run_id, strlen(run_id)) != nullptr;
  }
  close(fd);
  return ours;
}

// Writes `path` with ".suffix" before its extension.
void WithSuffix(const char* path, int suffix, char* result, size_t size) {
  const char* slash = strrchr(path, '/');
  const char* dot = strrchr(slash == nullptr ? path : slash, '.');
  const size_t stem = dot == nullptr ? strlen(path) : static_cast<size_t>(dot - path);
  snprintf(result, size, "%.*s.%d%s", static_cast<int>(stem), path, suffix,
           dot == nullptr ? "" : dot);
}

// Returns a descriptor, or -errno. *final receives the name.
int CreateUnderFreeName(const char* path, const char* run_id, char* final, size_t size) {
  snprintf(final, size, "%s", path);
  int fd = CreateNew(path);
  if (fd == -EEXIST && OfThisRun(path, run_id)) {
    WithSuffix(path, getpid(), final, size);
    fd = CreateNew(final);
  }
  for (int n = 1; fd == -EEXIST && n < kMaxAttempts; ++n) {
    WithSuffix(path, n, final, size);
    fd = CreateNew(final);
  }
  return fd;
}

// Creates the directories of `path` that do not exist, as for out/%j/r%r.gmt: below one that
// exists, but not below the root, where a path of before a chroot would begin.
void MakeDirectories(char* path) {
  bool exists = false;
  for (char* slash = strchr(path + 1, '/'); slash != nullptr; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    if (exists) {
      mkdir(path, 0777);
    } else {
      exists = access(path, F_OK) == 0;
    }
    *slash = '/';
    if (!exists) return;
  }
}

// The directory for recordings that could not be written at the requested place.
bool StateDirectory(char* path, size_t size) {
  const char* state = getenv("XDG_STATE_HOME");
  const char* home = getenv("HOME");
  if (state != nullptr && *state == '/') {
    snprintf(path, size, "%s", state);
  } else if (home != nullptr && *home == '/') {
    snprintf(path, size, "%s/.local", home);
    mkdir(path, 0700);
    snprintf(path, size, "%s/.local/state", home);
  } else {
    return false;
  }
  mkdir(path, 0700);
  const size_t used = strlen(path);
  snprintf(path + used, size - used, "/gpumemtrace");
  return mkdir(path, 0700) == 0 || errno == EEXIST;
}

}  // namespace

bool ExpandPattern(const char* pattern, char* path, size_t size) {
  Text out = {path, path + size};
  *path = '\0';
  for (const char* p = pattern; *p != '\0';) {
    if (*p == '%') {
      p = AppendField(p + 1, &out);
    } else {
      out.Append(p++, 1);
    }
  }
  return out.fits;
}

OutputFile CreateOutputFile(const char* pattern, const char* run_id) {
  OutputFile out;
  char name[PATH_MAX], wanted[2 * PATH_MAX];
  if (!ExpandPattern(pattern, name, sizeof(name))) {
    out.error = ENAMETOOLONG;
    return out;
  }
  if (name[0] == '/') {
    snprintf(wanted, sizeof(wanted), "%s", name);
  } else {
    char cwd[PATH_MAX];
    snprintf(wanted, sizeof(wanted), "%s/%s", getcwd(cwd, sizeof(cwd)) == nullptr ? "." : cwd,
             name);
  }
  out.fd = CreateUnderFreeName(wanted, run_id, out.path, sizeof(out.path));
  if (out.fd == -ENOENT) {
    MakeDirectories(wanted);
    out.fd = CreateUnderFreeName(wanted, run_id, out.path, sizeof(out.path));
  }
  if (out.fd >= 0) return out;

  out.error = -out.fd;
  out.moved = true;
  char state[PATH_MAX];
  if (!StateDirectory(state, sizeof(state))) return out;
  char moved[2 * PATH_MAX];
  snprintf(moved, sizeof(moved), "%s%s", state, strrchr(wanted, '/'));
  out.fd = CreateUnderFreeName(moved, run_id, out.path, sizeof(out.path));
  return out;
}

}  // namespace gmt::preload
