// collector/testing/collector_fixture.h
//
// For tests: a collector of a FakeTarget, and the recording that it writes.

#ifndef GMT_COLLECTOR_TESTING_COLLECTOR_FIXTURE_H_
#define GMT_COLLECTOR_TESTING_COLLECTOR_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <string>

#include "collector/collector.h"
#include "collector/testing/fake_target.h"

namespace gmt::collector {

class CollectorTest : public ::testing::Test {
 protected:
  // Starts the collector of `target`, which writes to bytes_.
  void Start(FakeTarget& target) {
    clock_.now_ns = target.now_ns;
    process_ = std::make_unique<Target>(target.map().header(), -1);
    auto output = std::make_unique<OutputFile>(
        [this](const char* bytes, size_t size) { return Accept(bytes, size); });
    CollectorDependencies deps = {target.map(), process_.get(), &clock_};
    deps.device_source = device_source_;
    auto collector = Collector::Start(deps, std::move(output));
    ASSERT_TRUE(collector.ok()) << collector.status();
    collector_ = *std::move(collector);
  }

  // Lets the collector read everything, and do one more round a second later.
  void ReadAll() {
    while (collector_->Round()) {
    }
    clock_.now_ns += kSecond;
    collector_->Round();
  }

  Recording ExitAndRead(FakeTarget& target, int code = 0) {
    target.Exit(code);
    EXPECT_TRUE(collector_->Run().ok());
    return ReadBack(bytes_);
  }

  ssize_t Accept(const char* bytes, size_t size) {
    const size_t n = std::min(size, disk_space_);
    bytes_.append(bytes, n);
    disk_space_ -= n;
    if (n > 0) return static_cast<ssize_t>(n);
    errno = ENOSPC;
    return -1;
  }

  std::function<std::unique_ptr<DeviceSource>()> device_source_;  // none by default
  FakeClock clock_;
  std::string bytes_;
  size_t disk_space_ = ~size_t{0};
  std::unique_ptr<Target> process_;
  std::unique_ptr<Collector> collector_;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_TESTING_COLLECTOR_FIXTURE_H_
