#include "preload/base/message.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gmt::preload {
namespace {

// stat and fstat by system call number: the libc functions would require glibc 2.33.
bool Stat(int fd, struct stat* st) { return syscall(SYS_fstat, fd, st) == 0; }

bool IsLocalSocket(int fd) {
  sockaddr_storage address;
  socklen_t size = sizeof(address);
  return getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
         address.ss_family == AF_UNIX;
}

// Returns whether messages may be written to this descriptor. A program that has closed everything
// may have a file or connection of its own under stderr's number, which a message would corrupt. A
// file that receives messages is positioned at its end.
bool TakesMessages(int fd) {
  struct stat st;
  if (!Stat(fd, &st)) return false;
  if (S_ISREG(st.st_mode))
    return (fcntl(fd, F_GETFL) & O_APPEND) != 0 || lseek(fd, 0, SEEK_CUR) == st.st_size;
  return S_ISSOCK(st.st_mode) ? IsLocalSocket(fd) : !S_ISBLK(st.st_mode);
}

// A pipe that is not being read would block the program.
bool HasRoom(int fd) {
  pollfd wanted = {fd, POLLOUT, 0};
  return poll(&wanted, 1, 0) == 1 && (wanted.revents & POLLOUT) != 0;
}

}  // namespace

void Say(const char* text, ...) {
  constexpr char kPrefix[] = "gpumemtrace: ";
  char line[8192];
  memcpy(line, kPrefix, sizeof(kPrefix));
  size_t used = sizeof(kPrefix) - 1;
  va_list arguments;
  va_start(arguments, text);
  const int n = vsnprintf(line + used, sizeof(line) - used - 1, text, arguments);
  va_end(arguments);
  if (n > 0)
    used += static_cast<size_t>(n) < sizeof(line) - used - 1 ? static_cast<size_t>(n)
                                                             : sizeof(line) - used - 2;
  line[used++] = '\n';
  if (TakesMessages(STDERR_FILENO) && HasRoom(STDERR_FILENO))
    (void)!write(STDERR_FILENO, line, used);
}

}  // namespace gmt::preload
