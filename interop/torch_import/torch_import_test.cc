// Imports PyTorch snapshots layout by layout and field by field. torch_import_replay_test.cc
// compares random histories with the actual state.

#include "interop/torch_import/torch_import.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "format/definitions_builder.h"
#include "interop/testing/torch_import_fixture.h"
#include "proto/gmt.pb.h"

namespace gmt::interop {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Json = nlohmann::ordered_json;

class TorchImportTest : public TorchImportFixture {
 protected:
  static Json Parse(const char* text) { return Json::parse(text); }
};

// ---- Blocks -------------------------------------------------------------------------------------

TEST_F(TorchImportTest, BlockFromAllocToFree) {
  const Json snapshot = Parse(R"({"segments": [], "device_traces": [[
      {"action": "alloc", "addr": 4096, "size": 1000, "stream": 7, "time_us": 5000,
       "compile_context": "0/1", "user_metadata": "weights", "pool_id": [0, 3],
       "frames": [{"name": "f", "filename": "m.py", "line": 3}],
       "forward_frames": ["odd", "  File \"net.py\", line 9, in forward\n    x = y\n"]},
      {"action": "free_requested", "addr": 4096, "size": 1000, "stream": 7, "time_us": 5002},
      {"action": "free_completed", "addr": 4096, "size": 1000, "stream": 7, "time_us": 5003}]]})");
  EXPECT_THAT(
      Lines(snapshot, {"alloc", "free", "free_done"}),
      ElementsAre(
          R"({"kind":"alloc","t_ns":0,"heap":"pytorch","memory":"block","device":0,"address":4096,"size":1024,"requested":1000,"stack":1,"forward_stack":3,"stream":7,"pool":3,"name":"weights","scope":"0/1"})",
          R"({"kind":"free","t_ns":2000,"heap":"pytorch","memory":"block","device":0,"address":4096,"size":1024,"stream":7,"pool":3})",
          R"({"kind":"free_done","t_ns":3000,"heap":"pytorch","memory":"block","device":0,"address":4096,"size":1024,"stream":7})"));
  EXPECT_THAT(
      Lines(snapshot, {"stack"}),
      ElementsAre(
          R"({"kind":"stack","id":1,"frames":[{"function":"f","file":"m.py","line":3,"language":"python"}]})",
          R"({"kind":"stack","id":3,"frames":[{"function":"forward","file":"net.py","line":9,"language":"python"},{"function":"odd","language":"python"}]})"));
  EXPECT_THAT(Lines(snapshot, {"header"}),
              ElementsAre(AllOf(HasSubstr(R"("start_unix_ns":5000000)"))));
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("forward frames of which only the place was kept")));
}

// Only the final state has the size of a block.
TEST_F(TorchImportTest, BlockThatExistsAtTheEndHasItsSize) {
  EXPECT_THAT(Lines(Parse(R"({"segments": [{"device": 0, "address": 4096, "total_size": 4096,
      "stream": 0, "segment_type": "small", "blocks": [
        {"address": 4096, "size": 2048, "requested_size": 1000, "state": "active_allocated",
         "frames": []},
        {"address": 6144, "size": 2048, "requested_size": 0, "state": "inactive", "frames": []}]}],
      "device_traces": [[
      {"action": "segment_alloc", "addr": 4096, "size": 4096, "stream": 0},
      {"action": "alloc", "addr": 4096, "size": 1000, "stream": 0}]]})"),
                    {"alloc"}, {"heap", "device", "memory", "stream"}),
              ElementsAre(R"({"kind":"alloc","address":4096,"size":4096,"pool":0})",
                          R"({"kind":"alloc","address":4096,"size":2048,"requested":1000})"));
  EXPECT_THAT(notes_, IsEmpty());
}

