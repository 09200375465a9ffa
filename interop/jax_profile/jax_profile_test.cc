#include "interop/jax_profile/jax_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "format/live_columns.h"
#include "format/testing/recording_fixture.h"
#include "interop/open_input.h"
#include "proto/pprof.pb.h"

namespace gmt::interop {
namespace {

using format::Event;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// Makes a profile as JAX does, and reads it.
class JaxProfileTest : public testing::Test {
 protected:
  JaxProfileTest() {
    Text("");
    Type("allocations", "count");
    Type("space", "bytes");
  }

  int64_t Text(const std::string& text) {
    const auto [it, is_new] = texts_.try_emplace(text, static_cast<int64_t>(texts_.size()));
    if (is_new) profile_.add_string_table(text);
    return it->second;
  }
  void Type(const std::string& type, const std::string& unit) {
    pprof::ValueType* value = profile_.add_sample_type();
    value->set_type(Text(type));
    value->set_unit(Text(unit));
  }
  // Returns the id of the location.
  uint64_t Location(const std::string& function, const std::string& file, int64_t line) {
    const auto id = static_cast<uint64_t>(profile_.location_size()) + 1;
    pprof::Function* added = profile_.add_function();
    added->set_id(id);
    added->set_name(Text(function));
    added->set_filename(Text(file));
    pprof::Location* location = profile_.add_location();
    location->set_id(id);
    location->add_line()->set_function_id(id);
    location->mutable_line(0)->set_line(line);
    return id;
  }
  pprof::Sample* Sample(int64_t count, int64_t space, const std::string& device,
                        const std::string& kind = "buffer") {
    pprof::Sample* sample = profile_.add_sample();
    sample->add_value(count);
    sample->add_value(space);
    const auto label = [&](const char* key, const std::string& text) {
      pprof::Label* added = sample->add_label();
      added->set_key(Text(key));
      added->set_str(Text(text));
    };
    label("kind", kind);
    if (!device.empty()) label("device", device);
    return sample;
  }

  // Returns the live set of the bytes of a profile. Sets status_, notes_ and definitions_.
  std::vector<Event> Read(const std::string& bytes) {
    definitions_ = {};
    format::DefinitionsBuilder builder;
    format::Collected read;
    notes_.clear();
    status_ = ReadJaxProfile(format::BytesInMemory(bytes), "memory.prof", builder, read, &notes_);
    EXPECT_TRUE(definitions_.Add(builder.TakeNew()).ok());
    if (!status_.ok() || read.snapshots.size() != 1) return {};
    return *format::DecodeLive(read.snapshots[0].live());
  }
  std::vector<Event> Read() { return Read(profile_.SerializeAsString()); }
  std::string Problem() {
    Read();
    return std::string(status_.message());
  }

  pprof::Profile profile_;
  std::map<std::string, int64_t> texts_;
  absl::Status status_;
  Notes notes_;
  format::Definitions definitions_;
};

TEST_F(JaxProfileTest, SampleIsAsManyAllocationsAsItCounts) {
  const uint64_t inner = Location("make", "train.py", 7);
  const uint64_t outer = Location("<module>", "train.py", 99);
  pprof::Sample* sample = Sample(3, 3 * 4096, "cuda:1");
  sample->add_location_id(inner);
  sample->add_location_id(outer);
  const auto live = Read();
  ASSERT_THAT(live, SizeIs(3)) << status_;
  for (const Event& event : live) {
    EXPECT_EQ(event.size, 4096u);
    EXPECT_EQ(event.device, 1u);
    EXPECT_EQ(definitions_.string(event.heap), "jax");
    EXPECT_EQ(definitions_.string(event.name), "buffer");
    EXPECT_FALSE(event.has(format::kHasAddress) || event.has(format::kHasTime));
    const auto frames = definitions_.StackFrames(event.stack);
    ASSERT_THAT(frames, SizeIs(2));
    const format::FrameInfo& frame = definitions_.frame(frames[0]);
    EXPECT_EQ(definitions_.string(frame.function), "make");
    EXPECT_EQ(definitions_.string(frame.file), "train.py");
    EXPECT_EQ(frame.line, 7u);
  }
}

TEST_F(JaxProfileTest, SizesAddUpToTheSample) {
  Sample(3, 11, "cuda:0");
  std::vector<uint64_t> sizes;
  for (const Event& event : Read()) sizes.push_back(event.size);
  EXPECT_THAT(sizes, ElementsAre(4, 4, 3));
}

TEST_F(JaxProfileTest, ExecutableHasNoDevice) {
  Sample(1, 512, "", "executable");
  const auto live = Read();
  ASSERT_THAT(live, SizeIs(1));
  EXPECT_EQ(definitions_.string(live[0].name), "executable");
  EXPECT_FALSE(live[0].has(format::kHasDevice));
}

TEST_F(JaxProfileTest, MemoryOfACpuIsLeftOut) {
  Sample(2, 100, "cpu:0");
  Sample(1, 100, "cuda:0");
  EXPECT_THAT(Read(), SizeIs(1));
  EXPECT_THAT(notes_, ElementsAre("memory.prof: what lies on the CPU was left out"));
}

TEST_F(JaxProfileTest, ExecutableOfUnknownSizeIsLeftOut) {
  Sample(1, 0, "", "executable");
  EXPECT_THAT(Read(), IsEmpty());
  EXPECT_TRUE(status_.ok()) << status_;
}

TEST_F(JaxProfileTest, ProfileIsOpenedLikeARecordingPlainOrCompressed) {
  Sample(2, 64, "cuda:0");
  const std::string bytes = profile_.SerializeAsString();
  const std::string path =
      std::filesystem::temp_directory_path() / ("gmt_jax_profile." + std::to_string(getpid()));
  for (const char* mode : {"wbT", "wb"}) {  // "T": without compression
    gzFile file = gzopen(path.c_str(), mode);
    ASSERT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())),
              static_cast<int>(bytes.size()));
    gzclose(file);
    const auto input = OpenInput(path);
    ASSERT_TRUE(input.ok()) << input.status();
    format::Collected read;
    ASSERT_TRUE((*input)->Read(read).ok());
    ASSERT_THAT(read.headers, SizeIs(1));
    EXPECT_EQ(read.headers[0].imported_from(), kJaxProfileImport);
    ASSERT_THAT(read.snapshots, SizeIs(1));
    EXPECT_EQ(read.snapshots[0].live().count(), 2u);
  }
  std::filesystem::remove(path);
}

