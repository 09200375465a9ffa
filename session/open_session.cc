#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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
                                              8};

bool IsPowerOfTwo(uint64_t n) { return n != 0 && (n & (n - 1)) == 0; }

}  // namespace

const char* CheckHeader(const Header& header, uint64_t file_size) {
  if (memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) return "it is not a gpumemtrace session";
  if (header.byte_order != kByteOrder) return "it has another byte order";
  if (header.abi_major != kAbiMajor) return "it was made by an incompatible release";
  if (header.file_size != file_size) return "its size is not what its header says";
  if (header.section_count < kSectionCount) return "it lacks sections";
  for (uint32_t id = 0; id < kSectionCount; ++id) {
    const Section& s = header.sections[id];
    if (s.stride != kStrides[id] || s.offset % 4096 != 0 ||
        s.offset < kControlOffset + sizeof(Control) || s.offset > file_size || s.count == 0 ||
        s.count > (file_size - s.offset) / s.stride) {
      return "a section does not lie inside it";
    }
  }
  for (const SectionId id : {kRing, kLiveKeys, kStackIndex, kTextIndex, kCodeIndex}) {
    if (!IsPowerOfTwo(header.sections[id].count)) return "a table's size is not a power of two";
  }
  if (header.sections[kLiveKeys].count != header.sections[kLiveEntries].count ||
      header.sections[kLiveKeys].count < LiveTable::kGroupSize) {
    return "its live table is inconsistent";
  }
  return nullptr;
}

OpenedSession OpenSession(int fd) {
  OpenedSession session;
  struct stat st;
  if (syscall(SYS_fstat, fd, &st) != 0 ||
      st.st_size < static_cast<off_t>(kControlOffset + sizeof(Control))) {
    session.error = "it is too short to be a session";
    return session;
  }
  // Checked in a copy: the traced process could change what is mapped between check and use.
  Header header;
  if (pread(fd, &header, sizeof(header), 0) != static_cast<ssize_t>(sizeof(header))) {
    session.error = "it cannot be read";
    return session;
  }
  session.size = static_cast<size_t>(st.st_size);
  session.error = CheckHeader(header, session.size);
  if (session.error != nullptr) return session;
  session.base = mmap(nullptr, session.size, PROT_READ, MAP_SHARED, fd, 0);
  session.control =
      mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, kControlOffset);
  // A private page over the header keeps the checked copy in front of what reads it from now on.
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

uint64_t StartTicks(uint64_t pid) {
  char path[64], text[1024];
  snprintf(path, sizeof(path), "/proc/%llu/stat", static_cast<unsigned long long>(pid));
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t n = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (n <= 0) return 0;
  text[n] = '\0';
  const char* p = strrchr(text, ')');  // the name before it may hold blanks and parentheses
  for (int field = 2; p != nullptr && field < 22; ++field) p = strchr(p + 1, ' ');
  return p == nullptr ? 0 : strtoull(p, nullptr, 10);
}

bool ReadBootId(uint8_t (&boot_id)[16]) {
  char text[37] = {};
  const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t n = read(fd, text, 36);
  close(fd);
  if (n != 36) return false;
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

}  // namespace gmt::session