// PyTorch uses "??" as the file of code without debug information.
TEST_F(TorchImportTest, NativeFramesAndPythonFrames) {
  EXPECT_THAT(
      Lines(Parse(R"j({"segments": [], "device_traces": [[
      {"action": "snapshot", "addr": 0, "size": 1, "frames": [
        {"name": "c10::malloc(int)", "filename": "??", "line": 0},
        {"name": "gather", "filename": "memory_snapshot.cpp", "line": 12},
        {"name": "<module>", "filename": "<stdin>", "line": 1},
        {"name": "f", "filename": "m.py", "line": 3, "fx_node_op": "call_module"}]}]]})j"),
            {"stack"}),
      ElementsAre(
          R"j({"kind":"stack","id":4,"frames":[{"function":"c10::malloc(int)","line":0,"language":"c++"},{"function":"gather","file":"memory_snapshot.cpp","line":12,"language":"c++"},{"function":"<module>","file":"<stdin>","line":1,"language":"python"},{"function":"f","file":"m.py","line":3,"language":"python"}]})j"));
  EXPECT_THAT(notes_,
              ElementsAre(HasSubstr("frames of which only name, filename and line were kept: 1")));
}

TEST_F(TorchImportTest, BlocksFromBeforeTheHistoryAreInTheFirstLiveSet) {
  const auto lines = Lines(Parse(R"({"segments": [{"device": 0, "address": 4096,
      "total_size": 8192, "stream": 0, "blocks": [
        {"address": 4096, "size": 512, "requested_size": 5, "state": "active_allocated",
         "frames": [{"name": "a", "filename": "m.py", "line": 1}]},
        {"address": 4608, "size": 7680, "state": "inactive"}]}],
      "device_traces": [[
      {"action": "free_requested", "addr": 8192, "size": 700, "stream": 0, "time_us": 1},
      {"action": "free_completed", "addr": 8192, "size": 700, "stream": 0, "time_us": 1}]]})"),
                           {"live_set", "alloc"});
  ASSERT_EQ(lines.size(), 2u);
  const Json begin = Json::parse(lines[0]), end = Json::parse(lines[1]);
  EXPECT_EQ(begin["name"], "begin");
  EXPECT_EQ(begin["exact"], true);
  EXPECT_EQ(
      begin["live"].dump(),
      R"([{"kind":"alloc","heap":"driver","memory":"device","device":0,"address":4096,"size":8192,"stream":0,"pool":0},)"
      R"({"kind":"alloc","heap":"pytorch","memory":"block","device":0,"address":4096,"size":512,"requested":5,"stack":1,"stream":0},)"
      R"({"kind":"alloc","heap":"pytorch","memory":"block","device":0,"address":8192,"size":1024,"requested":700,"stream":0}])");
  EXPECT_EQ(end["name"], "end");
  EXPECT_EQ(end["live"].size(), 2u);
}

TEST_F(TorchImportTest, FreeThatWaitsForAStreamIsCompletedLater) {
  const Json segments = Parse(R"([{"device": 0, "address": 4096, "total_size": 4096, "stream": 0,
      "blocks": [{"address": 4096, "size": 4096, "requested_size": 4000,
                  "state": "active_pending_free"}]}])");
  Json snapshot = {{"segments", segments}, {"device_traces", Parse(R"([[
      {"action": "free_completed", "addr": 65536, "size": 512, "stream": 0, "time_us": 3},
      {"action": "free_requested", "addr": 4096, "size": 4000, "stream": 0, "time_us": 4}]])")}};
  // A block that was already waiting before the history is held at its beginning, and freed then.
  EXPECT_THAT(Lines(snapshot, {"free", "free_done"}, {"heap", "memory", "device", "stream"}),
              ElementsAre(R"({"kind":"free","address":65536,"size":512})",
                          R"({"kind":"free_done","t_ns":0,"address":65536,"size":512})",
                          R"({"kind":"free","t_ns":1000,"address":4096,"size":4096})"));
  EXPECT_THAT(notes_, IsEmpty());
  EXPECT_EQ(summary_.blocks, 1u);
}

