#include "interop/pickle/pickle_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <sstream>

namespace gmt::interop {
namespace {

std::string Pickled(const std::function<void(PickleWriter&)>& write) {
  std::ostringstream out;
  PickleWriter pickle(out);
  write(pickle);
  pickle.Finish();
  return out.str();
}

std::string Bytes(std::initializer_list<int> bytes) {
  std::string text;
  for (int byte : bytes) text.push_back(static_cast<char>(byte));
  return text;
}

TEST(PickleWriter, IntegersTakeTheShortestForm) {
  const auto of = [](int64_t value) {
    const std::string all = Pickled([&](PickleWriter& p) { p.Int(value); });
    return all.substr(2, all.size() - 3);
  };
  EXPECT_EQ(of(7), Bytes({'K', 7}));
  EXPECT_EQ(of(0x1234), Bytes({'M', 0x34, 0x12}));
  EXPECT_EQ(of(-1), Bytes({'J', 0xff, 0xff, 0xff, 0xff}));
  EXPECT_EQ(of(INT64_C(0x7f0000000000)), Bytes({0x8a, 8, 0, 0, 0, 0, 0, 0x7f, 0, 0}));
}

TEST(PickleWriter, EqualStringsAreWrittenOnce) {
  const std::string all = Pickled([](PickleWriter& p) {
    p.BeginList();
    p.String("frames");
    p.String("frames");
    p.End();
  });
  EXPECT_EQ(all, Bytes({0x80, 2, ']', '(', 'X', 6, 0, 0, 0}) + "frames" +
                     Bytes({'q', 0, 'h', 0, 'e', '.'}));
}

TEST(PickleWriter, EmptyContainersHaveNoMark) {
  EXPECT_EQ(Pickled([](PickleWriter& p) {
              p.BeginDict();
              p.End();
            }),
            Bytes({0x80, 2, '}', '.'}));
}

TEST(PickleWriter, LongListsAreAppendedInBatches) {
  const std::string all = Pickled([](PickleWriter& p) {
    p.BeginList();
    for (uint32_t i = 0; i < 2 * PickleWriter::kBatch + 1; ++i) p.None();
    p.End();
  });
  EXPECT_EQ(std::count(all.begin(), all.end(), 'e'), 3);
  EXPECT_EQ(std::count(all.begin(), all.end(), '('), 3);
}

TEST(PickleWriter, RememberedContainerIsReferredTo) {
  const std::string all = Pickled([](PickleWriter& p) {
    p.BeginList();
    p.BeginList();
    const PickleWriter::Memo memo = p.Remember();
    p.End();
    p.Recall(memo);
    p.End();
  });
  EXPECT_EQ(all, Bytes({0x80, 2, ']', '(', ']', 'q', 0, 'h', 0, 'e', '.'}));
}

TEST(PickleWriter, InvalidUtf8IsReplaced) {
  for (const char* bad : {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82"}) {
    const std::string all = Pickled([&](PickleWriter& p) { p.String(bad); });
    EXPECT_NE(all.find("\xEF\xBF\xBD"), std::string::npos) << bad;
  }
  const std::string good = "gr\xc3\xb6\xc3\x9f\x65 \xe2\x82\xac \xf0\x9f\x98\x80";
  EXPECT_NE(Pickled([&](PickleWriter& p) { p.String(good); }).find(good), std::string::npos);
}

}  // namespace
}  // namespace gmt::interop
