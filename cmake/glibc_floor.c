// Debian 12's C++ runtime refers to arc4random, which glibc has since 2.36 only, and only for std::random_device. With
// this definition in the program the bundle runs on glibc 2.35.

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

uint32_t arc4random(void);

uint32_t arc4random(void) {
  uint32_t value;
  if (getentropy(&value, sizeof value) != 0) abort();
  return value;
}
