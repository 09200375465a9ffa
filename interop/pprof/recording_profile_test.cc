#include "interop/pprof/recording_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <map>
#include <string>

#include "analysis/testing/event_script.h"
#include "format/units.h"
#include "proto/pprof.pb.h"

namespace gmt::interop {
namespace {

using analysis::EventScript;
using ::testing::HasSubstr;

std::string Unzipped(const std::string& zipped) {
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, 16 + MAX_WBITS), Z_OK);
  std::string text(1 << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(zipped.data()));
  stream.avail_in = static_cast<uInt>(zipped.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  return text;
}

class RecordingProfileTest : public ::testing::Test {
 protected:
  // By innermost function and kind.
  using Samples = std::map<std::string, std::vector<int64_t>>;

  absl::StatusOr<Samples> Make(const std::string& at, std::optional<int32_t> device = {},
                               const std::string& heap = "") {
    const analysis::Trace trace = script_.Build();
    const analysis::Examination examination(trace, script_.definitions());
    const auto made = MakeProfile(examination, {analysis::ParseAt(at).value(), device, heap});
    if (!made.ok()) return made.status();
    pprof::Profile profile;
    EXPECT_TRUE(profile.ParseFromString(Unzipped(made->gzipped)));
    const auto text = [&](int64_t i) { return profile.string_table(static_cast<int>(i)); };
    Samples samples;
    for (const pprof::Sample& sample : profile.sample()) {
      const auto& location = profile.location(static_cast<int>(sample.location_id(0)) - 1);
      const auto& function = profile.function(static_cast<int>(location.line(0).function_id()) - 1);
      std::string name = text(function.name());
      for (const pprof::Label& label : sample.label()) name += " " + text(label.str());
      samples[name].assign(sample.value().begin(), sample.value().end());
    }
    return samples;
  }

  EventScript script_;
};

TEST_F(RecordingProfileTest, MomentHasHeldAndAllocatedMemory) {
  script_.Alloc(0x100000000, 8 * kMiB, {"segment", "main"});
  script_.Block(0x100000000, 2 * kMiB, {"forward", "main"});
  script_.FreeBlock(0x100000000);
  script_.Block(0x100000000, kMiB, {"forward", "main"});
  script_.Pinned(0x9000, kMiB, {"pin", "main"});
  const Samples end = Make("end").value();
  EXPECT_EQ(end.size(), 1u);
  EXPECT_EQ(end.at("forward cuda:0 pytorch"), (std::vector<int64_t>{2, 3 * kMiB, 1, kMiB}));
  const Samples driver = Make("end", {}, "driver").value();
  EXPECT_EQ(driver.size(), 1u);
  EXPECT_EQ(driver.at("segment cuda:0 driver"), (std::vector<int64_t>{1, 8 * kMiB, 1, 8 * kMiB}));
  const Samples host = Make("end", {}, "host").value();
  EXPECT_EQ(host.size(), 1u);
  EXPECT_EQ(host.at("pin host host"), (std::vector<int64_t>{1, kMiB, 1, kMiB}));
  const Samples second = Make("event:2", 0).value();
  EXPECT_EQ(second.size(), 1u);
  EXPECT_EQ(second.at("forward cuda:0 pytorch"), (std::vector<int64_t>{1, 2 * kMiB, 1, 2 * kMiB}));
}

TEST_F(RecordingProfileTest, DeviceWithoutBlocksHasDriverMemory) {
  script_.Alloc(0x100000000, 8 * kMiB, {"load", "main"});
  script_.Pinned(0x9000, kMiB, {"pin", "main"});
  const Samples end = Make("end").value();
  EXPECT_EQ(end.size(), 1u);
  EXPECT_EQ(end.at("load cuda:0 driver"), (std::vector<int64_t>{1, 8 * kMiB, 1, 8 * kMiB}));
  EXPECT_THAT(std::string(Make("end", {}, "pytorch").status().message()),
              HasSubstr("no heap 'pytorch' was recorded"));
}

TEST_F(RecordingProfileTest, FramesOfTheAllocatorAreLeftOut) {
  script_.Alloc(0x100000000, 8 * kMiB, {"segment", "main"});
  script_.Block(0x100000000, 2 * kMiB,
                {"c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc",
                 "at::detail::empty_cuda", "forward", "main"});
  const Samples end = Make("end").value();
  EXPECT_EQ(end.size(), 1u);
  EXPECT_TRUE(end.contains("forward cuda:0 pytorch")) << end.begin()->first;
}

TEST_F(RecordingProfileTest, MissingMomentOrDeviceIsAnError) {
  script_.Alloc(0x1000, kMiB, {"load", "main"});
  EXPECT_THAT(std::string(Make("oom").status().message()), HasSubstr("no allocation failed"));
  EXPECT_THAT(std::string(Make("end", 3).status().message()), HasSubstr("device 3 holds nothing"));
}

TEST_F(RecordingProfileTest, LateHistoryIsReported) {
  script_.Alloc(0x100000000, 8 * kMiB, {"segment", "main"});
  analysis::Trace trace = script_.Build();
  for (const bool is_late : {false, true}) {
    if (is_late) trace.before = std::make_shared<Aggregates>();
    const analysis::Examination examination(trace, script_.definitions());
    const auto made = MakeProfile(examination, {analysis::ParseAt("end").value(), {}, {}});
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->lacks_allocations_before, is_late);
  }
}

}  // namespace
}  // namespace gmt::interop
