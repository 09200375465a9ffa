// Tests writing and reading of recordings; files that were cut, damaged or joined; the file format.

#include <gmock/gmock.h>

#include <cstdio>
#include <map>
#include <string>
#include <utility>

#include "format/allocator_trace.h"
#include "format/definitions_builder.h"
#include "format/framing.h"
#include "format/testing/recording_fixture.h"
#include "proto/gmt.pb.h"

namespace gmt::format {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class RecordingTest : public RecordingFixture {};

// ---- Reading back -------------------------------------------------------------------------------

TEST_F(RecordingTest, EmptyRecordingIsComplete) {
  StartRecording();
  Finish();
  EXPECT_THAT(Read(bytes_).events, IsEmpty());
  EXPECT_TRUE(reader_->complete());
}

TEST_F(RecordingTest, HeaderIsKnownBeforeReading) {
  StartRecording();
  auto reader = RecordingReader::FromBytes(bytes_, "x");
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ((*reader)->header().pid(), 4711u);
}

TEST_F(RecordingTest, EventsComeBackInOrder) {
  StartRecording();
  const Event first = Alloc(0x1000, 512), second = Alloc(0x2000, 1024);
  Add(first);
  Add(second);
  Finish();
  EXPECT_THAT(Read(bytes_).events, ElementsAre(first, second));
}

TEST_F(RecordingTest, FlushedEventsAreReadableBeforeTheEnd) {
  StartRecording();
  Add(Alloc(0x1000, 512));
  Flush();
  EXPECT_THAT(Read(bytes_).events, SizeIs(1));
  EXPECT_FALSE(reader_->complete());
  EXPECT_THAT(reader_->damage(), IsEmpty());
}

TEST_F(RecordingTest, VisitorCanAskHowMuchHasBeenDelivered) {
  StartRecording();
  for (int i = 0; i < 3; ++i) {
    Add(Alloc(0x1000 + 0x1000 * static_cast<uint64_t>(i), 512));
    Flush();
  }
  Finish();
  auto reader = RecordingReader::FromBytes(bytes_, "x");
  ASSERT_TRUE(reader.ok());
  class Asking : public RecordingVisitor {
   public:
    explicit Asking(const RecordingReader& reader) : reader_(reader) {}
    absl::Status OnEvents(const EventBatch&) override {
      progress.push_back(reader_.bytes_taken());
      return absl::OkStatus();
    }
    std::vector<uint64_t> progress;

   private:
    const RecordingReader& reader_;
  } visitor(**reader);
  EXPECT_EQ((*reader)->bytes_taken(), 0u);
  ASSERT_TRUE((*reader)->Read(visitor).ok());
  ASSERT_THAT(visitor.progress, SizeIs(3));
  EXPECT_GT(visitor.progress[0], 0u);
  EXPECT_LT(visitor.progress[0], visitor.progress[1]);
  EXPECT_LT(visitor.progress[1], visitor.progress[2]);
  EXPECT_LT(visitor.progress[2], bytes_.size());
}

TEST_F(RecordingTest, FreeIsCompletedFromItsAllocation) {
  StartRecording();
  Event alloc = Alloc(0x1000, 512);
  alloc.present |= kHasStream;
  alloc.stream = 0xABCD;
  Add(alloc);
  Add(Free(0x1000));
  Finish();
  const Event free = Read(bytes_).events.at(1);
  EXPECT_EQ(free.size, 512u);
  EXPECT_EQ(free.stream, 0xABCDu);
  EXPECT_EQ(free.memory, DEVICE);
  EXPECT_TRUE(free.has(kHasSize));
}

TEST_F(RecordingTest, FreeAsRecordedIsNotCompleted) {
  StartRecording();
  Add(Alloc(0x1000, 512));
  const Event free = Free(0x1000);
  Add(free);
  Finish();
  EXPECT_EQ(Read(bytes_, Returns::kAsRecorded).events.at(1), free);
}

TEST_F(RecordingTest, FreeThatContradictsItsAllocationKeepsItsOwnValues) {
  StartRecording();
  Add(Alloc(0x1000, 512));
  Event free = Free(0x1000);
  free.present |= kHasSize | kHasStream;
  free.size = 100;
  free.stream = 5;
  Add(free);
  Finish();
  EXPECT_EQ(Read(bytes_).events.at(1).size, 100u);
  EXPECT_EQ(Read(bytes_).events.at(1).stream, 5u);
}

TEST_F(RecordingTest, FreeInALaterChunkFindsItsAllocation) {
  StartRecording();
  Add(Alloc(0x1000, 512));
  Flush();
  Add(Free(0x1000));
  Finish();
  EXPECT_EQ(Read(bytes_).events.at(1).size, 512u);
}

TEST_F(RecordingTest, FreeOfUnknownMemoryIsDeliveredUnchanged) {
  StartRecording();
  const Event free = Free(0x9000);
  Add(free);
  Finish();
  EXPECT_THAT(Read(bytes_).events, ElementsAre(free));
}

TEST_F(RecordingTest, FreeAfterReuseOfTheAddressEndsTheNewAllocation) {
  StartRecording();
  Add(Alloc(0x1000, 512));
  Add(Free(0x1000));
  Add(Alloc(0x1000, 4096));
  Add(Free(0x1000));
  Finish();
  EXPECT_EQ(Read(bytes_).events.at(3).size, 4096u);
}

TEST_F(RecordingTest, SegmentAndItsFirstBlockAreDifferentPlaces) {
  StartRecording();
  Event segment = Alloc(0x1000, 2 << 20), block = Alloc(0x1000, 512);
  block.heap = writer_->definitions().InternString("pytorch");
  Add(segment);
  Add(block);
  Add(Free(0x1000));
  Finish();
  EXPECT_EQ(Read(bytes_).events.at(2).size, uint64_t{2 << 20});
}

TEST_F(RecordingTest, RoleIsCompletedFromItsAllocationAndDoesNotEndIt) {
  StartRecording();
  Event alloc = Alloc(0x1000, 512);
  alloc.memory = BLOCK;
  Add(alloc);
  Add(Role(0x1000, kRoleSaved));
  Flush();
  Add(Role(0x1000, 0));
  Add(Free(0x1000));
  Finish();
  const Collected read = Read(bytes_);
  for (const size_t at : {1u, 2u}) {
    const Event& role = read.events.at(at);
    EXPECT_EQ(role.kind, ROLE);
    EXPECT_EQ(role.address, 0x1000u);
    EXPECT_EQ(role.size, 512u);
    EXPECT_EQ(role.memory, BLOCK);
    EXPECT_TRUE(role.has(kHasSize));
    EXPECT_EQ(role.roles, at == 1 ? kRoleSaved : 0u);
  }
  EXPECT_EQ(read.events.at(3).size, 512u);
}

TEST_F(RecordingTest, RoleAsRecordedIsNotCompleted) {
  StartRecording();
  Add(Alloc(0x1000, 512));
  const Event role = Role(0x1000, kRoleParameter | kRoleGradient);
  Add(role);
  Finish();
  EXPECT_EQ(Read(bytes_, Returns::kAsRecorded).events.at(1), role);
}

TEST_F(RecordingTest, RoleOfUnknownMemoryIsDeliveredUnchanged) {
  StartRecording();
  const Event role = Role(0x9000, kRoleParameter);
  Add(role);
  Finish();
  EXPECT_THAT(Read(bytes_).events, ElementsAre(role));
}

TEST_F(RecordingTest, DetailsComeBackWithTheirEvents) {
  StartRecording();
  Event event;
  event.kind = SAMPLE;
  Sample sample;
  sample.set_used_bytes(123);
  sample.add_processes()->set_pid(7);
  ASSERT_TRUE(writer_->Add(event, sample).ok());
  event.kind = OTHER_KIND;
  ASSERT_TRUE(writer_->Add(event, R"({"kind":"new"})").ok());
  event.kind = SNAPSHOT_TAKEN;
  SnapshotTaken taken;
  taken.set_name("exit");
  ASSERT_TRUE(writer_->Add(event, taken).ok());
  Finish();
  const Collected read = Read(bytes_);
  EXPECT_EQ(read.samples.at(0).processes(0).pid(), 7u);
  EXPECT_THAT(read.others, ElementsAre(R"({"kind":"new"})"));
  EXPECT_EQ(read.taken.at(0).name(), "exit");
}

TEST_F(RecordingTest, OrderBetweenEventsFactsSnapshotsAndLossesIsKept) {
  StartRecording();
  Add(Alloc(0x1000, 512));
  Facts facts;
  facts.add_argv("python");
  ASSERT_TRUE(writer_->Add(facts).ok());
  Snapshot snapshot;
  snapshot.set_name("oom-1");
  ASSERT_TRUE(writer_->Add(snapshot).ok());
  Losses losses;
  losses.set_overrun(3);
  ASSERT_TRUE(writer_->Add(losses).ok());
  Finish();
  const Collected read = Read(bytes_);
  EXPECT_EQ(read.facts.at(0).argv(0), "python");
  EXPECT_EQ(read.snapshots.at(0).name(), "oom-1");
  EXPECT_EQ(read.losses.at(0).overrun(), 3u);
}

TEST_F(RecordingTest, PathThatIsNotUtf8IsPreserved) {
  StartRecording();
  Event event = Alloc(0x1000, 512);
  event.api = writer_->definitions().InternString("/tmp/\xFF\xFE");
  Add(event);
  Finish();
  const Event read = Read(bytes_).events.at(0);
  EXPECT_EQ(reader_->definitions().string(read.api), "/tmp/\xFF\xFE");
}

TEST_F(RecordingTest, SymbolsAreLookedUpByFrame) {
  StartRecording();
  FrameInfo frame;
  frame.module = writer_->definitions().AddModule({"/lib/a.so", "id", 0, 0, 0, 0});
  frame.address = 0x123;
  const uint32_t id = writer_->definitions().InternFrame(frame);
  Symbols symbols;
  symbols.set_count(2);
  symbols.add_frame(id);
  symbols.add_function(writer_->definitions().InternString("inner"));
  symbols.add_function(writer_->definitions().InternString("outer"));
  ASSERT_TRUE(writer_->Add(symbols).ok());
  Finish();
  Read(bytes_);
  const std::vector<Symbol>& read = reader_->definitions().symbols(id);
  ASSERT_THAT(read, SizeIs(2));
  EXPECT_EQ(reader_->definitions().string(read[1].function), "outer");
}

TEST_F(RecordingTest, WriterRejectsEverythingAfterFinish) {
  StartRecording();
  Finish();
  EXPECT_FALSE(writer_->Add(Alloc(0x1000, 1)).ok());
}

// ---- Cut files ----------------------------------------------------------------------------------

TEST_F(RecordingTest, FileCutAnywhereIsReadToItsLastCompleteChunk) {
  const std::string whole = SmallRecording(3);
  // Writes: header, then definitions and three chunks of events, then index and footer.
  ASSERT_THAT(writes_, SizeIs(6));
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    const Collected read = Read(whole.substr(0, cut));
    if (cut < SizeAfterWrites(1)) {
      EXPECT_FALSE(open_status_.ok()) << "cut at " << cut;
      continue;
    }
    ASSERT_TRUE(open_status_.ok()) << "cut at " << cut << ": " << open_status_;
    size_t events = 0;
    for (size_t chunk = 2; chunk < 5; ++chunk) events += SizeAfterWrites(chunk + 1) <= cut ? 2 : 0;
    EXPECT_THAT(read.events, SizeIs(events)) << "cut at " << cut;
    EXPECT_THAT(reader_->damage(), IsEmpty()) << "cut at " << cut;
    EXPECT_FALSE(reader_->complete()) << "cut at " << cut;
  }
}

