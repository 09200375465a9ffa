#include "answers/report/report_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/testing/event_script.h"
#include "answers/testing/written_bytes.h"
#include "format/units.h"

namespace gmt::answers {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ReportTextTest : public ::testing::Test {
 protected:
  analysis::Report Report(analysis::ReportOptions options = {},
                          const symbols::FrameRules& rules = symbols::FrameRules::BuiltIn()) {
    trace_ = script_.Build();
    const analysis::Examination examination(trace_, script_.definitions(), rules);
    return analysis::MakeReport(examination, options).value();
  }
  std::string Text(size_t top = 10, const std::vector<std::string>& lacks = {}) {
    return ReportText(Report(), lacks, top, FramesShown::kFolded, Terminal{});
  }
  // Adds up the printed table: expects that the rows add up to "total", within the precision of
  // three digits.
  static void ExpectAddsUp(const std::string& text) {
    std::istringstream lines(text);
    double rows = 0, shares = 0, count = 0;
    bool in_table = false;
    int tables = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.find("bytes  share") != std::string::npos) {
        rows = shares = count = 0, in_table = true;
        continue;
      }
      if (const size_t tiny = line.find("<1 %"); tiny != std::string::npos)
        line.replace(tiny, 2, " 0");
      std::istringstream words(line);
      double number = 0, share = 0, pieces = 0;
      std::string unit, percent;
      if (!in_table || !(words >> number >> unit >> share >> percent >> pieces)) continue;
      if (line.size() > 5 && line.substr(line.size() - 5) == "total") {
        const double total = BytesOf(number, unit);
        EXPECT_NEAR(rows, total, total * 0.02 + 1) << text;
        EXPECT_NEAR(shares, 100, 8) << text;
        EXPECT_EQ(count, pieces) << text;
        in_table = false;
        ++tables;
      }
      rows += BytesOf(number, unit), shares += share, count += pieces;
    }
    EXPECT_GT(tables, 0) << text;
  }

  analysis::EventScript script_;
  analysis::Trace trace_;
};

TEST_F(ReportTextTest, FirstLineHasPeakDeviceTimeAndStacks) {
  script_.Alloc(0x10000000, 3 * kMiB, {"load", "main"});
  script_.Alloc(0x20000000, kMiB, {"step", "main"});
  EXPECT_THAT(Text(), StartsWith("peak 4.00 MiB on GPU 0 at 2.00 ms, 100 % from 2 stacks\n"));
}

TEST_F(ReportTextTest, FirstLineHasTheAllocatedPeakAndDriverMemory) {
  script_.Alloc(0x100000000, 8 * kMiB, {"load"});  // a segment
  script_.Block(0x100000000, 5 * kMiB, {"forward", "main"});
  script_.Block(0x100000000 + 5 * kMiB, kMiB);  // no stack
  script_.FreeBlock(0x100000000);
  script_.Alloc(0x200000000, 2 * kMiB, {"load"});  // the driver's peak is here
  script_.Block(0x200000000, kMiB, {"backward", "main"});
  const std::string text = Text();
  EXPECT_THAT(text, StartsWith("peak 6.00 MiB allocated on GPU 0 at 3.00 ms, 83 % from 1 "
                               "stack; up to 10.0 MiB taken from the driver\n"));
  const auto json = nlohmann::json::parse(ReportJson(Report(), {"run.gmt"}, 10));
  EXPECT_EQ(json["devices"][0]["peak_allocated_bytes"], 6 * kMiB);
  EXPECT_EQ(json["devices"][0]["allocated_bytes"], 6 * kMiB);
  EXPECT_EQ(json["devices"][0]["bytes"], 8 * kMiB);
  EXPECT_EQ(json["devices"][0]["peak_bytes"], 10 * kMiB);
}

TEST_F(ReportTextTest, NoPeakIsClaimedIfNothingWasAllocatedSinceTheRecordingBegan) {
  analysis::ReportDevice device;
  device.at.name = "peak";
  device.bytes = device.peak_bytes = 6 * kMiB;
  device.allocated_bytes = device.peak_allocated_bytes = 4 * kMiB;
  device.heaps.emplace_back().heap = "pytorch";
  analysis::Report report;
  report.devices = {device};
  EXPECT_THAT(ReportText(report, {}, 10, FramesShown::kFolded, Terminal{}),
              StartsWith("live 4.00 MiB allocated on GPU 0; 6.00 MiB taken from the driver; "
                         "earlier use is not known\n"));
  report.devices[0].at.t_ns = 5;  // the beginning of a window
  EXPECT_THAT(ReportText(report, {}, 10, FramesShown::kFolded, Terminal{}),
              StartsWith("peak 4.00"));
  report.devices[0].at.t_ns = 0;
  report.devices[0].heaps[0].allocations = 1;
  EXPECT_THAT(ReportText(report, {}, 10, FramesShown::kFolded, Terminal{}),
              StartsWith("peak 4.00 MiB allocated on GPU 0; up to 6.00 MiB"));
}

