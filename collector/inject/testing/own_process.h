// collector/inject/testing/own_process.h
//
// OwnProcess: a fixture for tests that inspect their own process, whose contents they know, like
// another one.
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_INJECT_TESTING_OWN_PROCESS_H_
#define GMT_COLLECTOR_INJECT_TESTING_OWN_PROCESS_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "collector/inject/memory_map.h"
#include "collector/inject/remote_memory.h"

namespace gmt::inject {

class OwnProcess : public testing::Test {
 protected:
  void SetUp() override {
    auto memory = RemoteMemory::Open(getpid());
    auto map = ReadMemoryMap(getpid());
    ASSERT_TRUE(memory.ok() && map.ok());
    memory_.emplace(*std::move(memory));
    map_ = *std::move(map);
  }
  // Returns the base of the first image for which `is_it` is true; 0 if there is none.
  uint64_t BaseOf(bool (*is_it)(const Mapping&)) const {
    const auto it = std::find_if(map_.begin(), map_.end(),
                                 [&](const Mapping& m) { return is_it(m) && m.offset == 0; });
    return it == map_.end() ? 0 : it->start;
  }

  std::optional<RemoteMemory> memory_;
  MemoryMap map_;
};

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_TESTING_OWN_PROCESS_H_