TEST_F(RecordingTest, CutHeaderMeansThatNothingWasRecorded) {
  const std::string whole = SmallRecording(1);
  Read(whole.substr(0, 20));
  EXPECT_THAT(std::string(open_status_.message()), HasSubstr("test.gmt is cut inside its header"));
}

TEST_F(RecordingTest, ZerosAfterAPowerCutEndTheFileQuietly) {
  const std::string whole = SmallRecording(2);
  const Collected read = Read(whole.substr(0, SizeAfterWrites(3)) + std::string(4096, '\0'));
  EXPECT_THAT(read.events, SizeIs(2));
  EXPECT_THAT(reader_->damage(), IsEmpty());
  EXPECT_FALSE(reader_->complete());
}

TEST_F(RecordingTest, EachChunkIsOneWrite) {
  StartRecording();
  Add(Alloc(0x1000, 512));
  Finish();
  // Magic and header, definitions, events, index and footer.
  EXPECT_THAT(writes_, SizeIs(4));
}

// ---- Damaged files ------------------------------------------------------------------------------

TEST_F(RecordingTest, EverySingleBitFlipIsDetected) {
  const std::string whole = SmallRecording(3);
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    Read(flipped);
    EXPECT_TRUE(!open_status_.ok() || !reader_->complete()) << "bit " << bit;
  }
}

