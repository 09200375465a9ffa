// collector/inject/testing/own_process.h
//
// OwnProcess: a test that looks at its own process as at another one, because it knows what is there.
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
  // Of the first image that `is_it` knows; 0: there is none.
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
