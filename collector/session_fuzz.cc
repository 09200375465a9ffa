// A fuzzer (clang, -DGMT_BUILD_FUZZERS=ON): whatever a traced process does to its session, the
// collector comes to an end and leaves a recording that can be read and whose losses add up.
// Run: session_fuzz -max_len=4096 -timeout=10 -rss_limit_mb=2048 CORPUS

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "collector/hostile_session.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::Status status = gmt::collector::HostileSession(data, size).Play();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}
