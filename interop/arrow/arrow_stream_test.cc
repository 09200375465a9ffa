#include "interop/arrow/arrow_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <nanoarrow/hpp/unique.hpp>
#include <nanoarrow/nanoarrow_ipc.hpp>
#include <random>

#include "tests/seeds/seeds.h"

namespace gmt::interop {
namespace {

using ::testing::ElementsAre;

using TextRow = std::vector<std::string>;

// A table as nanoarrow reads it back, with values as text.
struct ReadTable {
  std::string name;
  TextRow columns;
  std::vector<TextRow> rows;
};

std::string TextOf(const ArrowArrayView* column, int64_t row) {
  if (ArrowArrayViewIsNull(column, row)) return "null";
  const int64_t value = ArrowArrayViewGetIntUnsafe(column, row);
  if (column->dictionary == nullptr) return std::to_string(value);
  const ArrowStringView text = ArrowArrayViewGetStringUnsafe(column->dictionary, value);
  return {text.data, static_cast<size_t>(text.size_bytes)};
}

ReadTable Read(const std::string& bytes) {
  ReadTable table;
  nanoarrow::UniqueBuffer buffer;
  EXPECT_EQ(ArrowBufferAppend(buffer.get(), bytes.data(), static_cast<int64_t>(bytes.size())), 0);
  nanoarrow::ipc::UniqueInputStream input;
  nanoarrow::UniqueArrayStream stream;
  EXPECT_EQ(ArrowIpcInputStreamInitBuffer(input.get(), buffer.get()), 0);
  EXPECT_EQ(ArrowIpcArrayStreamReaderInit(stream.get(), input.get(), nullptr), 0);
  nanoarrow::UniqueSchema schema;
  ArrowError error = {};
  EXPECT_EQ(ArrowArrayStreamGetSchema(stream.get(), schema.get(), &error), 0) << error.message;
  ArrowStringView name;
  EXPECT_EQ(ArrowMetadataGetValue(schema->metadata, ArrowCharView("table"), &name), 0);
  table.name.assign(name.data, static_cast<size_t>(name.size_bytes));
  for (int64_t i = 0; i < schema->n_children; ++i)
    table.columns.emplace_back(schema->children[i]->name);
  nanoarrow::UniqueArrayView view;
  EXPECT_EQ(ArrowArrayViewInitFromSchema(view.get(), schema.get(), &error), 0) << error.message;
  while (true) {
    nanoarrow::UniqueArray batch;
    EXPECT_EQ(ArrowArrayStreamGetNext(stream.get(), batch.get(), &error), 0) << error.message;
    if (batch->release == nullptr) return table;
    EXPECT_EQ(ArrowArrayViewSetArray(view.get(), batch.get(), &error), 0) << error.message;
    for (int64_t row = 0; row < batch->length; ++row) {
      table.rows.emplace_back();
      for (int64_t i = 0; i < schema->n_children; ++i)
        table.rows.back().push_back(TextOf(view->children[i], row));
    }
  }
}

TEST(ArrowStreamTest, RandomTablesAreReadBack) {
  ForEachSeed(SeedsUpTo(30), [](uint32_t seed) {
    std::mt19937 random(seed);
    const auto below = [&random](size_t n) { return random() % n; };
    const size_t count = 1 + below(6);
    std::deque<TextDictionary> texts(count);
    ReadTable wanted = {"t" + std::to_string(seed), {}, {}};
    std::vector<ArrowColumn> columns;
    for (size_t i = 0; i < count; ++i) {
      wanted.columns.push_back("column " + std::to_string(i));
      columns.push_back({wanted.columns.back(), below(2) == 0 ? &texts[i] : nullptr});
    }
    std::vector<std::vector<ArrowValues>> batches(below(4));
    for (auto& batch : batches) {
      batch.resize(count);
      const size_t rows = below(200);
      const size_t first = wanted.rows.size();
      wanted.rows.resize(first + rows, TextRow(count, "null"));
      for (size_t i = 0; i < count; ++i) {
        const bool has_nulls = below(2) == 0;
        for (size_t row = 0; row < rows; ++row) {
          const bool known = !has_nulls || below(3) != 0;
          int64_t value = static_cast<int64_t>(uint64_t{random()} << 32 | random());
          std::string text = std::to_string(value);
          if (columns[i].texts != nullptr) {
            text = std::string(below(40), 'x') + std::to_string(below(50));
            value = texts[i].NumberOf(text);
          }
          batch[i].values.push_back(known ? value : 0);
          batch[i].known.push_back(known ? 1 : 0);
          if (known) wanted.rows[first + row][i] = text;
        }
      }
    }
    std::string bytes;
    ArrowStream stream([&bytes](std::string_view piece) { bytes += piece; });
    ASSERT_TRUE(stream.Begin(wanted.name, columns).ok());
    for (const auto& batch : batches) ASSERT_TRUE(stream.WriteRows(batch).ok());
    stream.End();
    const ReadTable read = Read(bytes);
    EXPECT_EQ(read.name, wanted.name);
    EXPECT_EQ(read.columns, wanted.columns);
    EXPECT_EQ(read.rows, wanted.rows);
  });
}

TEST(TextDictionaryTest, EqualTextsHaveOneNumber) {
  const std::string lasting = "forward", same = "forward";
  TextDictionary texts;
  EXPECT_EQ(texts.NumberOf("backward"), 0);
  EXPECT_EQ(texts.NumberOfLasting(lasting), 1);
  EXPECT_EQ(texts.NumberOfLasting(same), 1);
  EXPECT_EQ(texts.NumberOf("for"), 2);
  EXPECT_EQ(texts.NumberOfLasting(std::string_view(lasting).substr(0, 3)), 2);
  EXPECT_EQ(texts.NumberOfLasting(lasting), 1);
  EXPECT_THAT(texts.texts(), ElementsAre("backward", "forward", "for"));
}

TEST(TextDictionaryTest, InvalidUtf8IsReplacedAndEqualReplacementsAreOneText) {
  TextDictionary texts;
  EXPECT_EQ(texts.NumberOf("a\xff"), 0);
  EXPECT_EQ(texts.NumberOf("a\xfe"), 0);
  EXPECT_EQ(texts.NumberOf("a\xff"), 0);
  EXPECT_EQ(texts.NumberOf("a\xef\xbf\xbd"), 0);
  EXPECT_EQ(texts.NumberOf("\xf0\x9f\x98\x80"), 1);
  EXPECT_THAT(texts.texts(), ElementsAre("a\xef\xbf\xbd", "\xf0\x9f\x98\x80"));
}

}  // namespace
}  // namespace gmt::interop