TEST_F(RecordingTest, DamagedChunkIsSkippedAndLeavesAGap) {
  std::string bytes = SmallRecording(3);
  bytes[SizeAfterWrites(3) + 30] ^= 1;  // in the second chunk of events
  const Collected read = Read(bytes);
  ASSERT_THAT(read.events, SizeIs(5));
  EXPECT_EQ(read.events[2].kind, GAP);
  EXPECT_EQ(read.events[2].t_ns, read.events[1].t_ns);
  EXPECT_EQ(read.gaps.at(0).to_t_ns(), read.events[3].t_ns);
  EXPECT_EQ(read.gaps.at(0).reason(), "damage");
}

TEST_F(RecordingTest, DamageHasOffsetSizeAndReason) {
  std::string bytes = SmallRecording(3);
  const size_t at = SizeAfterWrites(3);
  bytes[at + 30] ^= 1;
  Read(bytes);
  ASSERT_THAT(reader_->damage(), SizeIs(1));
  EXPECT_EQ(reader_->damage()[0].offset, at);
  EXPECT_EQ(reader_->damage()[0].bytes, SizeAfterWrites(4) - at);
  EXPECT_EQ(reader_->damage()[0].chunk, 2u);
  EXPECT_EQ(reader_->damage()[0].what, "CRC32C");
}

