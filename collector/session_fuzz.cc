// A fuzzer (preset fuzz): whatever a traced process does to its session, the collector ends and
// leaves a readable recording whose losses add up.
// Run: build/fuzz/fuzz/session_fuzz -len_control=0 -max_len=4096 -timeout=10 CORPUS

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "collector/testing/hostile_session.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::Status status = gmt::collector::HostileSession(data, size).Play();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}
