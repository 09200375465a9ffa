#include "collector/inject/thread_search.h"

#include <dirent.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "collector/inject/proc_file.h"
#include "collector/inject/safe_point.h"
#include "session/process_stat.h"

namespace gmt::inject {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kStopPatience(100);
constexpr size_t kMaxReasons = 3;

std::vector<pid_t> Threads(pid_t pid) {
  std::vector<pid_t> threads;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(
      opendir(absl::StrCat("/proc/", pid, "/task").c_str()), closedir);
  if (dir == nullptr) return threads;
  while (const dirent* entry = readdir(dir.get())) {
    pid_t thread;
    if (absl::SimpleAtoi(entry->d_name, &thread)) threads.push_back(thread);
  }
  return threads;
}

std::string TaskFolder(pid_t pid, pid_t thread) {
  return absl::StrCat("/proc/", pid, "/task/", thread);
}

session::ProcessStat StatOf(pid_t pid, pid_t thread) {
  return session::ProcessStat(TaskFolder(pid, thread).c_str());
}

// Returns the system call that a thread sleeps in, without disturbing it; kNoSyscall if it runs or
// the kernel does not report it.
int64_t SleepsIn(pid_t pid, pid_t thread) {
  const absl::StatusOr<std::string> text = ReadProcFile(TaskFolder(pid, thread) + "/syscall");
  if (!text.ok()) return kNoSyscall;
  int64_t number;
  return absl::SimpleAtoi(text->substr(0, text->find(' ')), &number) ? number : kNoSyscall;
}

// Threads of lower rank are checked first. Negative: never, because it could not be stopped or is
// gone.
int Rank(pid_t pid, pid_t thread) {
  const session::ProcessStat stat = StatOf(pid, thread);
  if (stat.HasEnded() || stat.state() == 'D' || stat.state() == 't') return -1;
  const int64_t number = SleepsIn(pid, thread);
  if (number == kNoSyscall) return 2;
  if (!IsWaiting(number)) return 3;
  return IsFutex(number) ? 1 : 0;
}

std::vector<pid_t> ThreadsInOrder(pid_t pid) {
  std::vector<std::pair<int, pid_t>> ranked;
  for (const pid_t thread : Threads(pid)) {
    const int rank = Rank(pid, thread);
    if (rank >= 0) ranked.emplace_back(rank, thread);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<pid_t> threads;
  for (const auto& [rank, thread] : ranked) threads.push_back(thread);
  return threads;
}

// Returns whether the thread is in a restartable sequence (rseq). The kernel would forget to
// restart it while another call runs. Layouts of linux/ptrace.h and linux/rseq.h (5.13).
bool IsInRestartableSequence(pid_t thread, const RemoteMemory& memory) {
  constexpr int kGetConfiguration = 0x420f;  // PTRACE_GET_RSEQ_CONFIGURATION
  struct {
    uint64_t pointer;
    uint32_t size, signature, flags, pad;
  } configuration = {};
  if (ptrace(static_cast<__ptrace_request>(kGetConfiguration), thread, sizeof(configuration),
             &configuration) != sizeof(configuration)) {
    return false;
  }
  constexpr uint64_t kCriticalSection = 8;
  uint64_t section = 0;
  return configuration.pointer != 0 &&
         memory.Read(configuration.pointer + kCriticalSection, &section) && section != 0;
}

class Search {
 public:
  Search(pid_t pid, const RemoteMemory& memory, const RemoteImage& libc,
         const std::function<void(Stage)>& on_stage)
      : pid_(pid), memory_(memory), libc_(libc), on_stage_(on_stage) {}

  absl::StatusOr<FoundThread> Run(milliseconds patience) {
    const auto deadline = steady_clock::now() + patience;
    std::minstd_rand random(static_cast<unsigned>(getpid()));
    if (ReadMap()) allocators_ = OwnAllocators::Find(memory_, found_.map);
    do {
      for (const pid_t thread : ThreadsInOrder(pid_)) {
        absl::StatusOr<bool> found = Try(thread);
        if (!found.ok()) return found.status();
        if (*found) return std::move(found_);
        if (steady_clock::now() > deadline) break;
      }
      if (Threads(pid_).size() <= 1 && StatOf(pid_, pid_).HasEnded())
        return absl::NotFoundError(absl::StrCat("process ", pid_, " has ended"));
      found_.DetachUnstopped();
      usleep(50 + random() % 1000);
    } while (steady_clock::now() < deadline);
    return absl::DeadlineExceededError(
        absl::StrCat("process ", pid_, ": no safe moment in ",
                     std::chrono::duration_cast<std::chrono::seconds>(patience).count(), " s (",
                     found_.tries, " checks", DescribeFailedChecks(), "). Nothing was changed"));
  }

 private:
  absl::StatusOr<bool> Try(pid_t id) {
    // We trace it already: it did not stop in time at an earlier check.
    if (std::any_of(found_.unstopped.begin(), found_.unstopped.end(),
                    [id](const auto& thread) { return thread->id() == id; })) {
      return false;
    }
    absl::StatusOr<std::unique_ptr<TracedThread>> thread = TracedThread::Seize(id);
    // The kernel also reports a thread that has just ended as not permitted.
    if (absl::IsNotFound(thread.status()) || (!thread.ok() && StatOf(pid_, id).HasEnded()))
      return false;
    if (!thread.ok()) return thread.status();
    on_stage_(Stage::kSeized);
    ++found_.tries;
    if (!(*thread)->Stop(kStopPatience)) {
      No("that cannot be stopped");
      found_.unstopped.push_back(*std::move(thread));
      return false;
    }
    on_stage_(Stage::kStopped);
    if (!IsSafe(id)) return false;
    found_.thread = *std::move(thread);
    return true;
  }

  bool IsSafe(pid_t id) {
    if (!ReadRegisters(id, &found_.registers)) return No("gone");
    // The mappings of a busy process seldom change. The final decision uses fresh ones.
    if (found_.map.empty() && !ReadMap()) return No("gone");
    SafePoint point = CheckRegisters(found_.registers, found_.map);
    if (!point.safe) {
      found_.map.clear();
      return No(point.why_not);
    }
    if (!ReadMap()) return No("gone");
    point = CheckRegisters(found_.registers, found_.map);
    if (point.safe && IsInRestartableSequence(id, memory_)) return No("in a restartable sequence");
    if (point.safe) point = CheckFrames(pid_, id, found_.registers, found_.map, libc_, allocators_);
    return point.safe || No(point.why_not);
  }

  bool ReadMap() {
    absl::StatusOr<MemoryMap> map = ReadMemoryMap(pid_);
    if (!map.ok()) return false;
    found_.map = *std::move(map);
    return true;
  }

  bool No(const std::string& why) {
    ++failed_checks_[why];
    return false;
  }

  // Returns ": 1390 found a thread inside of malloc, 36 that cannot be stopped", most frequent
  // first.
  std::string DescribeFailedChecks() const {
    std::vector<std::pair<int, std::string>> found;
    for (const auto& [why, times] : failed_checks_) found.emplace_back(-times, why);
    std::sort(found.begin(), found.end());
    std::string text;
    for (size_t i = 0; i < std::min(found.size(), kMaxReasons); ++i)
      absl::StrAppend(&text, i == 0 ? ": " : ", ", -found[i].first,
                      i == 0 ? " found a thread " : " ", found[i].second);
    return text;
  }

  const pid_t pid_;
  const RemoteMemory& memory_;
  const RemoteImage& libc_;
  const std::function<void(Stage)>& on_stage_;
  OwnAllocators allocators_;
  FoundThread found_;
  std::map<std::string, int> failed_checks_;  // why a check failed -> how often
};

}  // namespace

absl::StatusOr<FoundThread> FindSafeThread(pid_t pid, const RemoteMemory& memory,
                                           const RemoteImage& libc, milliseconds patience,
                                           const std::function<void(Stage)>& on_stage) {
  return Search(pid, memory, libc, on_stage).Run(patience);
}

void FoundThread::DetachUnstopped() {
  std::erase_if(unstopped, [](const auto& t) { return t->Stop(milliseconds(0)); });
}

std::string DescribeThread(pid_t pid, pid_t thread) {
  const char state = StatOf(pid, thread).state();
  if (state == 0) return "gone";
  if (state == 'T') return "stopped by a signal (SIGCONT continues it)";
  if (state == 'D') return "waiting in the kernel, where nothing can interrupt it";
  if (state == 't') return "stopped by another tracer";
  if (state == 'R') return "running";
  const int64_t number = SleepsIn(pid, thread);
  return number == kNoSyscall ? "sleeping" : absl::StrCat("sleeping in system call ", number);
}

}  // namespace gmt::inject
