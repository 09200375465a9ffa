#include "collector/inject/target_info.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "collector/inject/proc_file.h"
#include "collector/inject/remote_image.h"
#include "session/process_stat.h"

namespace gmt::inject {
namespace {

std::string Proc(pid_t pid, const char* name) { return absl::StrCat("/proc/", pid, "/", name); }

template <typename T>
std::vector<T> Numbers(std::string_view text) {
  std::vector<T> numbers;
  for (const std::string& word : std::vector<std::string>(
           absl::StrSplit(std::string(text), absl::ByAnyChar(" \t"), absl::SkipEmpty()))) {
    T value;
    if (absl::SimpleAtoi(word, &value)) numbers.push_back(value);
  }
  return numbers;
}

template <typename T>
T FirstNumber(std::string_view text, T otherwise) {
  const std::vector<T> numbers = Numbers<T>(text);
  return numbers.empty() ? otherwise : numbers.front();
}

uint64_t NamespaceOf(const std::string& process, const char* kind) {
  struct stat st;
  return stat(absl::StrCat(process, "/ns/", kind).c_str(), &st) == 0 ? st.st_ino : 0;
}

std::string Link(const std::string& path) {
  char target[4096];
  const ssize_t n = readlink(path.c_str(), target, sizeof(target));
  return n > 0 ? std::string(target, static_cast<size_t>(n)) : std::string();
}

pid_t ParentOf(pid_t pid) {
  const absl::StatusOr<std::string> status = ReadProcFile(Proc(pid, "status"));
  return status.ok() ? FirstNumber<pid_t>(StatusField(*status, "PPid"), 0) : 0;
}

bool DescendsFrom(pid_t pid, pid_t ancestor) {
  constexpr int kMaxGenerations = 256;
  for (int i = 0; i < kMaxGenerations && pid > 1; ++i) {
    pid = ParentOf(pid);
    if (pid == ancestor) return true;
  }
  return false;
}

// ---- The program's file ------------------------------------------------------------------------

bool ReadAt(int fd, uint64_t offset, void* out, size_t size) {
  return pread(fd, out, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

std::string ReadInterpreter(int fd, const Elf64_Ehdr& header) {
  constexpr uint64_t kMaxPath = 4096;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!ReadAt(fd, header.e_phoff + static_cast<uint64_t>(i) * sizeof(segment), &segment,
                sizeof(segment)))
      return {};
    if (segment.p_type != PT_INTERP) continue;
    std::string path(std::min(segment.p_filesz, kMaxPath), '\0');
    if (!ReadAt(fd, segment.p_offset, path.data(), path.size())) return {};
    return path.c_str();
  }
  return {};
}

// A program started as an argument of the loader has the loader as its file.
bool IsLoaderItself(const std::string& program) {
  Mapping file;
  file.path = program;
  return IsLoader(file);
}

ProgramKind KindOf(int fd, const std::string& program, const MemoryMap& map,
                   std::string* interpreter) {
  Elf64_Ehdr header;
  if (!ReadAt(fd, 0, &header, sizeof(header)) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return ProgramKind::kUnknown;
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return ProgramKind::k32Bit;
  if (header.e_machine != kThisMachine) return ProgramKind::kOtherMachine;
  *interpreter = ReadInterpreter(fd, header);
  if (std::any_of(map.begin(), map.end(), IsLibc))
    return interpreter->empty() && !IsLoaderItself(program) ? ProgramKind::kHosted
                                                            : ProgramKind::kGlibc;
  if (std::any_of(map.begin(), map.end(), IsMusl) ||
      interpreter->find("ld-musl") != std::string::npos)
    return ProgramKind::kMusl;
  return interpreter->empty() ? ProgramKind::kStatic : ProgramKind::kNoLibc;
}

void InspectProgram(TargetInfo* info) {
  info->program = Link(Proc(info->pid, "exe"));
  const int fd = open(Proc(info->pid, "exe").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  info->kind = KindOf(fd, info->program, info->map, &info->interpreter);
  close(fd);
}

// ---- Rights ------------------------------------------------------------------------------------

int OpenErrno(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC);
  if (fd < 0) return errno;
  close(fd);
  return 0;
}

void InspectRights(TargetInfo* info) {
  info->memory_errno = OpenErrno(Proc(info->pid, "mem"), O_RDWR);
  absl::StatusOr<MemoryMap> map = ReadMemoryMap(info->pid);
  info->maps_errno = map.ok() ? 0 : absl::IsNotFound(map.status()) ? ESRCH : EACCES;
  if (map.ok()) info->map = *std::move(map);
  struct stat st;
  // The /proc files of an undumpable process belong to root.
  info->looks_undumpable =
      stat(Proc(info->pid, "maps").c_str(), &st) == 0 && st.st_uid == 0 && info->uid != 0;
  const absl::StatusOr<std::string> yama = ReadProcFile("/proc/sys/kernel/yama/ptrace_scope");
  if (yama.ok()) info->yama_scope = FirstNumber<int>(yama->substr(0, yama->find('\n')), -1);
  info->is_descendant = DescendsFrom(info->pid, getpid());
  const absl::StatusOr<std::string> self = ReadProcFile("/proc/self/status");
  if (!self.ok()) return;
  constexpr int kSysPtrace = 19;  // CAP_SYS_PTRACE
  uint64_t capabilities = 0;
  if (absl::SimpleHexAtoi(std::string(StatusField(*self, "CapEff")), &capabilities))
    info->can_trace_others = (capabilities >> kSysPtrace & 1) != 0;
  info->own_seccomp = FirstNumber<int>(StatusField(*self, "Seccomp"), 0);
  info->own_seccomp_filters = FirstNumber<int>(StatusField(*self, "Seccomp_filters"), 0);
}

void InspectStatus(const std::string& status, TargetInfo* info) {
  const pid_t group = FirstNumber<pid_t>(StatusField(status, "Tgid"), info->pid);
  if (group != info->pid) info->thread_of = group;
  info->name = StatusField(status, "Name");
  const std::string_view state = StatusField(status, "State");
  info->state = state.empty() ? '?' : state.front();
  info->threads = FirstNumber<int>(StatusField(status, "Threads"), 1);
  info->tracer = FirstNumber<pid_t>(StatusField(status, "TracerPid"), 0);
  info->uids = Numbers<uid_t>(StatusField(status, "Uid"));
  const std::vector<gid_t> gids = Numbers<gid_t>(StatusField(status, "Gid"));
  if (info->uids.size() > 1) info->uid = info->uids[1];
  if (gids.size() > 1) info->gid = gids[1];
  const std::vector<pid_t> pids = Numbers<pid_t>(StatusField(status, "NSpid"));
  info->inner_pid = pids.empty() ? info->pid : pids.back();
  info->seccomp = FirstNumber<int>(StatusField(status, "Seccomp"), 0);
  info->seccomp_filters = FirstNumber<int>(StatusField(status, "Seccomp_filters"), 0);
  // Kernel threads have no memory of their own.
  info->kernel_thread = StatusField(status, "VmSize").empty() && info->state != 'Z';
}

void InspectNamespaces(TargetInfo* info) {
  const std::string process = absl::StrCat("/proc/", info->pid);
  info->pid_namespace = NamespaceOf(process, "pid");
  const auto is_own = [&](const char* kind) {
    const uint64_t there = NamespaceOf(process, kind);
    return there == 0 || there == NamespaceOf("/proc/self", kind);
  };
  info->own_user_namespace = is_own("user");
  info->own_mount_namespace = is_own("mnt");
}

std::string NameOf(pid_t pid) {
  absl::StatusOr<std::string> name = ReadProcFile(Proc(pid, "comm"));
  if (!name.ok()) return {};
  while (!name->empty() && name->back() == '\n') name->pop_back();
  return *name;
}

bool IsOfDriver(const Mapping& m) { return m.Name().starts_with("libcuda.so"); }

// Returns field 28 of /proc/PID/stat: every exec() changes it, a fork keeps it. 0 if it is not
// visible.
uint64_t StartOfStack(pid_t pid) {
  return session::ProcessStat(absl::StrCat("/proc/", pid).c_str()).Field(28);
}

// Returns the address of the driver's first mapping; 0 if there is none.
uint64_t AddressOfDriver(pid_t pid) {
  const absl::StatusOr<MemoryMap> map = ReadMemoryMap(pid);
  if (!map.ok()) return 0;
  const auto driver = std::find_if(map->begin(), map->end(), IsOfDriver);
  return driver == map->end() ? 0 : driver->start;
}

bool HasInheritedDriver(pid_t pid) {
  const pid_t parent = ParentOf(pid);
  const uint64_t stack = StartOfStack(pid), driver = AddressOfDriver(pid);
  return stack != 0 && stack == StartOfStack(parent) && driver != 0 &&
         driver == AddressOfDriver(parent);
}

bool HasDeviceOpen(pid_t pid) {
  const std::string folder = Proc(pid, "fd");
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
  if (dir == nullptr) return false;
  while (const dirent* entry = readdir(dir.get())) {
    if (Link(absl::StrCat(folder, "/", entry->d_name)).starts_with("/dev/nvidia")) return true;
  }
  return false;
}

}  // namespace

TargetInfo Inspect(pid_t pid) {
  TargetInfo info;
  info.pid = pid;
  const absl::StatusOr<std::string> status = ReadProcFile(Proc(pid, "status"));
  info.exists = status.ok();
  if (!info.exists) return info;
  InspectStatus(*status, &info);
  if (info.tracer != 0) info.tracer_name = NameOf(info.tracer);
  InspectNamespaces(&info);
  InspectRights(&info);
  InspectProgram(&info);
  return info;
}

bool UsesGpu(pid_t pid) {
  const absl::StatusOr<MemoryMap> map = ReadMemoryMap(pid);
  return (map.ok() && std::any_of(map->begin(), map->end(), IsOfDriver)) || HasDeviceOpen(pid);
}

std::vector<pid_t> DescendantsThatUseGpu(pid_t pid) {
  std::multimap<pid_t, pid_t> children;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), closedir);
  if (proc == nullptr) return {};
  while (const dirent* entry = readdir(proc.get())) {
    pid_t child;
    if (absl::SimpleAtoi(entry->d_name, &child)) children.emplace(ParentOf(child), child);
  }
  std::vector<pid_t> found, waiting = {pid};
  while (!waiting.empty()) {
    const auto [begin, end] = children.equal_range(waiting.back());
    waiting.pop_back();
    for (auto it = begin; it != end; ++it) {
      waiting.push_back(it->second);
      if (UsesGpu(it->second) && !HasInheritedDriver(it->second)) found.push_back(it->second);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string CommandLineOf(pid_t pid, size_t max) {
  const absl::StatusOr<std::string> words = ReadProcFile(Proc(pid, "cmdline"));
  if (!words.ok()) return {};
  std::string line = *words;
  while (!line.empty() && line.back() == '\0') line.pop_back();
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  if (line.size() > max) line = absl::StrCat(line.substr(0, max - 3), "...");
  return line;
}

}  // namespace gmt::inject
