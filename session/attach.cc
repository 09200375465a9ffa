#include "session/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session/populate.h"

namespace gmt::session {
namespace {

constexpr uint64_t kPage = 4096;
constexpr int kAttempts = 100;

char* SectionsOf(const SessionMap& session) { return session.section<char>(kRing); }

uint64_t BytesOf(const SessionMap& session) {
  return session.header().file_size - session.header().sections[kRing].offset;
}

// Returns the bytes that may be accessed. Before Linux 6.7, MADV_REMOVE accepts no more than these.
uint64_t BytesOfMemory(const SessionMap& session) {
  const uint64_t further =
      session.count(kLiveLevel1) == 0
          ? BytesOf(session)
          : session.header().sections[kLiveLevel1].offset - session.header().sections[kRing].offset;
  return further + session.live().FurtherBytes();
}

int ReserveByName(const char* path, uint64_t offset, uint64_t bytes) {
  const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return errno;
  const int error = ReserveFile(fd, offset, bytes);
  close(fd);
  return error;
}

}  // namespace

uint64_t ReservedBytes(const Section* sections, uint64_t arena_words) {
  const uint64_t bytes = sections[kArena].offset + arena_words * sizeof(uint64_t);
  return (bytes + kPage - 1) / kPage * kPage;
}

int ReserveFile(int fd, uint64_t offset, uint64_t bytes) {
  int failed = EINTR;  // for example, job control (stop and continue) interrupts it
  for (int attempt = 0; attempt < kAttempts && failed == EINTR; ++attempt)
    failed = posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  return failed;
}

int BackSections(const SessionMap& session, uint64_t arena_words, const char* path) {
  const bool empty = DropSections(session);  // a killed reader may have left data
  const Section* sections = session.header().sections;
  const uint64_t offset = sections[kRing].offset;
  const uint64_t bytes = ReservedBytes(sections, arena_words) - offset;
  int error = Populate(SectionsOf(session), bytes);
  // The kernel cannot populate, or a sandbox forbids it.
  if (error != 0 && error != EFAULT) error = ReserveByName(path, offset, bytes);
  if (error == 0 && !empty) {
    memset(SectionsOf(session), 0, bytes);
    error = session.live().EmptyFurtherLevels();
  }
  if (error == EFAULT) error = ENOSPC;  // MADV_POPULATE_WRITE reports a full file system as EFAULT
  if (error != 0) DropSections(session);
  return error;
}

// The program may have locked all its memory with mlockall; that lock must not apply to ours.
bool DropSections(const SessionMap& session) {
  char* const sections = SectionsOf(session);
  const auto remove = [&] {
    // Prefer the whole range, because the kernel may have backed slightly more than was accessed.
    return madvise(sections, BytesOf(session), MADV_REMOVE) == 0 ||
           madvise(sections, BytesOfMemory(session), MADV_REMOVE) == 0;
  };
  if (remove()) return true;
  munlock(sections, BytesOf(session));
  return remove();
}

uint32_t RequestAttach(Control* control, std::string_view options) {
  if (control->attach_gate.load(std::memory_order_relaxed) == AttachGate::kNone ||
      control->attach_wanted.load(std::memory_order_acquire) != 0 ||
      control->attach_now.load(std::memory_order_acquire) != 0 ||
      options.size() > sizeof(control->attach_options)) {
    return 0;
  }
  memcpy(control->attach_options, options.data(), options.size());
  control->attach_options_size.store(static_cast<uint32_t>(options.size()),
                                     std::memory_order_relaxed);
  const uint32_t last = control->attach_last.load(std::memory_order_relaxed);
  const uint32_t refused = control->attach_refused.load(std::memory_order_relaxed);
  const uint32_t number = ((last > refused ? last : refused) + 1) | kAttachRequested;
  // Sequentially consistent, because the client reads slots_restored next.
  control->attach_wanted.store(number, std::memory_order_seq_cst);
  return number;
}

bool ReleaseSections(int fd, const SessionMap& session) {
  if (!session.has_attach_gate() || session.control().attach_now.load() != 0 ||
      session.control().attach_wanted.load() != 0) {
    return false;
  }
  return syscall(SYS_fallocate, fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                 session.header().sections[kRing].offset, BytesOf(session)) == 0;
}

}  // namespace gmt::session
