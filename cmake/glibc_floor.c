// Debian 12's C++ runtime refers to arc4random, which glibc has since 2.36 only, and only for std::random_device; its
// libevent to arc4random_buf too. With these definitions in the program the bundle runs on glibc 2.35.

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

uint32_t arc4random(void);
void arc4random_buf(void *buffer, size_t size);

uint32_t arc4random(void) {
  uint32_t value;
  if (getentropy(&value, sizeof value) != 0) abort();
  return value;
}

void arc4random_buf(void *buffer, size_t size) {
  unsigned char *bytes = buffer;
  /* getentropy gives at most 256 bytes at a time. */
  while (size > 0) {
    const size_t part = size < 256 ? size : 256;
    if (getentropy(bytes, part) != 0) abort();
    bytes += part;
    size -= part;
  }
}
