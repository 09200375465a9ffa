// Tests the checks that must reject an unsuitable interpreter, with handmade objects. Walks of real
// ones: preload/stacks/python/testing/oracle_check.py.

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "preload/stacks/python/code_identity.h"
#include "preload/stacks/python/code_object.h"
#include "preload/stacks/python/readable.h"
#include "session/testing/session_fixture.h"

namespace gmt::preload {
namespace {

using session::LineTable;

// The beginning of _PyRuntime, for a build with the usual offsets.
std::vector<uint64_t> DebugOffsets(int minor) {
  std::vector<uint64_t> words(128);
  words[kCookieWord] = kDebugCookie;
  words[kVersionWord] = 0x030000f0 | static_cast<uint64_t>(minor) << 16;
  const Layout usual = UsualLayout(minor);
  for (const DebugRow& row : kDebugLayouts) {
    const uint8_t word = row.words[minor - kFirstDebugMinor];
    if (word != 0) words[word] = usual.*row.field;
  }
  return words;
}

bool operator==(const Layout& a, const Layout& b) { return memcmp(&a, &b, sizeof(a)) == 0; }

TEST(LayoutTest, PublishedOffsetsAreUsed) {
  for (int minor = kFirstDebugMinor; minor <= kLastMinor; ++minor) {
    std::vector<uint64_t> words = DebugOffsets(minor);
    Layout layout;
    ASSERT_TRUE(FindLayout(minor, words.data(), &layout));
    EXPECT_TRUE(layout == UsualLayout(minor)) << "3." << minor;
    words[kDebugLayouts[2].words[minor - kFirstDebugMinor]] += 16;
    ASSERT_TRUE(FindLayout(minor, words.data(), &layout));
    EXPECT_EQ(layout.thread_frame, UsualLayout(minor).thread_frame + 16);
  }
}

TEST(LayoutTest, UnknownVersionsAreRefused) {
  Layout layout;
  const std::vector<uint64_t> words = DebugOffsets(kLastMinor);
  EXPECT_FALSE(FindLayout(kFirstMinor - 1, words.data(), &layout));
  EXPECT_FALSE(FindLayout(kLastMinor + 1, words.data(), &layout));
}

TEST(LayoutTest, ImpossibleOffsetsAreRefused) {
  const auto refused = [](uint32_t word, uint64_t value) {
    std::vector<uint64_t> words = DebugOffsets(14);
    words[word] = value;
    Layout layout;
    return !FindLayout(14, words.data(), &layout);
  };
  EXPECT_TRUE(refused(kCookieWord, kDebugCookie + 1));
  EXPECT_TRUE(refused(kVersionWord, 0x030d00f0)) << "of another version";
  EXPECT_TRUE(refused(kFreeThreadedWord, 2));
  EXPECT_TRUE(refused(kDebugLayouts[2].words[1], 1 << 20)) << "an offset of a megabyte";
  Layout layout;
  EXPECT_FALSE(FindLayout(14, nullptr, &layout));
}

TEST(LayoutTest, OnlyFreeThreadedBuildsHaveCopiesOfTheBytecode) {
  std::vector<uint64_t> words = DebugOffsets(14);
  words[38] = 72;   // tlbc_index
  words[49] = 200;  // co_tlbc
  Layout layout;
  ASSERT_TRUE(FindLayout(14, words.data(), &layout));
  EXPECT_EQ(layout.code_tlbc, 0);
  words[kFreeThreadedWord] = 1;
  ASSERT_TRUE(FindLayout(14, words.data(), &layout));
  EXPECT_EQ(layout.code_tlbc, 200);
  EXPECT_EQ(layout.frame_tlbc, 72);
  EXPECT_EQ(layout.code_traceable, 200 - 16);
  EXPECT_EQ(layout.text_kind_shift, 8);
}

TEST(CarefulReaderTest, ReadsOnlyMappedMemory) {
  const auto page = static_cast<size_t>(getpagesize());
  char* pages = static_cast<char*>(
      mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(mprotect(pages + page, page, PROT_NONE), 0);
  const auto at = reinterpret_cast<uint64_t>(pages);
  memset(pages, 7, page);
  CarefulReader reader;
  uint64_t word;
  uint8_t byte;
  errno = EDOM;
  EXPECT_TRUE(reader.Read(at + page - 8, &word));
  EXPECT_EQ(word, 0x0707070707070707u);
  EXPECT_TRUE(reader.Read(at + page - 1, &byte));
  EXPECT_FALSE(reader.Read(at + page - 4, &word)) << "across the end";
  EXPECT_FALSE(reader.Read(at + page, &byte));
  EXPECT_FALSE(reader.Read(at + 2 * page - 1, &byte));
  EXPECT_TRUE(reader.Read(at + 2 * page, &byte));
  EXPECT_FALSE(reader.Read(0, &word));
  EXPECT_FALSE(reader.Read(8, &word));
  EXPECT_FALSE(reader.Read(~uint64_t{0} - 3, &word));
  EXPECT_FALSE(reader.Read(uint64_t{1} << 63, &word)) << "no address at all";
  EXPECT_EQ(errno, EDOM);
  munmap(pages, 3 * page);
}

// A code object of Python 3.11 and what it refers to, in our own memory.
class MadeCode {
 public:
  MadeCode() : layout_(UsualLayout(11)) {
    Put(code_, layout_.code_name, Address(name_));
    Put(code_, layout_.code_short_name, Address(name_));
    Put(code_, layout_.code_file, Address(file_));
    Put(code_, layout_.code_line_table, Address(table_));
  }

  MadeCode& Named(const std::string& name) { return PutText(name, name_); }
  MadeCode& In(const std::string& file) { return PutText(file, file_); }
  MadeCode& From(uint32_t line) {
    memcpy(code_.data() + layout_.code_first_line, &line, sizeof(line));
    return *this;
  }
  MadeCode& WithTable(const std::string& table) {
    Put(table_, layout_.object_size, table.size());
    memcpy(table_.data() + layout_.bytes_data, table.data(), table.size());
    return *this;
  }
  uint64_t address() const { return Address(code_); }
  const Layout& layout() const { return layout_; }

 private:
  using Memory = std::vector<char>;
  static uint64_t Address(const Memory& memory) {
    return reinterpret_cast<uint64_t>(memory.data());
  }
  static void Put(Memory& memory, uint16_t offset, uint64_t word) {
    memcpy(memory.data() + offset, &word, sizeof(word));
  }
  MadeCode& PutText(const std::string& ascii, Memory& memory) {
    constexpr uint64_t kCompactAscii = 1 << 2 | 1 << 5 | 1 << 6;
    Put(memory, layout_.text_length, ascii.size());
    Put(memory, layout_.text_state, kCompactAscii);
    memcpy(memory.data() + layout_.ascii_text, ascii.c_str(), ascii.size() + 1);
    return *this;
  }

  const Layout layout_;
  Memory code_ = Memory(256), name_ = Memory(512), file_ = Memory(512), table_ = Memory(512);
};

uint64_t IdentityOf(const MadeCode& code) {
  return CodeIdentity::Find(code.address(), CodeIdentity::Generation(), code.layout());
}

TEST(CodeIdentityTest, DependsOnTheContentsOnly) {
  MadeCode code, same;
  code.Named("f").In("a.py").From(3).WithTable("\x80\x01\x02");
  same.Named("f").In("a.py").From(3).WithTable("\x80\x01\x02");
  const uint64_t identity = IdentityOf(code);
  EXPECT_EQ(IdentityOf(code), identity);
  EXPECT_EQ(IdentityOf(same), identity) << "independent of its address";
  EXPECT_NE(IdentityOf(code.Named("g")), identity);
  EXPECT_NE(IdentityOf(code.Named("f").In("b.py")), identity);
  EXPECT_NE(IdentityOf(code.In("a.py").From(4)), identity);
  EXPECT_NE(IdentityOf(code.From(3).WithTable("\x80\x01\x03")), identity);
  EXPECT_EQ(IdentityOf(code.WithTable("\x80\x01\x02")), identity);
}

TEST(CodeIdentityTest, IsReadOncePerGeneration) {
  MadeCode code;
  code.Named("f").In("a.py").From(3).WithTable("\x80");
  constexpr uint64_t kGeneration = 12345, kLater = 54321;
  const uint64_t before = CodeIdentity::Find(code.address(), kGeneration, code.layout());
  code.Named("g");
  EXPECT_EQ(CodeIdentity::Find(code.address(), kGeneration, code.layout()), before);
  EXPECT_NE(CodeIdentity::Find(code.address(), kLater, code.layout()), before);
}

TEST(CodeIdentityTest, ThreadsNeverGetAnotherCodesIdentity) {
  // Two code objects that share a slot of the table: their addresses differ by its size.
  constexpr size_t kApart = 4096 * 16;
  std::vector<char> memory(4 * kApart);
  MadeCode made[2];
  made[0].Named("f").In("a.py").From(1).WithTable("\x80");
  made[1].Named("g").In("a.py").From(1).WithTable("\x80");
  const uint64_t first = (reinterpret_cast<uint64_t>(memory.data()) + 15) / 16 * 16;
  uint64_t addresses[2], identities[2];
  for (int i = 0; i < 2; ++i) {
    addresses[i] = first + static_cast<uint64_t>(i) * kApart;
    memcpy(reinterpret_cast<void*>(addresses[i]), reinterpret_cast<void*>(made[i].address()), 256);
    identities[i] = CodeIdentity::Find(addresses[i], 1, made[i].layout());
  }
  ASSERT_NE(identities[0], identities[1]);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 100000; ++round) {
        const int i = (round + t) % 2;
        if (CodeIdentity::Find(addresses[i], 1, made[i].layout()) != identities[i]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(CodeObjectTest, OtherObjectsAreNotCodeObjects) {
  Interpreter none;  // all its types are at address 0
  none.UseLayout(UsualLayout(11));
  std::vector<uint64_t> object(64, 1);
  CodeView view;
  EXPECT_FALSE(ReadCode(none, 0, &view));
  EXPECT_FALSE(ReadCode(none, reinterpret_cast<uint64_t>(object.data()), &view));
  char buffer[16];
  EXPECT_EQ(ReadText(none, reinterpret_cast<uint64_t>(object.data()), buffer, sizeof(buffer)), "");
}

TEST(InterpreterTest, ProcessesWithoutPythonHaveNone) {
  Interpreter python;
  EXPECT_STREQ(python.status(), "no Python in this process");
  python.Find();
  EXPECT_FALSE(python.on());
  EXPECT_STREQ(python.status(), "no Python in this process");
  EXPECT_STREQ(python.version(), "");
  EXPECT_EQ(python.CurrentThread().state, 0u);
  EXPECT_FALSE(python.CurrentThread().unreadable);
  EXPECT_TRUE(python.CompareOnce());
}

}  // namespace
}  // namespace gmt::preload
