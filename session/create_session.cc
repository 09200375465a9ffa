#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "session/attach.h"
#include "session/session_file.h"

namespace gmt::session {
namespace {

// stat and fstat are called as system calls, because the library functions would require glibc
// 2.33.

constexpr long kTmpfsMagic = 0x01021994;
constexpr uint64_t kFilePage = 4096;

// Lays out the sections one after another, each starting on its own page, growing sections last.
// Returns the file size.
uint64_t LayOut(const SessionSizes& sizes, Section* sections) {
  uint64_t offset = kControlOffset + sizeof(Control);
  const auto place = [&](SectionId id, uint64_t stride, uint64_t count) {
    sections[id] = {offset, stride, count};
    offset += (stride * count + kFilePage - 1) / kFilePage * kFilePage;
  };
  place(kInfo, 1, sizes.info_bytes);
  place(kRing, sizeof(Slot), sizes.ring);
  place(kLiveKeys, sizeof(uint64_t), sizes.live);
  place(kLiveEntries, sizeof(LiveEntry), sizes.live);
  place(kStackIndex, sizeof(uint64_t), sizes.stack_index);
  place(kTextIndex, sizeof(uint64_t), sizes.text_index);
  place(kCodeIndex, sizeof(uint64_t), sizes.code_index);
  place(kModules, sizeof(ModuleRecord), sizes.modules);
  place(kInFlight, sizeof(InFlightSlot), sizes.in_flight);
  place(kContexts, sizeof(ContextEntry), sizes.contexts);
  place(kArena, sizeof(uint64_t), sizes.arena + sizes.arena_growth);
  for (uint32_t n = 0; n < kLiveLevels; ++n) {
    const uint64_t count = n < sizes.live_levels ? sizes.live << 2 * (n + 1) : 0;
    place(static_cast<SectionId>(kLiveLevel1 + n), LiveLevel::kStride, count);
  }
  return offset;
}

// The first step disables growth; each further step halves the session.
constexpr int kSteps = 5;

SessionSizes Shrink(const SessionSizes& sizes, int steps) {
  SessionSizes s = sizes;
  if (steps == 0) return s;
  s.live_levels = s.arena_growth = 0;
  s.ring >>= steps - 1;
  s.live >>= steps - 1;
  s.arena >>= steps - 1;
  return s;
}

// Reduces growth: first by the largest level of the live table, finally to none. Returns false if
// the session does not grow.
bool ReduceGrowth(SessionSizes* sizes) {
  if (sizes->live_levels == 0 && sizes->arena_growth == 0) return false;
  if (sizes->live_levels != 0) {
    --sizes->live_levels;
  } else {
    sizes->arena_growth = 0;
  }
  return true;
}

uint64_t Now(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000 + static_cast<uint64_t>(t.tv_nsec);
}

void FillHeader(Header* header, uint64_t file_size) {
  memcpy(header->magic, kMagic, sizeof(kMagic));
  header->abi_major = kAbiMajor;
  header->abi_minor = kAbiMinor;
  header->byte_order = kByteOrder;
  header->section_count = kSectionCount;
  header->file_size = file_size;
  header->pid = static_cast<uint64_t>(getpid());
  header->start_ticks = StartTicks(header->pid);
  ReadBootId(header->boot_id);
  struct stat ns;
  if (syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &ns, 0) == 0)
    header->pid_namespace = ns.st_ino;
  header->uid = geteuid();
  header->realtime_ns = Now(CLOCK_REALTIME);
  header->monotonic_ns = Now(CLOCK_MONOTONIC);
}

// A request for a session: sizes, contents of the info section, and whether memory comes with an
// attach.
struct SessionRequest {
  SessionSizes sizes;
  std::string_view info;
  AttachGate gate;
};

// Checks a file size limit (ulimit -f) in advance, because the kernel sends a signal for exceeding
// it.
bool WithinFileSizeLimit(uint64_t size) {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
         size <= limit.rlim_cur;
}

// Returns whether there is room for a session that may grow to `size`. The rest of a small file
// system is left to the traced program. A file system without a limit reports 0 blocks.
bool MayGrow(int fd, uint64_t size, uint64_t reserved) {
  struct statfs fs;
  if (!WithinFileSizeLimit(size) || fstatfs(fd, &fs) != 0) return false;
  return fs.f_blocks == 0 ||
         fs.f_bavail * static_cast<uint64_t>(fs.f_bsize) >= reserved + 4 * (size - reserved);
}

// Maps `size` bytes, of which the first `reserved` have memory, and touches those so that no writer
// takes the page faults. Bytes after `usable` are mapped inaccessible until they get memory;
// otherwise a program that locks its mappings (mlockall) would allocate them.
void* MapShared(int fd, uint64_t size, uint64_t usable, uint64_t reserved) {
  void* base = mmap(nullptr, size, PROT_NONE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) return base;
  void* touched =
      mmap(base, reserved, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0);
  if (touched != MAP_FAILED && mprotect(base, usable, PROT_READ | PROT_WRITE) == 0) return base;
  const int error = errno;
  munmap(base, size);
  errno = error;
  return MAP_FAILED;
}

// Returns whether an attach would find enough memory now. A file system without a limit reports 0
// blocks.
bool HasRoom(int fd, uint64_t bytes) {
  struct statfs fs;
  return fstatfs(fd, &fs) != 0 || fs.f_blocks == 0 ||
         fs.f_bavail * static_cast<uint64_t>(fs.f_bsize) >= bytes;
}

// Reserves, maps and fills the file `fd`. Returns 0 or an errno value.
int Fill(int fd, const SessionRequest& request, CreatedSession* session) {
  Section sections[kSectionCount];
  SessionSizes sizes = request.sizes;
  uint64_t size = LayOut(sizes, sections);
  const uint64_t recorded_to = ReservedBytes(sections, sizes.arena);
  while (recorded_to < size && !MayGrow(fd, size, recorded_to) && ReduceGrowth(&sizes))
    size = LayOut(sizes, sections);
  if (!WithinFileSizeLimit(size)) return EFBIG;
  const bool has_attach_gate = request.gate != AttachGate::kNone;
  if (has_attach_gate && !HasRoom(fd, recorded_to)) return ENOSPC;
  const uint64_t reserved = has_attach_gate ? sections[kRing].offset : recorded_to;
  const int failed = ReserveFile(fd, 0, reserved);
  if (failed != 0) return failed;
  if (reserved < size && ftruncate(fd, static_cast<off_t>(size)) != 0) return errno;
  void* base = MapShared(fd, size, sections[kLiveLevel1].offset, reserved);
  if (base == MAP_FAILED) return errno;
  auto* header = static_cast<Header*>(base);
  memcpy(header->sections, sections, sizeof(sections));
  FillHeader(header, size);
  const std::string_view info = request.info;
  memcpy(static_cast<char*>(base) + sections[kInfo].offset, info.data(),
         info.size() < sizes.info_bytes ? info.size() : sizes.info_bytes);
  session->base = base;
  session->size = size;
  session->arena_words = sizes.arena;
  session->map =
      SessionMap(base, reinterpret_cast<Control*>(static_cast<char*>(base) + kControlOffset));
  session->fd = fd;
  Control& control = session->map.control();
  control.attach_gate.store(request.gate, std::memory_order_relaxed);
  control.arena_backed.store(has_attach_gate ? 0 : sizes.arena, std::memory_order_release);
  return 0;
}

// Returns whether a smaller session may succeed. EAGAIN means the limit of locked memory.
bool TooBig(int error) {
  return error == ENOSPC || error == ENOMEM || error == EFBIG || error == EDQUOT || error == EAGAIN;
}

// Calls Fill() with the largest size that fits.
int FillShrinking(int fd, const SessionRequest& request, CreatedSession* session) {
  int error = 0;
  for (int steps = 0; steps < kSteps; ++steps) {
    error = Fill(fd, {Shrink(request.sizes, steps), request.info, request.gate}, session);
    if (!TooBig(error)) return error;
    if (ftruncate(fd, 0) != 0) return errno;
  }
  return error;
}

// Opens a directory that belongs to this user and is writable only by them; creates it if missing.
// Returns a descriptor or -errno.
int OpenDirectory(const char* path, bool must_be_tmpfs) {
  if (mkdir(path, 0700) != 0 && errno != EEXIST) return -errno;
  const int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (dir < 0) return -errno;
  struct stat st;
  struct statfs fs;
  int error = 0;
  if (syscall(SYS_fstat, dir, &st) != 0 || fstatfs(dir, &fs) != 0) {
    error = errno;
  } else if (st.st_uid != geteuid() || (st.st_mode & 022) != 0) {
    error = EPERM;
  } else if (must_be_tmpfs && fs.f_type != kTmpfsMagic) {
    error = EMEDIUMTYPE;
  }
  if (error == 0) return dir;
  close(dir);
  return -error;
}

// The name contains the creation time, because a process keeps pid and start time across exec.
void NameOf(const Header& header, char (&name)[96]) {
  snprintf(name, sizeof(name), "%llu-%llu-%llu.session",
           static_cast<unsigned long long>(header.pid),
           static_cast<unsigned long long>(header.start_ticks),
           static_cast<unsigned long long>(header.monotonic_ns));
}

// How the complete file gets its name: by linking an unnamed file, or, if the kernel or the file
// system does not support that, by renaming a hidden one.
enum class Naming { kLink, kRename };

int CreateIn(const char* directory, int dir, Naming naming, const SessionRequest& request,
             CreatedSession* session) {
  char hidden[64];
  snprintf(hidden, sizeof(hidden), ".%d-%llu", getpid(),
           static_cast<unsigned long long>(Now(CLOCK_MONOTONIC)));
  const int fd =
      naming == Naming::kLink
          ? openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)
          : openat(dir, hidden, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return errno;

  int error = FillShrinking(fd, request, session);
  if (error == 0) {
    char name[96], self[32];
    NameOf(session->map.header(), name);
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    const int named = naming == Naming::kLink ? linkat(AT_FDCWD, self, dir, name, AT_SYMLINK_FOLLOW)
                                              : renameat(dir, hidden, dir, name);
    if (named == 0) {
      snprintf(session->path, sizeof(session->path), "%s/%s", directory, name);
      return 0;
    }
    error = errno;
    munmap(session->base, session->size);
  }
  if (naming == Naming::kRename) unlinkat(dir, hidden, 0);
  close(fd);
  *session = CreatedSession();
  return error;
}

int CreateUnnamed(const SessionRequest& request, CreatedSession* session) {
  const int fd = memfd_create("gpumemtrace", MFD_CLOEXEC);
  if (fd < 0) return errno;
  const int error = FillShrinking(fd, request, session);
  if (error != 0) close(fd);
  return error;
}

}  // namespace

