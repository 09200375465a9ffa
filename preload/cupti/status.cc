// Answers `gpumemtrace doctor`: which libcupti a process in this environment would use.

#include <stdio.h>

#include "preload/api.h"
#include "preload/cupti/find_cupti.h"
#include "preload/export.h"

GMT_EXPORT const char* gpumemtrace_cupti_status() {
  static constinit char status[512] = {};
  gmt::preload::CuptiLibrary library;
  char reason[256];
  if (gmt::preload::FindCupti(&library, reason, sizeof(reason))) {
    snprintf(status, sizeof(status), "on: %s, version %u", library.name, library.version);
  } else {
    snprintf(status, sizeof(status), "off: %s", reason);
  }
  return status;
}