TEST_F(RecordingTest, DamagedLengthDoesNotLoseLaterChunks) {
  std::string bytes = SmallRecording(3);
  bytes[SizeAfterWrites(3) + 1] = '\xFF';
  bytes[SizeAfterWrites(3) + 2] = '\xFF';
  EXPECT_THAT(Read(bytes).events, SizeIs(5));
}

TEST_F(RecordingTest, MissingChunkIsDetected) {
  std::string bytes = SmallRecording(3);
  bytes.erase(SizeAfterWrites(3), writes_[3]);
  const Collected read = Read(bytes);
  EXPECT_THAT(read.events, SizeIs(5));
  EXPECT_EQ(reader_->damage().at(0).what, "missing chunk");
}

TEST_F(RecordingTest, LostDefinitionsLeaveNamesEmptyAndLaterNamesCorrect) {
  StartRecording();
  Add(Alloc(0x1000, 512));
  Flush();
  Event event = Alloc(0x2000, 512);
  event.api = writer_->definitions().InternString("cudaMalloc");
  Add(event);
  Finish();
  bytes_[SizeAfterWrites(1) + 30] ^= 1;  // the first chunk: "driver"
  const Collected read = Read(bytes_);
  EXPECT_EQ(reader_->definitions().string(read.events.at(1).heap), "");
  EXPECT_EQ(reader_->definitions().string(read.events.at(2).api), "cudaMalloc");
}

TEST_F(RecordingTest, FreeWhoseAllocationWasLostHasNoAddress) {
  StartRecording();
  Add(Alloc(0x1000, 512));
  Flush();
  Add(Alloc(0x2000, 512));
  Add(Free(0x1000));
  Add(Free(0x2000));
  Finish();
  bytes_[SizeAfterWrites(2) + 30] ^= 1;
  const Collected read = Read(bytes_);
  ASSERT_THAT(read.events, SizeIs(4));
  EXPECT_FALSE(read.events[2].has(kHasAddress));
  EXPECT_EQ(read.events[3].address, 0x2000u);
}

