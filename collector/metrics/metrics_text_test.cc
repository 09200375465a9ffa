#include "collector/metrics/metrics_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/control.pb.h"
#include "proto/leaks.pb.h"

namespace gmt::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;

// Two devices with two heaps each, and host memory.
control::Status TwoDevices() {
  control::Status status;
  for (uint32_t index = 0; index < 2; ++index) {
    control::DeviceStatus* device = status.add_devices();
    device->set_index(index);
    device->set_physical_index(index + 4);
    device->set_uuid("GPU-" + std::to_string(index));
    device->set_pci_bus_id("0000:0" + std::to_string(index) + ":00.0");
    device->set_total_bytes(100);
    device->set_used_bytes(60 + index);
    for (const char* heap : {"driver", "pytorch"}) {
      control::HeapStatus* added = status.add_heaps();
      added->set_device(index);
      added->set_heap(heap);
      added->set_live_bytes(heap[0] == 'd' ? 50 : 40);
      added->set_allocations(7);
      if (heap[0] == 'p') added->set_reserved_bytes(50);
    }
  }
  control::HeapStatus* host = status.add_heaps();
  host->set_heap("host");
  host->set_live_bytes(5);
  status.set_lag_ns(1'500'000'000);
  return status;
}

Identity Someone() {
  Identity identity;
  identity.hostname = "node\"1\\";
  identity.rank = "3";
  identity.version = "1.2.3";
  return identity;
}

std::string Text() { return MetricsText(TwoDevices(), nullptr, Someone(), Dialect::kPrometheus); }

TEST(MetricsTextTest, DeviceLabelsMatchDcgm) {
  EXPECT_THAT(Text(), HasSubstr("gpumemtrace_device_memory_inuse_bytes{gpu=\"5\",UUID=\"GPU-1\","
                                "pci_bus_id=\"0000:01:00.0\",Hostname=\"node\\\"1\\\\\","
                                "kind=\"driver\"} 50\n"));
}

TEST(MetricsTextTest, BlocksInsideDeviceMemoryAreNotCountedTwice) {
  std::istringstream lines(Text());
  int inuse = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("gpumemtrace_device_memory_inuse_bytes{", 0) != 0) continue;
    ++inuse;
    EXPECT_THAT(line, HasSubstr("kind=\"driver\""));
  }
  EXPECT_EQ(inuse, 2);
  EXPECT_THAT(Text(), HasSubstr("gpumemtrace_host_memory_inuse_bytes{"));
}

TEST(MetricsTextTest, EmptyLabelsAreOmitted) {
  EXPECT_THAT(Text(),
              HasSubstr("gpumemtrace_target_info{Hostname=\"node\\\"1\\\\\",rank=\"3\"} 1"));
  EXPECT_THAT(MetricsText({}, nullptr, {}, Dialect::kPrometheus),
              HasSubstr("gpumemtrace_target_info 1\n"));
}

TEST(MetricsTextTest, LabelsShowControlCharactersOfAProcessAsEscapes) {
  Identity identity = Someone();
  identity.hostname = "\x1b]0;x\a\n} 99\u202e\x7f";
  control::Status status = TwoDevices();
  status.mutable_heaps(0)->set_heap("heap\n\x1b[2J");
  const std::string text = MetricsText(status, nullptr, identity, Dialect::kPrometheus);
  for (const char* hostile : {"\x1b", "\a", "\x7f", "\u202e", "\n} 99"})
    EXPECT_THAT(text, Not(HasSubstr(hostile)));
  EXPECT_THAT(text, HasSubstr(R"(Hostname="\\x1b]0;x\\x07\\n} 99\\u202e\\x7f")"));
}

TEST(MetricsTextTest, TimesAreInSeconds) {
  EXPECT_THAT(Text(), HasSubstr("gpumemtrace_collector_lag_seconds 1.5\n"));
}

TEST(MetricsTextTest, OpenMetricsFamiliesHaveNoSuffixAndTheTextEnds) {
  const std::string text = MetricsText(TwoDevices(), nullptr, Someone(), Dialect::kOpenMetrics);
  EXPECT_THAT(text, HasSubstr("# TYPE gpumemtrace_allocations counter\n"
                              "gpumemtrace_allocations_total{"));
  EXPECT_THAT(text, testing::EndsWith("# EOF\n"));
  EXPECT_THAT(Text(), Not(HasSubstr("# EOF")));
}

