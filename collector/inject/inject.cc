#include "collector/inject/inject.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "collector/inject/loader_functions.h"
#include "collector/inject/memory_map.h"
#include "collector/inject/registers.h"
#include "collector/inject/remote_call.h"
#include "collector/inject/remote_image.h"
#include "collector/inject/remote_memory.h"
#include "collector/inject/thread_search.h"

namespace gmt::inject {
namespace {

// The message of the child that does the work.
struct Answer {
  int code = 0;  // of a status
  int result = 0;
  pid_t thread = 0;
  int tries = 0;
  uint32_t size = 0;
  char text[2 * kMaxText] = {};
};

// Allows only one injection into a process at a time. The kernel releases the lock when this
// process ends.
absl::StatusOr<int> LockProcess(pid_t pid) {
  const int fd = open(absl::StrCat("/proc/", pid, "/maps").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && (errno == ENOENT || errno == ESRCH))
    return absl::NotFoundError(absl::StrCat("process ", pid, " has ended"));
  if (fd < 0)
    return absl::PermissionDeniedError(absl::StrCat("process ", pid, ": ", std::strerror(errno)));
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  close(fd);
  return absl::AlreadyExistsError(
      absl::StrCat("process ", pid, ": another attach is at work on it. Try again in a moment"));
}

absl::StatusOr<Reply> Work(const Request& request) {
  const absl::StatusOr<int> lock = LockProcess(request.pid);
  if (!lock.ok()) return lock.status();
  const absl::StatusOr<RemoteMemory> memory = RemoteMemory::Open(request.pid);
  if (absl::IsNotFound(memory.status()))
    return absl::NotFoundError(absl::StrCat("process ", request.pid, " has ended"));
  if (!memory.ok()) return memory.status();
  const absl::StatusOr<MemoryMap> map = ReadMemoryMap(request.pid);
  if (!map.ok()) return map.status();
  const std::optional<RemoteImage> libc = FindLibc(*memory, *map);
  const LoaderFunctions loader =
      libc.has_value() ? FindLoaderFunctions(*memory, *map, *libc) : LoaderFunctions{};
  if (loader.dlopen == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "process ", request.pid, " has no libc that could load a library (libc.so.6 of glibc)"));
  }
  absl::StatusOr<FoundThread> found =
      FindSafeThread(request.pid, *memory, *libc, request.search, request.on_stage);
  if (!found.ok()) return found.status();
  return RemoteCall(request, *memory, *std::move(found)).Run(loader);
}

void SendAnswer(int fd, const absl::StatusOr<Reply>& reply) {
  Answer answer;
  answer.code = static_cast<int>(reply.status().code());
  std::string text(reply.status().message());
  if (reply.ok()) {
    answer.result = reply->result;
    answer.thread = reply->thread;
    answer.tries = reply->tries;
    text = reply->text;
  }
  answer.size = static_cast<uint32_t>(text.copy(answer.text, sizeof(answer.text)));
  (void)!write(fd, &answer, sizeof(answer));
}

absl::StatusOr<Reply> FromAnswer(const Answer& answer) {
  const std::string text(answer.text, std::min<size_t>(answer.size, sizeof(answer.text)));
  if (answer.code != 0) return absl::Status(static_cast<absl::StatusCode>(answer.code), text);
  return Reply{answer.result, text, answer.thread, answer.tries};
}

bool ReadWhole(int fd, Answer* answer) {
  size_t done = 0;
  while (done < sizeof(*answer)) {
    const ssize_t n = read(fd, reinterpret_cast<char*>(answer) + done, sizeof(*answer) - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

absl::Status CheckRequest(const Request& request) {
  if (!IsSupported()) {
    return absl::UnimplementedError(
        "attaching to a process that was not started for it is written for x86-64 only. Start it "
        "with: GPUMEMTRACE=dormant LD_PRELOAD=libgpumemtrace.so");
  }
  if (request.options.size() > kMaxOptions)
    return absl::InvalidArgumentError(absl::StrCat("options longer than ", kMaxOptions, " bytes"));
  if (request.library.size() >= sizeof(CallData::library_text) ||
      request.function.size() >= sizeof(CallData::function_text)) {
    return absl::InvalidArgumentError(absl::StrCat(request.library, ": the path is too long"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Reply> Inject(const Request& given) {
  if (absl::Status status = CheckRequest(given); !status.ok()) return status;
  Request request = given;
  if (!request.on_stage) request.on_stage = [](Stage) {};
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return absl::UnavailableError(absl::StrCat("cannot create a pipe: ", std::strerror(errno)));
  const pid_t child = fork();
  if (child == 0) {
    SendAnswer(ends[1], Work(request));
    _exit(0);
  }
  close(ends[1]);
  Answer answer;
  const bool answered = child > 0 && ReadWhole(ends[0], &answer);
  close(ends[0]);
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (answered) return FromAnswer(answer);
  return absl::AbortedError(absl::StrCat(
      "process ", request.pid, ": the injector ",
      child < 0 ? "could not be started" : absl::StrCat("was ended by signal ", WTERMSIG(status)),
      ". The process continues; it may have loaded ", request.library, " by itself"));
}

}  // namespace gmt::inject