TEST_F(RecordingTest, RoleWhoseAllocationWasLostHasNoAddress) {
  StartRecording();
  Add(Alloc(0x1000, 512));
  Flush();
  Add(Alloc(0x2000, 512));
  Add(Role(0x1000, kRoleSaved));
  Add(Role(0x2000, kRoleGradient));
  Finish();
  bytes_[SizeAfterWrites(2) + 30] ^= 1;
  const Collected read = Read(bytes_);
  ASSERT_THAT(read.events, SizeIs(4));
  EXPECT_FALSE(read.events[2].has(kHasAddress));
  EXPECT_EQ(read.events[2].roles, kRoleSaved);
  EXPECT_EQ(read.events[3].address, 0x2000u);
  EXPECT_EQ(read.events[3].size, 512u);
  EXPECT_EQ(read.events[3].roles, kRoleGradient);
}

TEST_F(RecordingTest, RoleAfterALostChunkOfRolesKeepsItsAllocation) {
  StartRecording();
  Add(Alloc(0x1000, 512));
  Add(Alloc(0x2000, 1024));
  Flush();
  Add(Role(0x1000, kRoleSaved));
  Flush();
  Add(Role(0x2000, kRoleSaved));
  Add(Role(0x1000, 0));
  Finish();
  bytes_[SizeAfterWrites(3) + 30] ^= 1;
  const Collected read = Read(bytes_);
  ASSERT_THAT(read.events, SizeIs(5));  // two, a gap, two
  EXPECT_EQ(read.events[3].size, 1024u);
  EXPECT_EQ(read.events[4].size, 512u);
}

TEST_F(RecordingTest, EventsAreReadDespiteADamagedHeader) {
  std::string bytes = SmallRecording(2);
  bytes[20] ^= 1;
  EXPECT_EQ(Read(bytes).events.size(), 5u);  // a gap, then four
}

TEST_F(RecordingTest, ForeignFileIsRejectedByName) {
  Read("this is a text file, not a recording");
  EXPECT_EQ(open_status_.message(), "test.gmt is not a gpumemtrace recording");
}

TEST_F(RecordingTest, EmptyFileIsRejectedByName) {
  Read("");
  EXPECT_EQ(open_status_.message(), "test.gmt is empty: nothing was recorded");
}

TEST_F(RecordingTest, MissingFileIsRejectedByName) {
  auto reader = RecordingReader::Open("/no/such.gmt");
  EXPECT_THAT(std::string(reader.status().message()), HasSubstr("/no/such.gmt"));
}

TEST_F(RecordingTest, NewerFormatRequiresANewerReader) {
  Header header;
  header.set_min_reader_version(99);
  header.set_tool_version("9.9.9");
  auto writer =
      RecordingWriter::Create(std::make_unique<StringSink>(&bytes_, &writes_), header, {});
  ASSERT_TRUE(writer.ok());
  Read(bytes_);
  EXPECT_THAT(std::string(open_status_.message()),
              HasSubstr("requires that release or a later one"));
}

// ---- Joined files -------------------------------------------------------------------------------

TEST_F(RecordingTest, ConcatenatedRecordingsReadAsOne) {
  SmallRecording(1);
  const std::string both = SmallRecording(2);
  EXPECT_THAT(Read(both).events, SizeIs(6));
  EXPECT_THAT(Read(both).headers, SizeIs(2));
  EXPECT_TRUE(reader_->complete());
}

TEST_F(RecordingTest, IdsOfTheSecondSegmentDifferFromThoseOfTheFirst) {
  StartRecording();
  Event event = Alloc(0x1000, 1);
  event.heap = writer_->definitions().InternString("first");
  event.dtype = writer_->definitions().InternString("float32");
  event.shape = writer_->definitions().InternString("[1]");
  Add(event);
  Finish();
  StartRecording();
  event.shape = writer_->definitions().InternString("[2]");
  event.dtype = writer_->definitions().InternString("int64");
  event.heap = writer_->definitions().InternString("second");
  Add(event);
  Finish();
  const Collected read = Read(bytes_);
  EXPECT_EQ(reader_->definitions().string(read.events.at(0).heap), "first");
  EXPECT_EQ(reader_->definitions().string(read.events.at(1).heap), "second");
  EXPECT_EQ(reader_->definitions().string(read.events.at(0).dtype), "float32");
  EXPECT_EQ(reader_->definitions().string(read.events.at(1).dtype), "int64");
  EXPECT_EQ(reader_->definitions().string(read.events.at(1).shape), "[2]");
}