TEST_F(ReportTextTest, OtherMomentsAreCalledLive) {
  script_.Alloc(0x10000000, 3 * kMiB, {"load"});
  analysis::ReportOptions options;
  options.at = *analysis::ParseAt("end");
  EXPECT_THAT(ReportText(Report(options), {}, 10, FramesShown::kFolded, Terminal{}),
              StartsWith("live 3.00 MiB on GPU 0 at end (1.00 ms)"));
}

TEST_F(ReportTextTest, TablesAddUpWithManyRowsOthersAndUnknown) {
  for (uint64_t i = 1; i <= 40; ++i) {
    script_.Alloc(i << 32, i * 100'003, {"f" + std::to_string(i), "main"}).device = i % 2;
  }
  script_.Alloc(uint64_t{99} << 32, kMiB);
  script_.Pinned(0x5000, 12345);
  ExpectAddsUp(Text(10));
  ExpectAddsUp(Text(1));
  ExpectAddsUp(Text(1000));
}

TEST_F(ReportTextTest, TablesAddUpWithBlocksInSegments) {
  script_.Alloc(uint64_t{1} << 32, 20 * kMiB, {"segment"});
  script_.Block(uint64_t{1} << 32, 5 * kMiB, {"forward"});
  script_.Block((uint64_t{1} << 32) + 5 * kMiB, 3 * kMiB);
  const std::string text = Text();
  ExpectAddsUp(text);
  EXPECT_THAT(text, HasSubstr("pytorch: live 8.00 MiB"));
  EXPECT_THAT(text, HasSubstr("reserved 20.0 MiB"));
}

TEST_F(ReportTextTest, RowHasLineCallersAndId) {
  script_.Alloc(0x1000, kMiB, {"cudaMalloc", "load", "main"});
  const std::string id = "stack/" + std::to_string(script_.Stack({"cudaMalloc", "load", "main"}));
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("load (load.py:10)   " + id));
  EXPECT_THAT(text, HasSubstr("< main (main.py:10)"));
  EXPECT_THAT(text, Not(HasSubstr("cudaMalloc")));
}

class MergedStackTest : public ReportTextTest {
 protected:
  void Native(const std::string& function, const std::string& module) {
    format::FrameInfo frame;
    frame.function = script_.builder().InternString(function);
    frame.module_name = script_.builder().InternString(module);
    frame.language = format::Language::kCxx;
    frames_.push_back(script_.builder().InternFrame(frame));
  }
  void Python(const std::string& function, const std::string& file, uint32_t line) {
    format::FrameInfo frame;
    frame.function = script_.builder().InternString(function);
    frame.file = script_.builder().InternString(file);
    frame.line = line;
    frame.language = format::Language::kPython;
    frames_.push_back(script_.builder().InternFrame(frame));
  }
  // A linear layer inside a module, as PyTorch calls it.
  void Linear() {
    Native("cudaMalloc", "/opt/libcudart.so.13");
    Native("c10::cuda::CUDACachingAllocator::malloc(unsigned long)", "/t/libc10_cuda.so");
    Native("at::_ops::addmm::call(at::Tensor const&)", "/t/libtorch_cpu.so");
    Native("at::native::linear(at::Tensor const&)", "/t/libtorch_cpu.so");
    Native("torch::autograd::THPVariable_linear(_object*)", "/t/libtorch_python.so");
    Native("", "/usr/bin/python3.11");
    Python("Linear.forward", "/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", 134);
    Python("Module._call_impl", "/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", 9);
    Native("", "/usr/bin/python3.11");
    Python("Net.forward", "/home/me/model.py", 88);
    Python("Module._call_impl", "/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", 9);
    Python("main", "/home/me/train.py", 40);
    Python("<module>", "/home/me/train.py", 90);
    Native("__libc_start_main", "/lib/libc.so.6");
    script_.Alloc(0x1000, kMiB).stack = script_.builder().InternStack(frames_, false);
  }

  std::vector<uint32_t> frames_;
};

TEST_F(MergedStackTest, RowLeadsWithTheProgramsOwnLineAndTheOperator) {
  Linear();
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr(" Net.forward (model.py:88) > at::native::linear   stack/"));
  EXPECT_THAT(text, HasSubstr("\n                                    < main (train.py:40)\n"
                              "                                    < <module> (train.py:90)\n"));
  EXPECT_THAT(text, Not(HasSubstr("_call_impl")));
  EXPECT_THAT(text, Not(HasSubstr("python3.11")));
}

