#include "answers/diff/slope_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "analysis/testing/event_script.h"
#include "format/event.h"
#include "format/units.h"

namespace gmt::answers {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A run of a model: parameters, token ids that an embedding saves, and saved activations.
std::unique_ptr<Recording> RunWith(const std::string& path, uint64_t tokens) {
  analysis::EventScript script;
  const std::string length = std::to_string(tokens);
  const auto hold = [&](uint64_t address, uint64_t bytes, const char* function,
                        const std::string& dtype, const std::string& shape) {
    script.Tensor(script.Block(address, bytes, {function, "main"}), dtype, shape);
  };
  hold(0x10000000, 2 * kMiB, "build", "float32", "[512, 1024]");
  script.Role(0x10000000, format::kRoleParameter);
  hold(0x20000000, 4 * tokens * 8, "load", "int64", "[4, " + length + "]");
  script.Role(0x20000000, format::kRoleSaved, "EmbeddingBackward0");
  hold(0x30000000, 4 * tokens * 4096, "linear", "float32", "[4, " + length + ", 1024]");
  script.Role(0x30000000, format::kRoleSaved, "AddmmBackward0");
  hold(0x40000000, 4 * tokens * tokens * 16, "scores", "float32",
       "[4, " + length + ", " + length + "]");
  script.Role(0x40000000, format::kRoleSaved, "SoftmaxBackward0");
  return RecordingSoFar(path, script.Build(), script.definitions());
}

TEST(SlopeAnswerTest, PartsRowsAndTheNextCommandAreShown) {
  const auto small = RunWith("small.gmt", 128), large = RunWith("large.gmt", 256);
  const auto answer = SlopeAnswer::Make(*large, *small);
  ASSERT_TRUE(answer.ok()) << answer.status();
  Terminal terminal;
  terminal.width = 120;
  const std::string text = answer->Text(terminal);
  EXPECT_THAT(text, StartsWith("GPU 0: 5.00 MiB with 4 x 128 tokens, 10.0 MiB with 4 x 256 tokens\n"
                               "at the peaks, "));
  EXPECT_THAT(text, HasSubstr(" 2.00 MiB            -  constant\n"));
  EXPECT_THAT(text, HasSubstr(" 4.01 MiB     4.01 KiB  linear\n"));
  EXPECT_THAT(text,
              HasSubstr(" 4.00 MiB     4.00 KiB  quadratic   at 256 tokens; twice that at 512\n"));
  EXPECT_THAT(text, HasSubstr("\nattention: [4, 256, 256] of SoftmaxBackward0 (scores.py:10); "
                              "F.scaled_dot_product_attention keeps none of its 4.00 MiB\n"));
  EXPECT_THAT(text, HasSubstr("activations: linear (linear.py:10)   stack/"));
  EXPECT_THAT(text, HasSubstr("\nNext: gpumemtrace show large.gmt stack/"));
}

TEST(SlopeAnswerTest, TopLimitsTheRows) {
  const auto small = RunWith("small.gmt", 128), large = RunWith("large.gmt", 256);
  const auto answer = SlopeAnswer::Make(*small, *large);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->Text(Terminal{}, 1), HasSubstr("\n2 other stacks; --top N shows more\n"));
}

TEST(SlopeAnswerTest, JsonHasThePartsOfEveryRow) {
  const auto small = RunWith("small.gmt", 128), large = RunWith("large.gmt", 256);
  const auto answer = SlopeAnswer::Make(*small, *large);
  ASSERT_TRUE(answer.ok()) << answer.status();
  const auto json = nlohmann::json::parse(answer->Json());
  EXPECT_EQ(json["schema"], "gpumemtrace.slope/1");
  EXPECT_EQ(json["file"], "large.gmt");
  EXPECT_EQ(json["base_file"], "small.gmt");
  const auto& device = json["devices"][0];
  EXPECT_EQ(device["unit"], "token");
  uint64_t linear = 0, quadratic = 0;
  for (const auto& row : device["rows"]) {
    linear += row["linear_bytes"].get<uint64_t>();
    quadratic += row["quadratic_bytes"].get<uint64_t>();
  }
  EXPECT_EQ(device["linear_bytes"], linear);
  EXPECT_EQ(device["quadratic_bytes"], quadratic);
  EXPECT_EQ(device["square_bytes"], 4 * kMiB);
}

}  // namespace
}  // namespace gmt::answers