// ---- Segments -----------------------------------------------------------------------------------

// 40 MiB are mapped at once, and the first 20 are unmapped later: there must be two pieces.
TEST_F(TorchImportTest, MappedMemoryIsCutWhereItIsUnmapped) {
  const Json snapshot = Parse(R"({"segments": [{"device": 0, "address": 20971520,
      "total_size": 20971520, "stream": 5, "segment_type": "large", "is_expandable": true,
      "segment_pool_id": [1, 0], "blocks": [
        {"address": 20971520, "size": 20971520, "state": "inactive"}]}],
      "device_traces": [[
      {"action": "segment_map", "addr": 0, "size": 41943040, "stream": 5, "time_us": 1},
      {"action": "segment_unmap", "addr": 0, "size": 20971520, "stream": 5, "time_us": 2}]]})");
  EXPECT_THAT(
      Lines(snapshot, {"reserve", "create", "map", "unmap", "release"},
            {"heap", "memory", "device", "t_ns"}),
      ElementsAre(
          R"({"kind":"reserve","address":0,"size":41943040})",
          R"({"kind":"create","address":1,"size":20971520,"stream":5,"pool":4294967296})",
          R"({"kind":"map","address":0,"size":20971520,"stream":5,"pool":4294967296,"handle":1})",
          R"({"kind":"create","address":2,"size":20971520,"stream":5,"pool":4294967296})",
          R"({"kind":"map","address":20971520,"size":20971520,"stream":5,"pool":4294967296,"handle":2})",
          R"({"kind":"unmap","address":0,"size":20971520,"stream":5,"pool":4294967296})",
          R"({"kind":"release","address":1,"size":20971520,"stream":5,"pool":4294967296})"));
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(TorchImportTest, MemoryMappedBeforeTheHistoryIsHeldPageByPage) {
  const auto lines = Lines(Parse(R"({"segments": [{"device": 0, "address": 0,
      "total_size": 41943040, "stream": 5, "segment_type": "large", "is_expandable": true,
      "blocks": []}], "device_traces": [[]]})"),
                           {"live_set"});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(Json::parse(lines[0])["live"].size(), 4u);  // two pages, a create and a map each
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("it has no history")));
}

// ---- The rest of a trace ------------------------------------------------------------------------

TEST_F(TorchImportTest, OutOfMemorySaysWhatWasFree) {
  EXPECT_THAT(
      Lines(Parse(R"({"segments": [], "device_traces": [[], [
      {"action": "oom", "device_free": 300, "size": 1024, "stream": 0, "time_us": 9}]]})"),
            {"sample", "alloc_failed"}),
      ElementsAre(
          R"({"kind":"sample","t_ns":0,"device":1,"free_bytes":300,"source":"cudaMemGetInfo"})",
          R"({"kind":"alloc_failed","t_ns":0,"heap":"pytorch","memory":"block","device":1,"size":1024,"stream":0,"result":2})"));
}

TEST_F(TorchImportTest, ActionsOfLaterVersionsAreKept) {
  EXPECT_THAT(
      Lines(Parse(R"({"segments": [], "device_traces": [[
      {"action": "snapshot", "addr": 0, "size": 512, "stream": 0, "time_us": 1,
       "frames": [{"name": "f", "filename": "m.py", "line": 3}]},
      {"action": "annotate", "addr": 4096, "size": 0, "stream": 0, "user_metadata": {"a": 1}},
      {"action": "levitate", "height": 3}]]})"),
            {"allocator"}, {"heap", "device", "t_ns"}),
      ElementsAre(
          R"({"kind":"allocator","stream":0,"object":0,"action":"snapshot","value":512,"stack":1})",
          R"({"kind":"allocator","stream":0,"object":4096,"action":"annotate","value":0,"name":"{\"a\":1}"})",
          R"({"kind":"allocator","object":0,"action":"levitate","value":0})"));
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("\"height\" of events cannot be represented in a "
                                            "recording and "
                                            "was left out (1 of them)")));
}

