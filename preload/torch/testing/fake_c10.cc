// libc10.so of the fake PyTorch: the functions that receive the profiler's reports.

#include "preload/torch/testing/fake_torch.h"

namespace {
FakeCounts forwarded = {};
}

void c10::reportMemoryUsageToProfiler(void*, int64_t, size_t, size_t, Device) {
  ++forwarded.reports;
}
void c10::reportOutOfMemoryToProfiler(int64_t, size_t, size_t, Device) { ++forwarded.lacks; }
void c10::LogAPIUsage(const std::string&) { ++forwarded.reports; }

FakeCounts FakeForwarded() { return forwarded; }