TEST_F(RecordingTest, FirstOfTwoCutSegmentsIsReadToItsLastCompleteChunk) {
  const std::string first = SmallRecording(2);
  const std::string cut = first.substr(0, SizeAfterWrites(3) + 10);
  bytes_.clear();
  const std::string second = SmallRecording(1);
  const Collected read = Read(cut + second);
  EXPECT_THAT(read.headers, SizeIs(2));
  EXPECT_THAT(read.events, SizeIs(5));  // two, a gap, two
  EXPECT_FALSE(reader_->complete());
}

// ---- File format --------------------------------------------------------------------------------

TEST_F(RecordingTest, FileBeginsWithTheMagicAndEndsWithTheFooter) {
  StartRecording();
  Finish();
  EXPECT_EQ(bytes_.substr(0, 13), std::string("\x0A\x0B\xFA\x7C\x08GMTRACE1", 13));
  EXPECT_EQ(bytes_.substr(bytes_.size() - 8), "GMTRACE1");
  EXPECT_TRUE(ParseFooter(bytes_.substr(bytes_.size() - 19)).has_value());
}

TEST_F(RecordingTest, RepeatedAllocationsAndFreesCostAFewBytesEach) {
  StartRecording();
  for (int n = 0; n < 20'000; ++n) {
    const auto address = 0x7F0000000000 + 512 * static_cast<uint64_t>((n * 7919) % 1000);
    Add(Alloc(address, 512));
    Add(Free(address));
  }
  Finish();
  EXPECT_LT(bytes_.size(), 40'000u * 6);
}

TEST_F(RecordingTest, WriterWithSlotsWritesTheSameFileAsOneWithout) {
  std::string files[2];
  for (const bool slots : {false, true}) {
    bytes_.clear();
    WriterOptions options;
    options.slots = slots;
    StartRecording(options);
    std::map<std::pair<Memory, uint64_t>, AcquisitionSlot> last;
    AllocatorTrace trace(11, AllocatorTrace::Roles::kSavedActivations);
    for (int n = 0; n < 100'000; ++n) {
      Event event = trace.Next();
      event.heap = writer_->definitions().InternString(event.memory == BLOCK ? "a" : "b");
      AcquisitionSlot& slot =
          last.try_emplace({event.memory, event.address}, kNoAcquisitionSlot).first->second;
      ASSERT_TRUE(writer_->Add(event, slots ? &slot : nullptr).ok());
    }
    Finish();
    files[slots ? 1 : 0] = bytes_;
  }
  EXPECT_TRUE(files[0] == files[1]);
}

// The size that roles add to a training loop (AllocatorTrace), 40 roles per 100 allocations.
TEST_F(RecordingTest, RolesAddLessThanSixTenthsOfAByteToEachEvent) {
  constexpr int kOthers = 240'000;
  const auto write = [&](AllocatorTrace::Roles roles, int others) {
    bytes_.clear();
    StartRecording();
    AllocatorTrace trace(7, roles);
    int all = 0;
    while (others > 0) {
      Event event = trace.Next();
      event.heap = writer_->definitions().InternString(event.memory == BLOCK ? "a" : "b");
      Add(event);
      ++all;
      others -= event.kind == ROLE ? 0 : 1;
    }
    Finish();
    return all;
  };
  const int without = write(AllocatorTrace::Roles::kNone, kOthers);
  const size_t bytes_without = bytes_.size();
  const int with = write(AllocatorTrace::Roles::kSavedActivations, kOthers);
  const double roles = with - without;
  EXPECT_NEAR(roles / without, 0.2, 0.02);  // as many frees as allocations
  const double added = static_cast<double>(bytes_.size() - bytes_without);
  std::printf("roles: %.2f B each, %.2f B per event\n", added / roles, added / with);
  EXPECT_LT(added / with, 0.6);
}

TEST_F(RecordingTest, WholeFileIsOneMessage) {
  File file;
  ASSERT_TRUE(file.ParseFromString(SmallRecording(2)));
  EXPECT_EQ(file.header(0).pid(), 4711u);
  EXPECT_EQ(file.chunk_size(), 3);
  EXPECT_EQ(file.index_size(), 1);
}

}  // namespace
}  // namespace gmt::format
