// Debian 12's C++ runtime references arc4random, which glibc has only since 2.36, and only for
// std::random_device. Its libevent also references arc4random_buf. With these definitions in the
// program the bundle runs on glibc 2.35.

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
  /* getentropy returns at most 256 bytes per call. */
  while (size > 0) {
    const size_t part = size < 256 ? size : 256;
    if (getentropy(bytes, part) != 0) abort();
    bytes += part;
    size -= part;
  }
}