TEST(MetricsTextTest, EachFamilyAndSeriesIsWrittenOnce) {
  std::istringstream lines(Text());
  std::set<std::string> seen;
  for (std::string line; std::getline(lines, line);) {
    const std::string name =
        line[0] == '#' ? line.substr(0, line.find(' ', 9)) : line.substr(0, line.rfind(' '));
    EXPECT_TRUE(seen.insert(name).second) << name;
  }
}

gmt::LeakAnswer TwoSuspects() {
  gmt::LeakAnswer leaks;
  leaks.set_verdict(gmt::LeakAnswer::LEAK);
  leaks.set_cycles_for_likely(100);
  leaks.mutable_cycles()->set_count(240);
  for (const uint64_t bytes : {600u, 400u}) {
    gmt::LeakSuspect* suspect = leaks.add_suspects();
    suspect->set_tier("leak");
    suspect->set_place("train.py:31");
    suspect->set_bytes(bytes);
    suspect->mutable_bytes_per_cycle()->set_slope(2.5);
  }
  return leaks;
}

TEST(MetricsTextTest, SuspectsAreSummedByTierAndNotNamed) {
  const gmt::LeakAnswer leaks = TwoSuspects();
  const std::string text = MetricsText(TwoDevices(), &leaks, Someone(), Dialect::kPrometheus);
  EXPECT_THAT(text, HasSubstr("gpumemtrace_leak_verdict 4\n"));
  EXPECT_THAT(text, HasSubstr("gpumemtrace_leak_cycles 240\n"));
  EXPECT_THAT(text, HasSubstr("gpumemtrace_leak_suspect_bytes{tier=\"leak\"} 1000\n"));
  EXPECT_THAT(text, HasSubstr("gpumemtrace_leak_suspect_bytes{tier=\"likely\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("gpumemtrace_leak_suspect_growth_bytes{tier=\"leak\"} 5\n"));
  EXPECT_THAT(text, Not(HasSubstr("train.py")));
  std::istringstream lines(text);
  int series = 0;
  for (std::string line; std::getline(lines, line);)
    series += line.starts_with("gpumemtrace_leak_");
  EXPECT_EQ(series, 8);
}

TEST(MetricsTextTest, TheDocumentDescribesEveryMetric) {
  std::ifstream file(GMT_SOURCE_DIR "/docs/metrics.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const gmt::LeakAnswer leaks = TwoSuspects();
  std::istringstream lines(MetricsText(TwoDevices(), &leaks, Someone(), Dialect::kPrometheus));
  std::string help;
  int families = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t end_of_name = line.find(' ', 7);
    if (line.starts_with("# HELP ")) help = line.substr(end_of_name + 1);
    if (!line.starts_with("# TYPE ")) continue;
    EXPECT_THAT(page, HasSubstr(absl::StrCat("| `", line.substr(7, end_of_name - 7), "` | ",
                                             line.substr(end_of_name + 1), " | ", help, " |\n")));
    ++families;
  }
  EXPECT_GT(families, 25);
  // And nothing else, so that no metric is described that no longer exists.
  int rows = 0;
  for (size_t at = 0; (at = page.find("\n| `gpumemtrace_", at)) != std::string::npos; ++at) ++rows;
  EXPECT_EQ(rows, families);
}

TEST(MetricsTextTest, LeakMetricsAreOmittedWithoutASearch) {
  gmt::LeakAnswer none;
  none.set_text("leaks are not searched for");
  EXPECT_EQ(MetricsText(TwoDevices(), &none, Someone(), Dialect::kPrometheus), Text());
}

TEST(MetricsTextTest, ProcessWithOneDeviceAndAllHeapsHas51Series) {
  control::Status status = TwoDevices();
  status.mutable_devices()->RemoveLast();
  *status.mutable_heaps(2) = status.heaps(4);  // replace the other device's heaps
  *status.mutable_heaps(3) = status.heaps(1);
  status.mutable_heaps(3)->set_heap("nvtx");
  status.mutable_heaps()->RemoveLast();
  const std::string text = MetricsText(status, nullptr, Someone(), Dialect::kPrometheus);
  std::istringstream lines(text);
  int series = 0;
  for (std::string line; std::getline(lines, line);) series += line[0] != '#';
  EXPECT_EQ(series, 51);
}

}  // namespace
}  // namespace gmt::metrics