TEST_F(JaxProfileTest, ProfileOfAnEmptyDeviceIsEmpty) {
  EXPECT_THAT(Read(), IsEmpty());
  EXPECT_TRUE(status_.ok()) << status_;
}

TEST_F(JaxProfileTest, OtherProfilesAreRefused) {
  Type("inuse_space", "bytes");
  EXPECT_THAT(Problem(), HasSubstr("memory.prof is a profile of pprof with allocations, space, "
                                   "inuse_space; only JAX's"));
  Type("\x1b[2J", "bytes");
  EXPECT_THAT(Problem(), Not(HasSubstr("\x1b")));
}

TEST_F(JaxProfileTest, ErrorSaysWhichSampleAndWhatIsWrong) {
  Sample(1, 1, "cuda:0");
  pprof::Sample* sample = Sample(-1, 1, "cuda:0");
  EXPECT_THAT(Problem(), HasSubstr("memory.prof: sample 2 does not have two values"));
  sample->set_value(0, 1);
  sample->add_value(1);
  EXPECT_THAT(Problem(), HasSubstr("sample 2 does not have two values"));
  profile_.mutable_sample()->RemoveLast();
  for (const char* device : {"a device", "cuda:", "cuda:4294967295"}) {
    Sample(1, 1, device);
    EXPECT_THAT(Problem(), HasSubstr("sample 2 has a device without a number"));
    profile_.mutable_sample()->RemoveLast();
  }
  Sample(0, 1, "cuda:0");
  EXPECT_THAT(Problem(), HasSubstr("sample 2 has bytes without an allocation"));
  profile_.mutable_sample()->RemoveLast();
  Sample(INT64_MAX, INT64_MAX, "cuda:0");
  EXPECT_THAT(Problem(), HasSubstr("sample 2 exceeds the limit of 1000000 allocations"));
}

TEST_F(JaxProfileTest, ReferencesOutsideTheTablesDoNoHarm) {
  pprof::Sample* sample = Sample(1, 8, "cuda:0");
  sample->add_location_id(Location("f", "f.py", -5));
  sample->add_location_id(77);
  profile_.mutable_function(0)->set_name(INT64_MAX);
  profile_.mutable_function(0)->set_filename(-1);
  sample->add_label()->set_key(INT64_MIN);
  const auto live = Read();
  ASSERT_THAT(live, SizeIs(1));
  EXPECT_THAT(definitions_.StackFrames(live[0].stack), SizeIs(1));
}

TEST_F(JaxProfileTest, StacksThatMultiplyAreRefused) {
  const uint64_t id = Location("f", "f.py", 3);
  for (int i = 1; i < 50'000; ++i)
    *profile_.mutable_location(0)->add_line() = profile_.location(0).line(0);
  for (int i = 0; i < 2; ++i) {
    pprof::Sample* sample = Sample(1, 8, "cuda:0");
    for (int j = 0; j < 50; ++j) sample->add_location_id(id);
  }
  EXPECT_THAT(Problem(), HasSubstr("sample 2 exceeds the limit of 4000000 frames"));
}

TEST_F(JaxProfileTest, TooLargeProfileIsRefused) {
  Text(std::string(17 << 20, 'x'));
  EXPECT_THAT(Problem(), HasSubstr("memory.prof: the profile has more than 16 MiB"));
}

TEST_F(JaxProfileTest, OnlyProfilesAreRecognised) {
  EXPECT_TRUE(LooksLikePprof(profile_.SerializeAsString()));
  EXPECT_FALSE(LooksLikePprof(""));
  EXPECT_FALSE(LooksLikePprof("\n\n\n\n\n"));
  EXPECT_FALSE(LooksLikePprof(std::string("\x0a\0\x08\x01", 4)));
  EXPECT_FALSE(LooksLikePprof(std::string("\x0a\x0b\xfa\x7c\x08GMTRACE1", 13)));  // a recording
}

TEST_F(JaxProfileTest, EveryTruncationAndFlippedByteTerminates) {
  Sample(2, 64, "cuda:0")->add_location_id(Location("f", "f.py", 3));
  Sample(1, 64, "", "executable");
  const std::string bytes = profile_.SerializeAsString();
  ASSERT_THAT(Read(bytes), SizeIs(3));
  for (size_t cut = 0; cut < bytes.size(); ++cut) Read(bytes.substr(0, cut));
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int byte :
         {0, 1, 2, 8, 0x0a, 0x10, 0x12, 0x7f, 0x80, 0xff, bytes[at] ^ 1, bytes[at] ^ 64}) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(byte);
      Read(flipped);
    }
  }
}

}  // namespace
}  // namespace gmt::interop