TEST_F(TorchImportTest, AnnotationsAreRanges) {
  EXPECT_THAT(Lines(Parse(R"({"segments": [], "device_traces": [], "external_annotations": [
      {"name": "a", "stage": "START", "device": 0, "time_us": 1},
      {"name": "a", "stage": "START", "device": 1, "time_us": 1},
      {"name": "a", "stage": "START", "device": 0, "time_us": 2},
      {"name": "a", "stage": "END", "device": 0, "time_us": 3},
      {"name": "a", "stage": "END", "device": 1, "time_us": 4},
      {"name": "b", "stage": "END", "device": 0, "time_us": 5}]})"),
                    {"range_begin", "range_end"}),
              ElementsAre(R"({"kind":"range_begin","t_ns":0,"name":"a","range":1,"device":0})",
                          R"({"kind":"range_begin","t_ns":0,"name":"a","range":2,"device":1})",
                          R"({"kind":"range_begin","t_ns":1000,"name":"a","range":3,"device":0})",
                          R"({"kind":"range_end","t_ns":2000,"name":"a","range":3,"device":0})",
                          R"({"kind":"range_end","t_ns":3000,"name":"a","range":2,"device":1})",
                          R"({"kind":"range_end","t_ns":4000,"name":"b","range":4,"device":0})"));
}

TEST_F(TorchImportTest, SettingsAreKeptUnchanged) {
  const auto lines = Lines(Parse(R"({"segments": [], "device_traces": [[], [], []],
      "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
      "max_split_size": -1, "roundup_power2_divisions": {"1": 0}}})"),
                           {"facts"});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(
      lines[0],
      R"({"kind":"facts","devices":[{"index":0},{"index":1},{"index":2}],)"
      R"("settings":{"PYTORCH_CUDA_ALLOC_CONF":"expandable_segments:True","max_split_size":-1,"roundup_power2_divisions":{"1":0}}})");
}

TEST_F(TorchImportTest, EventsOfAllDevicesAreInTheOrderOfTime) {
  EXPECT_THAT(Lines(Parse(R"({"segments": [], "device_traces": [
      [{"action": "segment_alloc", "addr": 1, "size": 1, "time_us": 10},
       {"action": "segment_alloc", "addr": 2, "size": 1, "time_us": 9},
       {"action": "segment_alloc", "addr": 3, "size": 1, "time_us": 30}], [],
      [{"action": "segment_alloc", "addr": 4, "size": 1, "time_us": 20}]],
      "external_annotations": [{"name": "x", "stage": "START", "time_us": 15}]})"),
                    {"alloc", "range_begin"}, {"heap", "memory", "size", "pool"}),
              ElementsAre(R"({"kind":"alloc","t_ns":1000,"device":0,"address":1})",
                          R"({"kind":"alloc","t_ns":0,"device":0,"address":2})",
                          R"({"kind":"range_begin","t_ns":6000,"name":"x","range":1})",
                          R"({"kind":"alloc","t_ns":11000,"device":2,"address":4})",
                          R"({"kind":"alloc","t_ns":21000,"device":0,"address":3})"));
  EXPECT_EQ(summary_.events, 4u);
  EXPECT_EQ(summary_.devices, 2u);
}

// ---- Older layouts ------------------------------------------------------------------------------

// PyTorch 1.13: a list of segments; blocks without addresses and with a history.
TEST_F(TorchImportTest, TheListOfSegmentsOfPyTorch1) {
  const auto lines = Lines(Parse(R"([{"device": 1, "address": 4096, "total_size": 4096,
      "allocated_size": 1024, "active_size": 1024, "stream": 0, "segment_type": "small", "blocks": [
        {"size": 1024, "state": "inactive"},
        {"size": 1024, "state": "active_allocated", "history": [
          {"addr": 5120, "real_size": 1000, "frames": [{"name": "f", "filename": "m.py", "line": 3}]},
          {"addr": 5120, "real_size": 900, "frames": []}]},
        {"size": 2048, "state": "inactive"}]}])"),
                           {"live_set"});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(
      Json::parse(lines[0])["live"][1].dump(),
      R"({"kind":"alloc","heap":"pytorch","memory":"block","device":1,"address":5120,"size":1024,"requested":1000,"stack":1,"stream":0})");
}

