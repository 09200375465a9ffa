#include "symbols/python_lines.h"

#include <glob.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace gmt::symbols {
namespace {

using enum PythonLineTable;

// Returns bytes as written by the interpreter.
std::string Table(std::initializer_list<int> bytes) {
  return std::string(bytes.begin(), bytes.end());
}

std::vector<uint32_t> Lines(PythonLineTable format, uint32_t first, const std::string& table,
                            uint32_t units) {
  std::vector<uint32_t> lines;
  for (uint32_t unit = 0; unit < units; ++unit) {
    lines.push_back(PythonLine(format, first, table, unit));
  }
  return lines;
}

using Expected = std::vector<uint32_t>;

TEST(PythonLines, LnotabAdvancesAfterTheCodeOfALine) {
  // 4 bytes of line 10, 2 of line 11, then line 8 to the end.
  const std::string table = Table({0, 0, 4, 1, 2, -3});
  EXPECT_EQ(Lines(kLnotab39, 10, table, 5), (Expected{10, 10, 11, 8, 8}));
}

TEST(PythonLines, LnotabAddsUpStepsTooLargeForOnePair) {
  const std::string table = Table({255, 0, 1, 127, 0, 73, 2, 1});
  EXPECT_EQ(PythonLine(kLnotab39, 1, table, 127), 1u);
  EXPECT_EQ(PythonLine(kLnotab39, 1, table, 128), 201u);
  EXPECT_EQ(PythonLine(kLnotab39, 1, table, 129), 202u);
}

TEST(PythonLines, EmptyLnotabIsCodeOfOneLine) { EXPECT_EQ(PythonLine(kLnotab39, 7, "", 3), 7u); }

TEST(PythonLines, LineTableTakesTheLineBeforeTheCode) {
  const std::string table = Table({4, 1, 2, 3, 2, -128, 2, -1});
  EXPECT_EQ(Lines(kLineTable310, 10, table, 6), (Expected{11, 11, 14, 0, 13, 0}));
}

TEST(PythonLines, LineTablePairsWithoutCodeOnlyMoveTheLine) {
  const std::string table = Table({0, 127, 0, 127, 2, 6});
  EXPECT_EQ(Lines(kLineTable310, 40, table, 2), (Expected{300, 0}));
}

TEST(PythonLines, LocationsOfEveryKind) {
  const std::string table = Table({
      0x80 | (0 << 3) | 1,  0x12,                 // short form: line 20, 2 units
      0x80 | (11 << 3) | 0, 0x05, 0x09,           // one line further
      0x80 | (12 << 3) | 0, 0x05, 0x09,           // two lines further
      0x80 | (13 << 3) | 1, 0x07,                 // line only: -3, 2 units
      0x80 | (15 << 3) | 0,                       // no location
      0x80 | (14 << 3) | 0, 0x48, 0x03, 1, 3, 4,  // long form: 200 in two bytes, +100
      0x80 | (10 << 3) | 0, 0x05, 0x09,           // the same line
  });
  EXPECT_EQ(Lines(kLocations311, 20, table, 10),
            (Expected{20, 20, 21, 23, 20, 20, 0, 120, 120, 0}));
}

TEST(PythonLines, TruncatedTableGivesNoLineForTheMissingPart) {
  const std::string pairs = Table({4, 1, 2});
  EXPECT_EQ(Lines(kLineTable310, 10, pairs, 3), (Expected{11, 11, 0}));
  EXPECT_EQ(PythonLine(kLnotab39, 10, pairs, 0), 0u);
  const std::string locations = Table({0x80 | (13 << 3), 0x02, 0x80 | (13 << 3), 0x48});
  EXPECT_EQ(Lines(kLocations311, 10, locations, 3), (Expected{11, 0, 0}));
}

TEST(PythonLines, DamagedTableGivesNoLine) {
  EXPECT_EQ(PythonLine(kLocations311, 10, Table({0x12, 0x80}), 0), 0u);
  // A number truncated by the next entry, and one that never ends.
  EXPECT_EQ(PythonLine(kLocations311, 10, Table({0xe8, 0x7f, 0x80, 1}), 0), 0u);
  EXPECT_EQ(PythonLine(kLocations311, 10, '\xe8' + std::string(30, '\x7f'), 0), 0u);
  EXPECT_EQ(PythonLine(kLnotab39, 10, Table({0, -11}), 0), 0u);  // a line before the file
  EXPECT_EQ(PythonLine(kLineTable310, UINT32_MAX, Table({2, 1}), 0), 0u);
  for (PythonLineTable format : {kLineTable310, kLocations311}) {
    EXPECT_EQ(PythonLine(format, 10, "", 0), 0u);
    EXPECT_EQ(PythonLine(format, 10, Table({0x80, 0}), UINT32_MAX), 0u);
  }
}

// Returns the interpreters of this machine with version 3.8 or later.
std::vector<std::string> Interpreters() {
  std::vector<std::string> found = {"/usr/bin/python3"};
  const char* home = getenv("HOME");
  glob_t matches;
  const std::string versions =
      std::string(home == nullptr ? "" : home) + "/.pyenv/versions/*/bin/python3";
  if (glob(versions.c_str(), 0, nullptr, &matches) == 0) {
    found.insert(found.end(), matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  }
  globfree(&matches);
  std::erase_if(found, [](const std::string& python) {
    const std::string ask =
        python + " -c 'import sys, ctypes; sys.exit(sys.version_info < (3, 8))' 2>/dev/null";
    return system(ask.c_str()) != 0;
  });
  return found;
}

struct Answers {
  uint64_t code_objects = 0, instructions = 0, differences = 0;
};

bool ReadExactly(FILE* from, void* to, size_t bytes) { return fread(to, 1, bytes, from) == bytes; }

Answers Compare(const std::string& python, const std::string& step) {
  struct Head {
    uint32_t format, first_line, table_bytes, units;
  } head;
  Answers answers;
  const std::string command =
      python + " -I " + GMT_SYMBOLS_SOURCE + "/testdata/python_lines.py " + step;
  FILE* pipe = popen(command.c_str(), "r");
  while (ReadExactly(pipe, &head, sizeof(head))) {
    std::string table(head.table_bytes, '\0');
    std::vector<uint32_t> lines(head.units);
    if (!ReadExactly(pipe, table.data(), table.size()) ||
        !ReadExactly(pipe, lines.data(), lines.size() * sizeof(uint32_t))) {
      break;
    }
    for (uint32_t unit = 0; unit < head.units; ++unit) {
      const uint32_t line =
          PythonLine(static_cast<PythonLineTable>(head.format), head.first_line, table, unit);
      answers.differences += line != lines[unit];
    }
    ++answers.code_objects;
    answers.instructions += head.units;
  }
  EXPECT_EQ(pclose(pipe), 0) << command;
  return answers;
}

TEST(PythonLines, EveryInterpreterHereAgreesAboutItsStandardLibrary) {
  const std::vector<std::string> pythons = Interpreters();
  if (pythons.empty()) GTEST_SKIP() << "there is no Python 3.8 or later";
  const char* longer = getenv("GMT_TEST_SECONDS");  // if set, the whole library
  for (const std::string& python : pythons) {
    const Answers answers = Compare(python, longer == nullptr ? "80" : "1");
    std::printf("%s: %lu code objects, %lu instructions\n", python.c_str(), answers.code_objects,
                answers.instructions);
    EXPECT_EQ(answers.differences, 0u) << python;
    EXPECT_GT(answers.instructions, 30000u) << python;
  }
}

}  // namespace
}  // namespace gmt::symbols