TEST_F(MergedStackTest, RawFramesShowsEveryFrame) {
  Linear();
  const std::string text = ReportText(Report(), {}, 10, FramesShown::kRaw, Terminal{});
  EXPECT_THAT(text, HasSubstr(" cudaMalloc   stack/"));
  EXPECT_THAT(text, HasSubstr("< python3.11\n"));
  EXPECT_THAT(text, HasSubstr("< Module._call_impl (module.py:9)\n"));
  EXPECT_THAT(text, HasSubstr("< __libc_start_main\n"));
}

TEST_F(MergedStackTest, JsonHasEveryFrameWithItsRole) {
  Linear();
  const auto json = nlohmann::json::parse(ReportJson(Report(), {"run.gmt"}, 10));
  const auto& frames = json["rows"][0]["frames"];
  ASSERT_EQ(frames.size(), 14u);
  EXPECT_EQ(frames[0]["role"], "cuda");
  EXPECT_EQ(frames[3]["role"], "library");
  EXPECT_EQ(frames[5]["role"], "interpreter");
  EXPECT_EQ(frames[9]["role"], "own");
  EXPECT_EQ(frames[9]["language"], "python");
}

TEST_F(MergedStackTest, UserRulesDecideTheLeadingFrame) {
  Linear();
  const auto rules = symbols::FrameRules::Parse("own file=*/torch/nn/*", "mine");
  analysis::ReportOptions options;
  EXPECT_THAT(ReportText(Report(options, *rules), {}, 10, FramesShown::kFolded, Terminal{}),
              HasSubstr(" Linear.forward (linear.py:134)"));
  options.by = analysis::GroupBy::kFunction;
  EXPECT_EQ(Report(options).rows[0].label, "Net.forward (model.py)");
  options.by = analysis::GroupBy::kFile;
  EXPECT_EQ(Report(options).rows[0].label, "/home/me/model.py");
}

TEST_F(MergedStackTest, NativeProgramShowsItsOwnFrameBeforeTheLibrary) {
  Native("cublasCreate_v2", "/opt/libcublas.so.13");
  Native("serve(int)", "/opt/server");
  Native("main", "/opt/server");
  script_.Alloc(0x1000, kMiB).stack = script_.builder().InternStack(frames_, false);
  EXPECT_THAT(Text(), HasSubstr(" serve(int) > cublasCreate_v2   stack/"));
  EXPECT_THAT(Text(), HasSubstr("  < main\n"));
}

TEST_F(ReportTextTest, NotKnownSectionIsAtTheEnd) {
  script_.Alloc(0x1000, kMiB);
  const std::string text = Text(10, {"3 events lost"});
  EXPECT_THAT(text, HasSubstr("no stack was recorded"));
  EXPECT_THAT(text, HasSubstr("\nNot known\n  1.00 MiB without a stack\n  3 events lost\n"));
}

TEST_F(ReportTextTest, EmptyRecordingSaysSo) {
  EXPECT_THAT(Text(), StartsWith("no memory was held"));
}

TEST_F(ReportTextTest, JsonHasTheSchemaFirstAndIntegerBytes) {
  script_.Alloc(0x1000, kMiB, {"load", "main"});
  script_.Pinned(0x5000, 100);
  const std::string text = ReportJson(Report(), {"run.gmt"}, 10);
  EXPECT_THAT(text, StartsWith(R"({"schema":"gpumemtrace.report/1","file":"run.gmt")"));
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["devices"][0]["heaps"][0]["peak_live_bytes"], kMiB);
  EXPECT_TRUE(json["devices"][0]["heaps"][0]["reserved_bytes"].is_null());
  EXPECT_TRUE(json["devices"][1]["index"].is_null());
  EXPECT_EQ(json["rows"][0]["frames"][0]["function"], "load");
  EXPECT_EQ(json["rows"][0]["frames"][0]["line"], 10);
  EXPECT_EQ(json["unknown_bytes"], 100);
}

TEST_F(ReportTextTest, JsonSumsUpRowsBeyondTop) {
  for (uint64_t i = 1; i <= 5; ++i) script_.Alloc(i << 32, i, {"f" + std::to_string(i)});
  const auto json = nlohmann::json::parse(ReportJson(Report(), {"run.gmt"}, 2));
  EXPECT_EQ(json["rows"].size(), 2u);
  EXPECT_EQ(json["other_rows"]["rows"], 3);
  EXPECT_EQ(json["other_rows"]["bytes"], 1 + 2 + 3);
}

TEST_F(ReportTextTest, InvalidUtf8IsStillValidJson) {
  script_.Alloc(0x1000, kMiB, {"\xff\xfe"});
  EXPECT_TRUE(nlohmann::json::accept(ReportJson(Report(), {"run.gmt"}, 10)));
}

}  // namespace
}  // namespace gmt::answers