// PyTorch 2.0: traces without times, blocks with a history.
TEST_F(TorchImportTest, TracesWithoutTimes) {
  EXPECT_THAT(Lines(Parse(R"({"segments": [{"device": 0, "address": 0, "total_size": 512,
      "stream": 0, "segment_type": "small", "segment_pool_id": [0, 0], "blocks": [
        {"size": 512, "requested_size": 7, "state": "active_allocated",
         "history": [{"addr": 0, "real_size": 7, "frames": [], "cpp_frames": []}]}]}],
      "device_traces": [[{"action": "segment_alloc", "addr": 0, "size": 512, "stream": 0},
                         {"action": "alloc", "addr": 0, "size": 7, "stream": 0}]]})"),
                    {"header", "alloc"}, {"heap", "memory", "device", "stream", "schema"}),
              ElementsAre(R"({"kind":"alloc","address":0,"size":512,"pool":0})",
                          R"({"kind":"alloc","address":0,"size":512,"requested":7})"));
}

// ---- Contradictions, and invalid snapshots -------------------------------------------

// Recording was off in between: a block and its segment were freed, and others allocated.
TEST_F(TorchImportTest, FinalStateWins) {
  EXPECT_THAT(
      Lines(Parse(R"({"segments": [{"device": 0, "address": 1048576, "total_size": 1024,
      "stream": 0, "blocks": [{"address": 1048576, "size": 1024, "requested_size": 1000,
                               "state": "active_allocated"}]}],
      "device_traces": [[
      {"action": "segment_alloc", "addr": 4096, "size": 4096, "stream": 0, "time_us": 1},
      {"action": "alloc", "addr": 4096, "size": 512, "stream": 0, "time_us": 2}]]})"),
            {"alloc", "free", "free_done"}, {"memory", "device", "stream", "pool"}),
      ElementsAre(
          R"j({"kind":"alloc","t_ns":0,"heap":"driver","address":4096,"size":4096})j",
          R"j({"kind":"alloc","t_ns":1000,"heap":"pytorch","address":4096,"size":512,"requested":512})j",
          R"j({"kind":"free","t_ns":1000,"heap":"pytorch","address":4096,"size":0,"api":"(lost)"})j",
          R"j({"kind":"free_done","t_ns":1000,"heap":"pytorch","address":4096,"size":0,"api":"(lost)"})j",
          R"j({"kind":"free","t_ns":1000,"heap":"driver","address":4096,"size":4096,"api":"(lost)"})j"));
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("contradict each other in 2 places")));
}

// Only the event that requested the free is missing.
TEST_F(TorchImportTest, BlockThatIsFreedOnlyInTheFinalStateIsFreed) {
  EXPECT_THAT(
      Lines(Parse(R"({"segments": [{"device": 0, "address": 4096, "total_size": 512, "stream": 0,
      "blocks": [{"address": 4096, "size": 512, "requested_size": 500,
                  "state": "active_pending_free"}]}],
      "device_traces": [[
      {"action": "segment_alloc", "addr": 4096, "size": 512, "stream": 0, "time_us": 1},
      {"action": "alloc", "addr": 4096, "size": 500, "stream": 0, "time_us": 2}]]})"),
            {"free", "free_done"}, {"memory", "device", "stream"}),
      ElementsAre(
          R"j({"kind":"free","t_ns":1000,"heap":"pytorch","address":4096,"size":512,"api":"(lost)"})j"));
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("contradict each other in 1 places")));
}

