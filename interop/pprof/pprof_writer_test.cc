#include "interop/pprof/pprof_writer.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <map>
#include <string>
#include <vector>

#include "proto/pprof.pb.h"

namespace gmt::interop {
namespace {

using analysis::FrameText;

FrameText Python(const std::string& function, uint32_t line) {
  FrameText frame;
  frame.function = function;
  frame.file = "/job/train.py";
  frame.line = line;
  frame.language = "python";
  return frame;
}

FrameText Native(const std::string& function, const std::string& module) {
  FrameText frame;
  frame.function = function;
  frame.module = module;
  frame.language = "c++";
  return frame;
}

std::string Text(const pprof::Profile& profile, int64_t index) {
  return profile.string_table(static_cast<int>(index));
}

std::vector<std::string> FunctionsOf(const pprof::Profile& profile, const pprof::Sample& sample) {
  std::vector<std::string> names;
  for (const uint64_t id : sample.location_id()) {
    const pprof::Location& location = profile.location(static_cast<int>(id) - 1);
    EXPECT_EQ(location.id(), id);
    const auto& function = profile.function(static_cast<int>(location.line(0).function_id()) - 1);
    names.push_back(Text(profile, function.name()));
  }
  return names;
}

TEST(PprofWriterTest, EmptyProfileHasFourTypesAndPeriodOne) {
  PprofWriter writer(7);
  const pprof::Profile& profile = writer.profile();
  ASSERT_EQ(profile.sample_type_size(), 4);
  EXPECT_EQ(Text(profile, profile.sample_type(3).type()), "inuse_space");
  EXPECT_EQ(Text(profile, profile.default_sample_type()), "inuse_space");
  EXPECT_EQ(profile.string_table(0), "");
  EXPECT_EQ(profile.period(), 1);
  EXPECT_EQ(profile.time_nanos(), 7);
}

TEST(PprofWriterTest, SharedFramesAreWrittenOnce) {
  PprofWriter writer(0);
  writer.Add({Python("forward", 3), Python("main", 9)}, {.inuse_space = 10}, {});
  writer.Add({Python("loss", 4), Python("main", 9)}, {.inuse_space = 20}, {});
  const pprof::Profile& profile = writer.profile();
  EXPECT_EQ(profile.location_size(), 3);
  EXPECT_EQ(FunctionsOf(profile, profile.sample(1)), (std::vector<std::string>{"loss", "main"}));
  EXPECT_EQ(profile.sample(1).value(3), 20);
}

TEST(PprofWriterTest, OneFunctionOnTwoLinesIsOneFunctionAndTwoLocations) {
  PprofWriter writer(0);
  writer.Add({Python("main", 9)}, {}, {});
  writer.Add({Python("main", 10)}, {}, {});
  EXPECT_EQ(writer.profile().function_size(), 1);
  EXPECT_EQ(writer.profile().location_size(), 2);
}

TEST(PprofWriterTest, OnlyNativeFramesHaveAModule) {
  PprofWriter writer(0);
  writer.Add({Native("at::empty", "/lib/libtorch.so"), Python("main", 1)}, {}, {});
  const pprof::Profile& profile = writer.profile();
  ASSERT_EQ(profile.mapping_size(), 1);
  EXPECT_EQ(Text(profile, profile.mapping(0).filename()), "/lib/libtorch.so");
  EXPECT_EQ(profile.location(0).mapping_id(), 1u);
  EXPECT_EQ(profile.location(1).mapping_id(), 0u);
}

TEST(PprofWriterTest, UnknownStackHasItsOwnRow) {
  PprofWriter writer(0);
  writer.Add({}, {.inuse_objects = 1}, {{"device", "cuda:0"}});
  const pprof::Profile& profile = writer.profile();
  EXPECT_EQ(FunctionsOf(profile, profile.sample(0)), std::vector<std::string>{"(no stack)"});
  EXPECT_EQ(Text(profile, profile.sample(0).label(0).key()), "device");
  EXPECT_EQ(Text(profile, profile.sample(0).label(0).str()), "cuda:0");
}

TEST(PprofWriterTest, InvalidUtf8IsReplaced) {
  PprofWriter writer(0);
  const std::map<std::string, std::string> texts = {
      {"caf\xc3\xa9", "caf\xc3\xa9"},
      {"a\xff", "a\xef\xbf\xbd"},
      {"\xc3", "\xef\xbf\xbd"},
      {"\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd"},
      {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}};
  for (const auto& [given, wanted] : texts) {
    writer.Add({Python(given, 1)}, {}, {});
    const pprof::Profile& profile = writer.profile();
    EXPECT_EQ(FunctionsOf(profile, profile.sample(profile.sample_size() - 1)),
              std::vector<std::string>{wanted});
  }
}

TEST(PprofWriterTest, FileIsTheCompressedProfile) {
  PprofWriter writer(0);
  writer.Add({Python("main", 1)}, {1, 2, 3, 4}, {});
  const std::string whole = writer.profile().SerializeAsString();
  const auto gzipped = writer.Finish();
  ASSERT_TRUE(gzipped.ok()) << gzipped.status();
  z_stream stream = {};
  ASSERT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string out(whole.size() + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(gzipped->data()));
  stream.avail_in = static_cast<uInt>(gzipped->size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  EXPECT_EQ(out, whole);
}

}  // namespace
}  // namespace gmt::interop
