// Converts event logs in both directions: log -> recording -> log, recording -> log -> recording ->
// log.

#include "interop/event_log/event_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "absl/strings/str_split.h"
#include "format/definitions_builder.h"
#include "format/live_columns.h"
#include "format/testing/random_events.h"
#include "format/testing/recording_fixture.h"
#include "interop/event_log/event_log_fields.h"
#include "interop/event_log/writer_target.h"
#include "interop/open_input.h"
#include "proto/gmt.pb.h"
#include "tests/seeds/seeds.h"

namespace gmt::interop {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

using Lines = std::vector<std::string>;

// The log of docs/format.md: every kind with every key.
const char* const kEveryKind[] = {
    R"({"kind":"header","schema":"gpumemtrace.events/1","start_unix_ns":1700000000123456789,"start_monotonic_ns":5,"tool_version":"1.2.3","run_id":"r","hostname":"h","boot_id":"00ff","pid":77,"pid_namespace":4026531836,"part":1,"parent_pid":7,"devices":[{"index":0,"name":"NVIDIA H100","uuid":"GPU-1","pci_bus_id":"0000:3B:00.0","total_bytes":85899345920,"physical_index":3,"compute_capability":"9.0"},{"index":1}],"argv":["python","train.py","--x=\u00e9"],"executable":"/usr/bin/python3","working_directory":"/w","settings":{"PYTORCH_CUDA_ALLOC_CONF":"expandable_segments:True","n":3,"list":[1,2.5,null,true]},"libraries":{"torch":"2.11.0","cuda_driver":"13000"},"sources":{"cupti":"on"},"options":{"stacks":"native+python"},"rank":3,"local_rank":1,"world_size":16,"node_rank":2,"restart_count":1,"job":"j","started_by":"run","ended_by":"exit","end_t_ns":99,"exit":{"kind":"exited","code":0,"known_by":"run"},"losses":{"written":3,"delivered":3}})",
    R"({"kind":"facts","argv":["x"],"pid":5,"exit":{"kind":"signalled","code":9,"known_by":"pidfd"}})",
    R"({"kind":"stack","id":7,"frames":[{"function":"forward","file":"model.py","line":88,"language":"python"},{"function":"at::empty","file":"a.cpp","line":1,"language":"c++","module":"/lib/libtorch.so","offset":4242,"build_id":"00ff","return_address":true},{"module":"/lib/libc.so","offset":0},{"module":"just a name"},{"address":18446744073709551615},{"language":"julia"},{"function":"","line":0},{}]})",
    R"({"kind":"stack","id":8,"frames":[],"truncated":true})",
    R"({"kind":"stack","id":4294967295,"frames":[{"function":"f"}],"truncated":true})",
    R"({"kind":"thread","t_ns":1,"name":"main","thread":11})",
    R"({"kind":"alloc","t_ns":12,"heap":"driver","memory":"device","device":0,"context":1,"address":140011122688,"size":2097152,"stack":7,"stream":0,"thread":11,"api":"cudaMalloc","duration_ns":900})",
    R"({"kind":"alloc","t_ns":13,"heap":"pytorch","memory":"block","device":0,"context":1,"address":18446744073709551615,"size":512,"requested":500,"stack":7,"forward_stack":8,"stream":18446744073709551614,"thread":12,"api":"x","duration_ns":1,"result":0,"pool":4294967296,"handle":1,"offset":2,"flags":3,"total_allocated":512,"total_reserved":2097152,"name":"label","scope":"region","dtype":"bfloat16","shape":"[2, 3, 4, 5, 6, ...]","role":["gradient"]})",
    R"({"kind":"role","t_ns":13,"heap":"pytorch","memory":"block","device":0,"address":18446744073709551615,"size":512,"role":["parameter","gradient","saved"],"forward_stack":8,"node":"SoftmaxBackward0","thread":12})",
    R"({"kind":"role","heap":"pytorch","address":18446744073709551615,"role":[]})",
    R"({"kind":"role","t_ns":13,"heap":"pytorch","address":3,"role":["saved"]})",
    R"({"kind":"role","t_ns":13,"heap":"pytorch","address":3,"role":["a role to come"]})",
    R"({"kind":"alloc_failed","t_ns":14,"heap":"pytorch","size":9223372036854775808,"total_allocated":5,"result":2})",
    R"({"kind":"free","t_ns":99,"heap":"driver","device":0,"address":140011122688,"size":2097152,"stream":0,"thread":11,"api":"cudaFree"})",
    R"({"kind":"free_done","t_ns":100,"heap":"driver","memory":"device","device":0,"context":1,"address":140011122688,"size":2097152,"stack":7,"stream":0,"thread":11,"api":"cudaFree","duration_ns":5,"result":1,"pool":1,"total_allocated":1,"total_reserved":2})",
    R"({"kind":"free"})",
    R"({"kind":"free","heap":"pytorch","address":18446744073709551615,"stack":99})",
    R"({"kind":"reserve","t_ns":200,"heap":"driver","memory":"vmm","address":4096,"size":1048576})",
    R"({"kind":"create","t_ns":201,"heap":"driver","memory":"vmm","address":17,"size":2097152,"flags":1})",
    R"({"kind":"map","t_ns":202,"heap":"driver","memory":"vmm","address":4096,"size":2097152,"handle":17,"offset":0})",
    R"({"kind":"unmap","t_ns":203,"heap":"driver","address":4096,"size":2097152})",
    R"({"kind":"release","t_ns":204,"heap":"driver","address":17})",
    R"({"kind":"unreserve","t_ns":205,"heap":"driver","address":4096,"size":1048576})",
    R"({"kind":"import","t_ns":206,"heap":"driver","memory":"ipc","address":8192,"handle":3})",
    R"({"kind":"unimport","t_ns":207,"heap":"driver","address":8192})",
    R"({"kind":"register","t_ns":208,"heap":"host","memory":"registered","address":12288,"size":100})",
    R"({"kind":"unregister","t_ns":209,"heap":"host","address":12288})",
    R"({"kind":"context_create","t_ns":300,"device":0,"context":1,"object":94,"flags":8})",
    R"({"kind":"context_reset","t_ns":301,"device":0,"context":1})",
    R"({"kind":"stream","t_ns":302,"stream":55,"action":"create","priority":-5,"name":"copy"})",
    R"({"kind":"event_record","t_ns":303,"stream":55,"object":66})",
    R"({"kind":"event_wait","t_ns":304,"stream":0,"object":66})",
    R"({"kind":"sync","t_ns":305,"action":"device","duration_ns":100,"result":0,"stack":7,"thread":11,"api":"cudaDeviceSynchronize"})",
    R"({"kind":"pool","t_ns":306,"device":0,"object":77,"action":"release_threshold","value":18446744073709551615})",
    R"({"kind":"graph","t_ns":307,"object":88,"action":"launch","stream":55})",
    R"({"kind":"module","t_ns":308,"object":99,"action":"load","value":4096,"name":"kernels.cubin"})",
    R"({"kind":"limit","t_ns":309,"action":"malloc_heap_size","value":8388608})",
    R"({"kind":"allocator","t_ns":310,"heap":"pytorch","device":0,"action":"empty_cache","value":2097152})",
    R"({"kind":"copy","t_ns":311,"stream":55,"device":0,"action":"host_to_device","value":4096,"duration_ns":7})",
    R"({"kind":"source","t_ns":312,"name":"cupti","text":"on"})",
    R"({"kind":"device","t_ns":313,"device":0,"action":"name","name":"the fast one"})",
    R"({"kind":"witness","t_ns":314,"object":4096,"value":512,"memory":"device","stream":0,"device":0,"action":"alloc"})",
    R"({"kind":"mark","t_ns":400,"name":"step","index":12,"domain":"d","range":1,"color":4294901760,"text":"loss 0.5","stack":7,"thread":11})",
    R"({"kind":"range_begin","t_ns":401,"name":"forward","range":5,"device":1})",
    R"({"kind":"range_end","t_ns":402,"range":5})",
    R"({"kind":"sample","t_ns":403,"device":0,"used_bytes":5,"total_bytes":6,"free_bytes":1,"reserved_bytes":1,"source":"nvml","processes":[{"pid":3,"bytes":2,"name":"python"},{"pid":4}]})",
    R"({"kind":"snapshot","t_ns":404,"name":"exit","reason":"exit"})",
    R"({"kind":"gap","t_ns":405,"from":405,"to":409,"events":77,"reason":"overrun","first_ticket":1,"last_ticket":77})",
    R"({"kind":"losses","written":80,"delivered":3,"overrun":77,"holes":0,"stacks_full":2})",
    R"({"kind":"live_set","t_ns":500,"name":"exit","reason":"exit","exact":false,"inexact_because":"late attach","totals":[{"heap":"pytorch","device":0,"allocated_bytes":1,"reserved_bytes":2}],"samples":[{"used_bytes":1}],"losses":{"written":1},"in_flight":[{"thread":11,"api":"cudaMalloc","size":5,"stack":7,"since_t_ns":499}],"live":[{"kind":"alloc","t_ns":13,"heap":"pytorch","address":512,"size":512,"stack":7,"dtype":"float32","shape":"[]","role":["parameter","saved"]},{"kind":"map","address":4096,"handle":17}]})",
    R"({"kind":"","t_ns":-3})",
    R"({"kind":"warp_drive","t_ns":-3,"factor":[9.975,null]})",
    R"({"kind":"alloc","memory":"a kind of memory to come","size":-1.5})",
    R"({"kind":"mark","t_ns":-9223372036854775808,"name":"before"})",
};

class EventLogTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("gmt_event_log_test." + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Log(const Lines& lines) {
    const std::string path = (folder_ / "log.jsonl").string();
    std::ofstream out(path);
    for (const std::string& line : lines) out << line << "\n";
    return path;
  }

  // Returns the recording of a log.
  std::string Import(const std::string& path) {
    std::string bytes;
    std::vector<size_t> writes;
    const auto log = *format::OpenFile(path);
    absl::StatusOr<Header> header = ReadEventLogHeader(*log);
    EXPECT_TRUE(header.ok()) << header.status();
    auto writer = format::RecordingWriter::Create(
        std::make_unique<format::StringSink>(&bytes, &writes), *header, {});
    EXPECT_TRUE(writer.ok());
    WriterTarget target(writer->get());
    status_ = ReadEventLog(*log, path, (*writer)->definitions(), target, &notes_);
    EXPECT_TRUE((*writer)->Finish().ok());
    return bytes;
  }
  std::string Import(const Lines& lines) { return Import(Log(lines)); }

  // Returns the log of a recording.
  Lines Print(const std::string& recording) {
    Lines lines;
    format::Collected all;
    auto first = format::RecordingReader::FromBytes(recording, "a");
    EXPECT_TRUE(first.ok() && (*first)->Read(all).ok());
    EventLogWriter writer(&(*first)->definitions(), [&](absl::string_view line) {
      lines.emplace_back(line);
      return absl::OkStatus();
    });
    auto second = format::RecordingReader::FromBytes(recording, "a");
    EXPECT_TRUE((*second)->Read(writer, format::Returns::kAsRecorded).ok());
    EXPECT_TRUE(writer.End().ok());
    return lines;
  }

  void ExpectUnchanged(const Lines& lines) {
    const Lines back = Print(Import(lines));
    ASSERT_TRUE(status_.ok()) << status_;
    ASSERT_THAT(back, SizeIs(lines.size()));
    for (size_t at = 0; at < lines.size(); ++at) {
      EXPECT_EQ(nlohmann::json::parse(back[at]), nlohmann::json::parse(lines[at]));
    }
  }

  std::string ErrorOf(const Lines& lines) {
    Import(lines);
    return std::string(status_.message());
  }

  std::filesystem::path folder_;
  absl::Status status_;
  Notes notes_;
};

// ---- Round trips -----------------------------------------------------------------------------

TEST_F(EventLogTest, EveryKindWithEveryKeySurvivesARoundTrip) {
  ExpectUnchanged(Lines(std::begin(kEveryKind), std::end(kEveryKind)));
}

TEST_F(EventLogTest, TheTestCoversEveryKind) {
  std::string all;
  for (const char* line : kEveryKind) all += line;
  for (int kind = 1; kind <= ROLE; ++kind) {
    if (kind == OTHER_KIND) continue;
    const std::string name(KindName(static_cast<Kind>(kind)));
    EXPECT_THAT(all, HasSubstr("\"kind\":\"" + name + "\""));
  }
}

TEST_F(EventLogTest, TheTestCoversEveryKeyOfARow) {
  std::string all;
  for (const char* line : kEveryKind) all += line;
  for (int family = 0; family <= static_cast<int>(format::Family::kOther); ++family) {
    for (const EventField& field : FieldsOf(static_cast<format::Family>(family))) {
      EXPECT_THAT(all, HasSubstr(std::string("\"") + field.key + "\":"));
    }
  }
}

TEST_F(EventLogTest, LogWithoutHeaderStaysWithoutOne) {
  ExpectUnchanged({R"({"kind":"alloc","size":1})", R"({"kind":"facts","argv":["a"]})"});
}

TEST_F(EventLogTest, EmptyLogStaysEmpty) { ExpectUnchanged({}); }

TEST_F(EventLogTest, UnusedStackKeepsItsPlace) {
  ExpectUnchanged(
      {R"({"kind":"free"})", R"({"kind":"stack","id":3,"frames":[]})", R"({"kind":"free"})"});
}

TEST_F(EventLogTest, StackThatIsDefinedTwiceIsPrintedTwice) {
  ExpectUnchanged(
      {R"({"kind":"stack","id":3,"frames":[{"function":"a"}]})", R"({"kind":"alloc","stack":3})",
       R"({"kind":"stack","id":3,"frames":[{"function":"b"}]})", R"({"kind":"alloc","stack":3})"});
}

TEST_F(EventLogTest, UnknownKeysAreIgnored) {
  const Lines back = Print(Import(Lines{R"({"kind":"mark","name":"x","wings":2})"}));
  EXPECT_THAT(back, ElementsAre(R"({"kind":"mark","name":"x"})"));
}

TEST_F(EventLogTest, NullMeansMissing) {
  EXPECT_THAT(Print(Import(Lines{R"({"kind":"alloc","size":null})"})),
              ElementsAre(R"({"kind":"alloc"})"));
}

TEST_F(EventLogTest, RandomRecordingsPrintTheSameAfterImport) {
  ForEachSeed(SeedsUpTo(20), [&](uint32_t seed) {
    std::string bytes;
    std::vector<size_t> writes;
    auto writer = *format::RecordingWriter::Create(
        std::make_unique<format::StringSink>(&bytes, &writes), Header(), {});
    format::RandomEvents random(seed);
    format::EventBatch batch;
    for (uint32_t id = 1; id <= 9; ++id) {
      const uint32_t name = writer->definitions().InternString("name" + std::to_string(id));
      format::FrameInfo frame;
      frame.function = name;
      writer->definitions().InternStack({writer->definitions().InternFrame(frame)},
                                        id == 9 ? uint32_t{format::kStackTruncated} : 0);
    }
    for (int n = 0; n < 500; ++n) random.AddTo(&batch, 9);
    // Only imported logs have stack lines.
    std::erase_if(batch.events,
                  [](const format::Event& event) { return event.kind == STACK_LINE; });
    ASSERT_TRUE(writer->Add(batch).ok());
    ASSERT_TRUE(writer->Finish().ok());
    const Lines printed = Print(bytes);
    EXPECT_EQ(Print(Import(printed)), printed);
  });
}

TEST_F(EventLogTest, RecordedNativeFramesPrintTheSameAfterImport) {
  std::string bytes;
  std::vector<size_t> writes;
  auto writer = *format::RecordingWriter::Create(
      std::make_unique<format::StringSink>(&bytes, &writes), Header(), {});
  format::DefinitionsBuilder& definitions = writer->definitions();
  format::FrameInfo frame;
  frame.module = definitions.AddModule({"/lib/\xFFlib.so", "\x01\x02", 0x1000, 0x2000, 0x1000, 5});
  frame.address = 0x42;
  frame.flags = format::kFrameIsReturnAddress;
  const uint32_t resolved = definitions.InternFrame(frame);
  frame.address = 0x43;
  const uint32_t unresolved = definitions.InternFrame(frame);
  format::Event event;
  event.kind = ALLOC;
  event.stack = definitions.InternStack({resolved, unresolved}, 0);
  ASSERT_TRUE(writer->Add(event).ok());
  Symbols symbols;
  symbols.set_count(2);
  symbols.add_frame(resolved);
  symbols.add_function(definitions.InternString("inlined"));
  symbols.add_function(definitions.InternString("outer"));
  ASSERT_TRUE(writer->Add(symbols).ok());
  ASSERT_TRUE(writer->Finish().ok());

  const Lines printed = Print(bytes);
  EXPECT_THAT(printed.at(1), HasSubstr(R"({"function":"inlined","language":"c++","module":)"));
  EXPECT_THAT(printed.at(1), HasSubstr(R"("offset":67,"build_id":"0102","return_address":true}])"));
  EXPECT_EQ(Print(Import(printed)), printed);
}

// ---- Invalid lines -----------------------------------------------------------------------

TEST_F(EventLogTest, InvalidJsonIsReportedWithItsLineNumber) {
  EXPECT_THAT(ErrorOf({R"({"kind":"free"})", "{free}", R"({"kind":"free"})"}),
              HasSubstr("log.jsonl: line 2 is not valid JSON: error at character"));
}

TEST_F(EventLogTest, LineThatIsNotAnObjectIsReportedWithItsNumber) {
  EXPECT_THAT(ErrorOf({"[1]"}), HasSubstr("line 1 is not a JSON object"));
}

TEST_F(EventLogTest, LineWithoutKindIsAnError) {
  EXPECT_THAT(ErrorOf({"{}"}), HasSubstr("line 1 has no \"kind\""));
}

TEST_F(EventLogTest, FractionsAndSignsAreRefusedForUnsignedIntegers) {
  EXPECT_THAT(
      ErrorOf({R"({"kind":"alloc","size":1.5})"}),
      HasSubstr(R"("size" must be a whole number, not negative, of at most 64 bits, not 1.5)"));
  EXPECT_THAT(ErrorOf({R"({"kind":"alloc","size":-1})"}), HasSubstr("\"size\""));
  EXPECT_THAT(ErrorOf({R"({"kind":"alloc","thread":4294967296})"}), HasSubstr("\"thread\""));
}

TEST_F(EventLogTest, StringInsteadOfANumberIsRefused) {
  EXPECT_THAT(ErrorOf({R"({"kind":"alloc","address":"0x10"})"}), HasSubstr("\"address\""));
}

TEST_F(EventLogTest, RolesThatAreNotAListOfStringsAreRefused) {
  EXPECT_THAT(ErrorOf({R"({"kind":"role","role":4})"}), HasSubstr(R"("role" must be a list)"));
  EXPECT_THAT(ErrorOf({R"({"kind":"role","role":[4]})"}), HasSubstr("\"role\""));
}

TEST_F(EventLogTest, LaterSchemaIsRefused) {
  EXPECT_THAT(ErrorOf({R"({"kind":"header","schema":"gpumemtrace.events/2"})"}),
              HasSubstr("gpumemtrace.events/2"));
}

TEST_F(EventLogTest, UnknownKeysAreInOneNote) {
  Import(Lines{R"({"kind":"alloc","address":4096,"sice":5})",
               R"({"kind":"alloc","address":8192,"sice":5,"colour":1})",
               R"({"kind":"free","address":4096,"size":5})"});
  EXPECT_TRUE(status_.ok());
  EXPECT_THAT(notes_,
              ElementsAre(HasSubstr("unknown keys of events were ignored: \"colour\" (1 time), "
                                    "\"sice\" (2 times)")));
}

TEST_F(EventLogTest, IncompleteLastLineIsLeftOutWithANote) {
  const std::string path = Log({R"({"kind":"free"})"});
  std::ofstream(path, std::ios::app) << R"({"kind":"al)";
  EXPECT_THAT(Print(Import(path)), SizeIs(1));
  EXPECT_TRUE(status_.ok());
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("line 2 is incomplete")));
}