// It was allocated, and its free completed, but the request of the free is missing.
TEST_F(TorchImportTest, CompletionWithoutARequestIsReported) {
  Lines(Parse(R"({"segments": [], "device_traces": [[
      {"action": "alloc", "addr": 4096, "size": 500, "stream": 0, "time_us": 1},
      {"action": "free_completed", "addr": 4096, "size": 500, "stream": 0, "time_us": 2}]]})"),
        {});
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("contradict each other in 1 places")));
}

// Two pages were mapped at once, and the unmap of the second is missing.
TEST_F(TorchImportTest, PageThatIsUnmappedOnlyInTheFinalStateIsUnmapped) {
  EXPECT_THAT(
      Lines(Parse(R"({"segments": [{"device": 0, "address": 20971520, "total_size": 20971520,
      "stream": 0, "segment_type": "large", "is_expandable": true, "blocks": []}],
      "device_traces": [[{"action": "segment_map", "addr": 20971520, "size": 41943040,
                          "stream": 0, "time_us": 1}]]})"),
            {"map", "unmap"}, {"memory", "device", "stream", "pool", "t_ns", "heap"}),
      ElementsAre(
          R"j({"kind":"map","address":20971520,"size":41943040,"handle":1})j",
          R"j({"kind":"unmap","address":20971520,"size":41943040,"api":"(lost)"})j",
          R"j({"kind":"map","address":20971520,"size":20971520,"api":"(lost)","handle":2})j"));
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("contradict each other in 1 places")));
}

// A small pickle may have one dict a million times in its lists.
TEST_F(TorchImportTest, DictsOfMoreFieldsThanPyTorchWritesAreRefused) {
  const auto with_fields = [](const char* text, int fields) {
    Json dict = Parse(text);
    for (int i = 0; i < fields; ++i) dict["field" + std::to_string(i)] = i;
    return dict;
  };
  const auto message = [&](const char* list, Json dict) {
    Json snapshot = Parse(R"({"segments": [], "device_traces": []})");
    snapshot[list] = Json::array({std::move(dict)});
    return ErrorOf(snapshot);
  };
  constexpr char kEvent[] = R"({"action": "alloc", "addr": 0, "size": 4})";
  constexpr char kSegment[] = R"({"address": 0, "total_size": 4, "blocks": []})";
  constexpr char kBlock[] = R"({"size": 4, "state": "active_allocated"})";
  const auto trace = [&](int fields) { return Json::array({with_fields(kEvent, fields)}); };
  const auto segment = [&](Json block) {
    Json dict = Parse(kSegment);
    dict["blocks"] = Json::array({std::move(block)});
    return dict;
  };
  Json with_history = Parse(kBlock);
  with_history["history"] = Json::array({with_fields("{}", 257)});
  Record(Pickle({{"segments", Json::array()}, {"device_traces", Json::array({trace(253)})}}));
  EXPECT_TRUE(status_.ok()) << status_;
  EXPECT_THAT(message("device_traces", trace(254)),
              HasSubstr("x.pickle: device_traces[0][0]: has more than 256 fields"));
  EXPECT_THAT(message("segments", with_fields(kSegment, 254)),
              HasSubstr("segments[0]: has more than 256 fields"));
  EXPECT_THAT(message("segments", segment(with_fields(kBlock, 255))),
              HasSubstr("segments[0].blocks[0]: has more than 256 fields"));
  EXPECT_THAT(message("segments", segment(with_history)),
              HasSubstr("segments[0].blocks[0].history[0]: has more than 256 fields"));
  EXPECT_THAT(message("external_annotations", with_fields(R"({"name": "x"})", 256)),
              HasSubstr("external_annotations[0]: has more than 256 fields"));
}

