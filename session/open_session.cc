#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session/process_stat.h"
#include "session/session_file.h"

namespace gmt::session {
namespace {

constexpr uint64_t kStrides[kSectionCount] = {1,
                                              sizeof(Slot),
                                              8,
                                              sizeof(LiveEntry),
                                              8,
                                              8,
                                              8,
                                              sizeof(ModuleRecord),
                                              sizeof(InFlightSlot),
                                              sizeof(ContextEntry),
                                              8,
                                              LiveLevel::kStride,
                                              LiveLevel::kStride,
                                              LiveLevel::kStride};

bool IsPowerOfTwo(uint64_t n) { return n != 0 && (n & (n - 1)) == 0; }

bool LiesInside(const Section& s, uint64_t stride, uint64_t file_size) {
  return s.stride == stride && s.offset % 4096 == 0 &&
         s.offset >= kControlOffset + sizeof(Control) && s.offset <= file_size && s.count != 0 &&
         s.count <= (file_size - s.offset) / s.stride;
}

uint32_t SectionsOf(const Header& header) {
  return header.section_count < kSectionCount ? header.section_count : kSectionCount;
}

// Checks the levels of the live table. They are in order and end at the first absent one.
const char* CheckLevels(const Header& header, uint64_t file_size) {
  bool ended = false;
  for (uint32_t id = kLiveLevel1; id < SectionsOf(header); ++id) {
    const Section& s = header.sections[id];
    if (s.count == 0) {
      ended = true;
      continue;
    }
    if (ended || !LiesInside(s, kStrides[id], file_size))
      return "a section extends beyond the file";
    if (!IsPowerOfTwo(s.count) || s.count < LiveLevel::kGroupSize)
      return "a table's size is not a power of two";
  }
  return nullptr;
}

}  // namespace

const char* CheckHeader(const Header& header, uint64_t file_size) {
  if (memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) return "it is not a gpumemtrace session";
  if (header.byte_order != kByteOrder) return "it has another byte order";
  if (header.abi_major != kAbiMajor) return "it was made by an incompatible release";
  if (header.file_size != file_size) return "its size is not what its header says";
  if (header.section_count < kFirstSectionCount) return "it lacks sections";
  for (uint32_t id = 0; id < kFirstSectionCount; ++id) {
    if (!LiesInside(header.sections[id], kStrides[id], file_size))
      return "a section extends beyond the file";
  }
  for (const SectionId id : {kRing, kLiveKeys, kStackIndex, kTextIndex, kCodeIndex}) {
    if (!IsPowerOfTwo(header.sections[id].count)) return "a table's size is not a power of two";
  }
  if (header.sections[kLiveKeys].count != header.sections[kLiveEntries].count ||
      header.sections[kLiveKeys].count < LiveLevel::kGroupSize) {
    return "its live table is inconsistent";
  }
  return CheckLevels(header, file_size);
}

OpenedSession OpenSession(int fd) {
  OpenedSession session;
  struct stat st;
  if (syscall(SYS_fstat, fd, &st) != 0 ||
      st.st_size < static_cast<off_t>(kControlOffset + sizeof(Control))) {
    session.error = "it is too short to be a session";
    return session;
  }
  // Check a copy, because the traced process could change the mapping between check and use.
  Header header;
  if (pread(fd, &header, sizeof(header), 0) != static_cast<ssize_t>(sizeof(header))) {
    session.error = "it cannot be read";
    return session;
  }
  session.size = static_cast<size_t>(st.st_size);
  session.error = CheckHeader(header, session.size);
  if (session.error != nullptr) return session;
  for (uint32_t id = SectionsOf(header); id < kSectionCount; ++id) header.sections[id] = {};
  session.base = mmap(nullptr, session.size, PROT_READ, MAP_SHARED, fd, 0);
  session.control =
      mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, kControlOffset);
  // Map a private page over the header so that later reads see the checked copy.
  void* page = session.base == MAP_FAILED
                   ? MAP_FAILED
                   : mmap(session.base, sizeof(Header), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_FIXED, fd, 0);
  if (page == MAP_FAILED || session.control == MAP_FAILED) {
    session.error = "it cannot be mapped";
    return session;
  }
  memcpy(page, &header, sizeof(header));
  session.map = SessionMap(session.base, static_cast<Control*>(session.control));
  return session;
}

void CloseSession(OpenedSession* session) {
  if (session->base != nullptr && session->base != MAP_FAILED) munmap(session->base, session->size);
  if (session->control != nullptr && session->control != MAP_FAILED)
    munmap(session->control, sizeof(Control));
  *session = OpenedSession();
}

namespace {

// Returns by how many ticks the clock of start times is ahead in the time namespace of a process, 0
// if the kernel has no time namespaces.
int64_t TicksAhead(const char* folder) {
  char path[64], text[256];
  snprintf(path, sizeof(path), "%s/timens_offsets", folder);
  if (!ReadSmallFile(path, text, sizeof(text))) return 0;
  const char* p = strstr(text, "boottime");
  if (p == nullptr) return 0;
  char* end;
  const long long seconds = strtoll(p + strlen("boottime"), &end, 10);
  const long long ns = strtoll(end, nullptr, 10);
  const long long per_second = sysconf(_SC_CLK_TCK);
  return seconds * per_second + ns * per_second / 1000000000;
}

}  // namespace

uint64_t StartTicks(uint64_t pid) {
  char folder[32];
  snprintf(folder, sizeof(folder), "/proc/%llu", static_cast<unsigned long long>(pid));
  const uint64_t ticks = ProcessStat(folder).Field(22);
  if (ticks == 0) return 0;
  if (pid == static_cast<uint64_t>(getpid())) return ticks;
  return ticks + static_cast<uint64_t>(TicksAhead(folder) - TicksAhead("/proc/self"));
}

bool IsForkChild() {
  constexpr uint64_t kForkedWithoutExec = 0x40;  // PF_FORKNOEXEC, linux/sched.h
  return (ProcessStat("/proc/self").Field(9) & kForkedWithoutExec) != 0;
}

bool ReadBootId(uint8_t (&boot_id)[16]) {
  char text[37];
  if (!ReadSmallFile("/proc/sys/kernel/random/boot_id", text, sizeof(text)) || strlen(text) != 36)
    return false;
  int nibble = 0;
  for (const char* p = text; *p != '\0' && nibble < 32; ++p) {
    const char c = *p;
    const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (value < 0) continue;
    boot_id[nibble / 2] = static_cast<uint8_t>(boot_id[nibble / 2] << 4 | value);
    ++nibble;
  }
  return nibble == 32;
}

bool IsThisBoot(const Header& header) {
  uint8_t boot_id[16] = {};
  return ReadBootId(boot_id) && memcmp(boot_id, header.boot_id, sizeof(boot_id)) == 0;
}

}  // namespace gmt::session