TEST_F(EventLogTest, LastLineWithoutLineEndIsReadIfComplete) {
  const std::string path = Log({R"({"kind":"free"})"});
  std::ofstream(path, std::ios::app) << R"({"kind":"free"})";
  EXPECT_THAT(Print(Import(path)), SizeIs(2));
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(EventLogTest, BlankLinesAndCarriageReturnsAreSkipped) {
  EXPECT_THAT(Print(Import(Lines{"", "{\"kind\":\"free\"}\r", "  "})), SizeIs(1));
}

TEST_F(EventLogTest, DeepNestingDoesNotOverflow) {
  const auto nested = [](size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  EXPECT_FALSE(ErrorOf({std::string(200'000, '[')}).empty());
  for (const char* key : {"kind", "schema", "t_ns"}) {
    EXPECT_THAT(
        ErrorOf({R"({"kind":"header",")" + std::string(key) + "\":" + nested(1'000'000) + "}"}),
        HasSubstr("line 1 nests more than 64 lists and objects"));
  }
  EXPECT_THAT(ErrorOf({R"({"kind":)" + nested(63) + "}"}), HasSubstr("must be text"));
  ExpectUnchanged({R"({"kind":"mark","t_ns":1,"name":")" + std::string(100, '[') + R"(\"{"})"});
}

TEST_F(EventLogTest, DeepSettingIsPrintedAsText) {
  ExpectUnchanged(
      {R"({"kind":"facts","settings":{"a":)" + std::string(62, '[') + std::string(62, ']') + "}}"});
  Facts facts;
  Setting* const setting = facts.add_settings();
  setting->set_name("a");
  setting->set_json(true);
  setting->set_value(std::string(1'000'000, '[') + std::string(1'000'000, ']'));
  std::string bytes;
  std::vector<size_t> writes;
  auto writer = *format::RecordingWriter::Create(
      std::make_unique<format::StringSink>(&bytes, &writes), Header(), {});
  ASSERT_TRUE(writer->Add(facts).ok());
  ASSERT_TRUE(writer->Finish().ok());
  const Lines printed = Print(bytes);
  EXPECT_THAT(printed.back(), HasSubstr(R"("settings":{"a":"[[[)"));
  EXPECT_EQ(Print(Import(printed)).back(), printed.back());
}

// ---- Opening by content -------------------------------------------------------------------------

TEST_F(EventLogTest, LogIsOpenedLikeARecording) {
  const std::string path = Log({R"({"kind":"stack","id":7,"frames":[{"function":"f"}]})",
                                R"({"kind":"alloc","heap":"pytorch","stack":7,"size":5})"});
  absl::StatusOr<std::unique_ptr<Input>> input = OpenInput(path);
  ASSERT_TRUE(input.ok());
  format::Collected read;
  ASSERT_TRUE((*input)->Read(read).ok());
  const format::Definitions& definitions = (*input)->definitions();
  const format::Event& alloc = read.events.at(1);
  EXPECT_EQ(definitions.string(alloc.heap), "pytorch");
  EXPECT_THAT(definitions.StackFrames(alloc.stack), SizeIs(1));
  EXPECT_TRUE((*input)->complete());
}

TEST_F(EventLogTest, FreeInALogIsCompletedLikeOneInARecording) {
  const std::string path = Log({R"({"kind":"alloc","heap":"pytorch","address":5,"size":77})",
                                R"({"kind":"free","heap":"pytorch","address":5})"});
  format::Collected completed, as_recorded;
  ASSERT_TRUE((*OpenInput(path))->Read(completed).ok());
  ASSERT_TRUE((*OpenInput(path))->Read(as_recorded, format::Returns::kAsRecorded).ok());
  EXPECT_EQ(completed.events.at(1).size, 77u);
  EXPECT_FALSE(as_recorded.events.at(1).has(format::kHasSize));
}

TEST_F(EventLogTest, RoleInALogIsCompletedLikeOneInARecording) {
  const std::string path = Log({R"({"kind":"alloc","heap":"pytorch","address":5,"size":77})",
                                R"({"kind":"role","heap":"pytorch","address":5,"role":[]})"});
  format::Collected completed, as_recorded;
  ASSERT_TRUE((*OpenInput(path))->Read(completed).ok());
  ASSERT_TRUE((*OpenInput(path))->Read(as_recorded, format::Returns::kAsRecorded).ok());
  EXPECT_EQ(completed.events.at(1).size, 77u);
  EXPECT_FALSE(as_recorded.events.at(1).has(format::kHasSize));
}

TEST_F(EventLogTest, LogThatGrowsIsReadUpToItsSizeWhenItWasOpened) {
  const std::string path = Log({R"({"kind":"free","address":1})"});
  const auto input = OpenInput(path);
  ASSERT_TRUE(input.ok()) << input.status();
  std::ofstream(path, std::ios::app) << R"({"kind":"free","address":2})"
                                     << "\n";
  format::Collected read;
  ASSERT_TRUE((*input)->Read(read).ok());
  EXPECT_THAT(read.events, SizeIs(1));
}

TEST_F(EventLogTest, OtherFilesAreRefusedByName) {
  EXPECT_THAT(std::string(OpenInput(Log({"hello"})).status().message()),
              HasSubstr("log.jsonl is text; expected a recording"));
}

TEST_F(EventLogTest, TruncatedRecordingHasANote) {
  const std::string bytes = Import(Lines{R"({"kind":"free"})"});
  const std::string path = (folder_ / "cut.gmt").string();
  std::ofstream(path, std::ios::binary) << bytes.substr(0, bytes.size() - 5);
  absl::StatusOr<std::unique_ptr<Input>> input = OpenInput(path);
  ASSERT_TRUE(input.ok());
  format::Collected read;
  ASSERT_TRUE((*input)->Read(read).ok());
  EXPECT_FALSE((*input)->complete());
  EXPECT_THAT((*input)->notes(), ElementsAre(HasSubstr("cut.gmt has no end")));
}

// Returns the words in `backquotes` in the section about the event log.
std::set<std::string> WordsOfTheDocument() {
  std::ifstream file(GMT_SOURCE_DIR "/docs/format.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const size_t begin = page.find("\n## The event log\n");
  const std::string section = page.substr(begin, page.find("\n## ", begin + 1) - begin);
  std::set<std::string> words;
  const std::vector<std::string> parts = absl::StrSplit(section, '`');
  for (size_t i = 1; i < parts.size(); i += 2) {
    std::istringstream in(parts[i]);
    for (std::string word; in >> word;) words.insert(word);
  }
  return words;
}

TEST(EventLogDocumentTest, NamesEveryKindMemoryAndKey) {
  const std::set<std::string> words = WordsOfTheDocument();
  int kinds = 0;
  for (int i = 0; i < 1000; ++i) {
    const Kind kind = static_cast<Kind>(i);
    if (KindName(kind).empty()) continue;
    ++kinds;
    EXPECT_THAT(words, Contains(std::string(KindName(kind))));
    for (const EventField& field : FieldsOf(format::FamilyOf(kind))) {
      EXPECT_THAT(words, Contains(field.key)) << KindName(kind);
    }
  }
  EXPECT_GE(kinds, 38);
  for (int i = 0; i < 100; ++i) {
    const std::string_view name = MemoryName(static_cast<Memory>(i));
    if (!name.empty()) {
      EXPECT_THAT(words, Contains(std::string(name)));
    }
  }
}

}  // namespace
}  // namespace gmt::interop