TEST_F(TorchImportTest, InvalidSnapshotsAreRefused) {
  EXPECT_THAT(ErrorOf("text"), HasSubstr("x.pickle: the value of the pickle, a str: is not a "
                                         "memory snapshot of PyTorch"));
  EXPECT_THAT(ErrorOf(Json::object()), HasSubstr("a dict"));
  EXPECT_THAT(ErrorOf(Parse(R"({"segments": 1})")), HasSubstr("is not a memory snapshot"));
  EXPECT_THAT(ErrorOf(Parse("[1]")), HasSubstr("x.pickle: segments[0]: is not a dict"));
  EXPECT_THAT(ErrorOf(Parse(R"({"segments": [], "device_traces": [[{"action": "alloc"}]]})")),
              HasSubstr("x.pickle: device_traces[0][0]: size is not an integer"));
  EXPECT_THAT(ErrorOf(Parse(R"({"segments": [], "device_traces": [[7]]})")),
              HasSubstr("device_traces[0][0]: is not a dict"));
  EXPECT_THAT(ErrorOf(Parse(R"([{"address": 0, "total_size": 4, "blocks": [{"size": 5,
      "state": "inactive"}]}])")),
              HasSubstr("segments[0].blocks[0]: size does not fit its segment"));
  EXPECT_THAT(ErrorOf(Parse(R"([{"address": 0, "total_size": 4, "blocks": [{"size": 4,
      "state": "melting"}]}])")),
              HasSubstr("state is not one of"));
}

// If one list could stand for the events of every device, a small file could take forever.
TEST_F(TorchImportTest, SharedTracesAndBlocksAreRefused) {
  std::ostringstream out;
  PickleWriter pickle(out);
  pickle.BeginDict();
  pickle.String("segments");
  pickle.BeginList();
  pickle.End();
  pickle.String("device_traces");
  pickle.BeginList();
  pickle.BeginList();
  const PickleWriter::Memo memo = pickle.Remember();
  Write(Parse(R"({"action": "x"})"), &pickle);
  pickle.End();
  pickle.Recall(memo);
  pickle.End();
  pickle.End();
  pickle.Finish();
  Record(out.str());
  EXPECT_THAT(std::string(status_.message()),
              HasSubstr("device_traces[1]: is the list of another device"));
}

TEST_F(TorchImportTest, EveryTruncationAndFlippedByteTerminates) {
  const std::string pickle = Pickle(Parse(R"({"segments": [{"device": 0, "address": 4096,
      "total_size": 4096, "stream": 0, "segment_pool_id": [0, 1], "is_expandable": true, "blocks": [
        {"address": 4096, "size": 4096, "requested_size": 1000, "state": "active_pending_free"}]}],
      "device_traces": [[
      {"action": "segment_map", "addr": 4096, "size": 4096, "stream": 0, "time_us": 1},
      {"action": "alloc", "addr": 4096, "size": 1000, "stream": 0, "time_us": 2,
       "frames": [{"name": "f", "filename": "m.py", "line": 3}]},
      {"action": "free_requested", "addr": 4096, "size": 1000, "stream": 0, "time_us": 3},
      {"action": "oom", "device_free": 5, "size": 1000, "stream": 0, "time_us": 3}]],
      "external_annotations": [{"name": "x", "stage": "START", "time_us": 15}],
      "allocator_settings": {"a": 1.5}})"));
  Record(pickle);
  ASSERT_TRUE(status_.ok()) << status_;
  for (size_t cut = 0; cut < pickle.size(); ++cut) {
    Record(pickle.substr(0, cut));
    EXPECT_FALSE(status_.ok()) << "cut at " << cut;
  }
  for (size_t at = 0; at < pickle.size(); ++at) {
    for (int byte : {0, 1, 2, 0x7f, 0x80, 0xff, 40, 46, 93, 104, pickle[at] ^ 1, pickle[at] ^ 64}) {
      std::string flipped = pickle;
      flipped[at] = static_cast<char>(byte);
      Record(flipped);
    }
  }
}

}  // namespace
}  // namespace gmt::interop