void InfoWriter::Add(std::string_view name, std::string_view value) {
  if (used_ + name.size() + value.size() + 2 > size_) return;
  for (const std::string_view part : {name, value}) {
    if (!part.empty()) memcpy(buffer_ + used_, part.data(), part.size());
    used_ += part.size();
    buffer_[used_++] = '\0';
  }
}

bool SessionDirectory(int n, char (&path)[PATH_MAX]) {
  const char* own = getenv("GPUMEMTRACE_DIR");
  const char* runtime = getenv("XDG_RUNTIME_DIR");
  path[0] = '\0';
  switch (n) {
    case 0:
      if (own != nullptr) snprintf(path, sizeof(path), "%s", own);
      return true;
    case 1:
      if (runtime != nullptr) snprintf(path, sizeof(path), "%s/gpumemtrace", runtime);
      return true;
    case 2:
      snprintf(path, sizeof(path), "/dev/shm/gpumemtrace-%u", geteuid());
      return true;
  }
  return false;
}

int CreateSession(const SessionSizes& sizes, std::string_view info, CreatedSession* session,
                  AttachGate gate) {
  const SessionRequest request = {sizes, info, gate};
  int error = ENOENT;
  char directory[PATH_MAX];
  for (int n = 0; SessionDirectory(n, directory); ++n) {
    if (directory[0] == '\0') continue;
    const int dir = OpenDirectory(directory, /*must_be_tmpfs=*/n != 0);
    if (dir < 0) {
      error = -dir;
      continue;
    }
    error = CreateIn(directory, dir, Naming::kLink, request, session);
    if (error != 0) error = CreateIn(directory, dir, Naming::kRename, request, session);
    close(dir);
    if (error == 0) return 0;
  }
  return gate == AttachGate::kNone ? CreateUnnamed(request, session) : error;
}

bool FindSessionName(int fd, const Header& header, char (&path)[PATH_MAX + 100]) {
  struct stat open_file, named;
  if (syscall(SYS_fstat, fd, &open_file) != 0) return false;
  char name[96], directory[PATH_MAX];
  NameOf(header, name);
  for (int n = 0; SessionDirectory(n, directory); ++n) {
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    if (syscall(SYS_newfstatat, AT_FDCWD, path, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        named.st_ino == open_file.st_ino && named.st_dev == open_file.st_dev) {
      return true;
    }
  }
  return false;
}

}  // namespace gmt::session
