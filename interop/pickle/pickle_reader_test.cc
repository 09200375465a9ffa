// Reads Python's own pickles, every opcode, and malicious files.

#include "interop/pickle/pickle_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "interop/pickle/pickle_json.h"
#include "tests/seeds/seeds.h"

namespace gmt::interop {
namespace {

using std::string_literals::operator""s;
using testing::HasSubstr;
using testing::StartsWith;

constexpr PickleLimits kSmall = {.bytes = 64 << 20, .memory = 256 << 20};

struct Outcome {
  absl::Status status;
  std::string json;
};

Outcome Read(const std::string& bytes, const PickleLimits& limits = kSmall) {
  auto stream = StreamOf(format::BytesInMemory(bytes), "x.pickle");
  PickleTree tree;
  const absl::StatusOr<PickleValue> value = ReadPickle(*stream, "x.pickle", limits, &tree);
  if (!value.ok()) return {value.status(), ""};
  return {absl::OkStatus(), JsonText(tree, *value)};
}

std::string ErrorOf(const std::string& bytes, const PickleLimits& limits = kSmall) {
  const Outcome outcome = Read(bytes, limits);
  EXPECT_FALSE(outcome.status.ok()) << outcome.json;
  return std::string(outcome.status.message());
}

// Returns the JSON of opcodes after PROTO.
std::string JsonOfOps(const std::string& opcodes) {
  const Outcome outcome = Read("\x80\x04" + opcodes + ".");
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  return outcome.json;
}
std::string ErrorOfOps(const std::string& opcodes) { return ErrorOf("\x80\x04" + opcodes + "."); }

std::string Gzip(const std::string& bytes) {
  z_stream state = {};
  EXPECT_EQ(deflateInit2(&state, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&state, bytes.size()), '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  state.avail_in = static_cast<uInt>(bytes.size());
  state.next_out = reinterpret_cast<Bytef*>(packed.data());
  state.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&state, Z_FINISH), Z_STREAM_END);
  packed.resize(state.total_out);
  deflateEnd(&state);
  return packed;
}

std::string OutputOf(const std::string& command) {
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  char buffer[4096];
  for (size_t n; pipe != nullptr && (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
    output.append(buffer, n);
  EXPECT_EQ(pipe == nullptr ? -1 : pclose(pipe), 0) << command;
  return output;
}

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

// ---- Python's own -------------------------------------------------------------------------------

// Python writes random values in every protocol, and their JSON.
TEST(PickleReaderTest, ReadsWhatPythonWrites) {
  const std::string program = R"(
import json, pickle, random, sys
r = random.Random(int(sys.argv[1]))
shared = [{"name": "f%d" % i, "filename": "model.py", "line": i} for i in range(9)]
left = 0
def value(depth):
    global left
    left -= 1
    kind = r.randrange(11 if depth < 5 and left > 0 else 8)
    if kind == 0: return None
    if kind == 1: return r.random() < .5
    if kind == 2: return r.randrange(-2**r.randrange(1, 64), 2**r.randrange(1, 64))
    if kind == 3: return r.uniform(-1e9, 1e9)
    if kind == 4: return "".join(r.choice("ab\u00e9\u6f22\U0001f600\n\"") for _ in range(r.randrange(9)))
    if kind == 5: return r.choice(shared)
    if kind == 6: return "x" * (r.choice([255, 256, 70000]) if left % 50 == 0 else 7)
    if kind == 7: return r.randrange(2**62, 2**63)
    if kind == 8: return [value(depth + 1) for _ in range(r.choice([0, 1, 2, 5, 1001]) if depth < 2 else 2)]
    if kind == 9: return tuple(value(depth + 1) for _ in range(r.randrange(6)))
    return {"k%d" % i: value(depth + 1) for i in range(r.choice([0, 1, 3, 30, 1500]) if depth < 2 else 3)}
for i in range(25):
    left = 3000
    v = [value(0), shared, [shared, shared]]
    for protocol in 2, 3, 4, 5:
        print(pickle.dumps(v, protocol).hex())
        print(json.dumps(v, ensure_ascii=False))
)";
  const std::string script = testing::TempDir() + "gmt_pickles.py";
  FILE* file = fopen(script.c_str(), "w");
  ASSERT_NE(file, nullptr);
  fwrite(program.data(), 1, program.size(), file);
  fclose(file);
  ForEachSeed({1}, [&](uint32_t seed) {
    const std::string output =
        OutputOf("PYTHONIOENCODING=utf-8 python3 " + script + " " + std::to_string(seed));
    size_t at = 0, read = 0;
    const auto line = [&] {
      const size_t begin = at, end = output.find('\n', at);
      at = end + 1;
      return output.substr(begin, end - begin);
    };
    while (at < output.size()) {
      const std::string pickle = FromHex(line());
      const auto expected = nlohmann::ordered_json::parse(line());
      auto stream = StreamOf(format::BytesInMemory(pickle), "x.pickle");
      PickleTree tree;
      const auto value = ReadPickle(*stream, "x.pickle", kSmall, &tree);
      ASSERT_TRUE(value.ok()) << value.status();
      ASSERT_EQ(JsonOf(tree, *value, {.depth = 99, .values = 10'000'000, .text = 1 << 30}),
                expected);
      ++read;
    }
    EXPECT_EQ(read, 100u);
  });
  std::remove(script.c_str());
}

TEST(PickleReaderTest, ReadsThroughGzip) {
  std::string ops = "](";
  for (int i = 0; i < 300'000; ++i) ops += "K\x07";
  const std::string pickle = "\x80\x02" + ops + "e.";
  const std::string packed = Gzip(pickle);
  EXPECT_LT(packed.size(), pickle.size() / 100);
  EXPECT_EQ(Read(packed).json, Read(pickle).json);
  // Members may follow each other, as `cat a.gz b.gz` makes them.
  EXPECT_EQ(Read(Gzip(pickle.substr(0, 1000)) + Gzip(pickle.substr(1000))).json, Read(pickle).json);
}

TEST(PickleReaderTest, TruncatedOrDamagedGzipIsAnError) {
  const std::string packed = Gzip("\x80\x02]" + std::string(100, 'N') + ".");
  EXPECT_THAT(ErrorOf(packed.substr(0, packed.size() / 2)), HasSubstr("cannot be decompressed"));
  std::string damaged = packed;
  damaged[damaged.size() - 6] ^= 1;  // a byte of the checksum
  EXPECT_FALSE(Read(damaged).status.ok());
}

// ---- Opcodes ------------------------------------------------------------------------------------

TEST(PickleReaderTest, NumbersOfEverySize) {
  EXPECT_EQ(JsonOfOps("K\xff"), "255");
  EXPECT_EQ(JsonOfOps("M\xff\xff"), "65535");
  EXPECT_EQ(JsonOfOps("J\xff\xff\xff\xff"), "-1");
  EXPECT_EQ(JsonOfOps("\x8a\x00"s), "0");
  EXPECT_EQ(JsonOfOps("\x8a\x01\x80"), "-128");
  EXPECT_EQ(JsonOfOps("\x8a\x06\x00\x00\x00\x00\x00\x7f"s), "139637976727552");
  EXPECT_EQ(JsonOfOps("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"), "9223372036854775807");
  EXPECT_EQ(JsonOfOps("\x8b\x02\x00\x00\x00\x00\x01"s), "256");
  EXPECT_EQ(JsonOfOps("G\x3f\xf8\x00\x00\x00\x00\x00\x00"s), "1.5");
}

// SIZE_MAX, which some versions of PyTorch write, keeps its bits. A larger number has no value.
TEST(PickleReaderTest, NumbersBeyond63Bits) {
  EXPECT_EQ(JsonOfOps("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00"s), "-1");
  EXPECT_EQ(JsonOfOps("\x8a\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"s), "null");
  EXPECT_EQ(JsonOfOps("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\xff"s), "null");
  EXPECT_EQ(JsonOfOps("\x8a\x0a\xfe\xff\xff\xff\xff\xff\xff\xff\xff\xff"), "-2");
}

TEST(PickleReaderTest, BytesAreData) {
  EXPECT_EQ(JsonOfOps("C\x02\x01\xff"), "[1,255]");
  EXPECT_EQ(JsonOfOps("B\x01\x00\x00\x00\x07"s), "[7]");
  EXPECT_EQ(JsonOfOps("\x8e\x01\x00\x00\x00\x00\x00\x00\x00\x07"s), "[7]");
  EXPECT_EQ(JsonOfOps("\x8d\x01\x00\x00\x00\x00\x00\x00\x00x"s), "\"x\"");
}

TEST(PickleReaderTest, MarkedContainersAndTheStack) {
  EXPECT_EQ(JsonOfOps("(K\x01K\x02l"), "[1,2]");
  EXPECT_EQ(JsonOfOps("(\x8c\x01"
                      "aK\x02"
                      "d"),
            R"({"a":2})");
  EXPECT_EQ(JsonOfOps("(K\x01(K\x02t\x85t"), "[1,[[2]]]");
  EXPECT_EQ(JsonOfOps("]K\x01"
                      "aK\x02"
                      "a"),
            "[1,2]");
  EXPECT_EQ(JsonOfOps("K\x01(K\x02K\x03"
                      "1"),
            "1");
  EXPECT_EQ(JsonOfOps("K\x01K\x02"
                      "0"),
            "1");
  EXPECT_EQ(JsonOfOps("K\x01"
                      "2\x86"),
            "[1,1]");
}

TEST(PickleReaderTest, TheMemoSharesValues) {
  EXPECT_EQ(JsonOfOps("]q\x00(h\x00h\x00t"s), "[[],[]]");
  EXPECT_EQ(JsonOfOps("K\x05r\x02\x00\x00\x00j\x02\x00\x00\x00\x86"s), "[5,5]");
  EXPECT_EQ(JsonOfOps("\x8c\x01x\x94h\x00\x86"s), R"(["x","x"])");
}

TEST(PickleReaderTest, LastOfEqualKeysCounts) {
  auto stream = StreamOf(format::BytesInMemory("\x80\x02}(U\x01"
                                               "aK\x01U\x01"
                                               "aK\x02u."),
                         "x");
  PickleTree tree;
  const auto value = ReadPickle(*stream, "x", kSmall, &tree);
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(tree.Int(*tree.Find(*value, "a")), 2);
  EXPECT_EQ(tree.Find(*value, "b"), nullptr);
}

// ---- Malicious files --------------------------------------------------------------------

// python3 -c 'class A: __reduce__ = lambda s: (os.system, ("touch /tmp/owned",))'; protocols 2 and
// 4.
TEST(PickleReaderTest, RefusesToRunACommand) {
  const std::string with_global =
      "\x80\x02"
      "cposix\nsystem\nq\x00X\x10\x00\x00\x00touch /tmp/ownedq\x01\x85q\x02Rq\x03."s;
  EXPECT_THAT(ErrorOf(with_global), testing::AllOf(StartsWith("x.pickle: byte 2: opcode GLOBAL"),
                                                   HasSubstr("nothing of it was run")));
  const std::string with_stack_global =
      "\x80\x04\x95\x2b\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c"
      "\x10touch /tmp/owned\x94\x85\x94R\x94."s;
  EXPECT_THAT(ErrorOf(with_stack_global), StartsWith("x.pickle: byte 28: opcode STACK_GLOBAL"));
}

TEST(PickleReaderTest, RefusesEveryOpcodeThatRunsCode) {
  const std::pair<const char*, const char*> kRefused[] = {
      {"c", "GLOBAL"},    {"\x93", "STACK_GLOBAL"},
      {"R", "REDUCE"},    {"b", "BUILD"},
      {"i", "INST"},      {"o", "OBJ"},
      {"\x81", "NEWOBJ"}, {"\x92", "NEWOBJ_EX"},
      {"\x82", "EXT1"},   {"\x83", "EXT2"},
      {"\x84", "EXT4"},   {"P", "PERSID"},
      {"Q", "BINPERSID"}};
  for (const auto& [opcode, name] : kRefused) {
    const std::string error = ErrorOfOps("(NN" + std::string(opcode) + "\x01\x01\x01\x01");
    EXPECT_THAT(error, StartsWith(absl::StrCat("x.pickle: byte 5: opcode ", name, " would run")));
  }
}

TEST(PickleReaderTest, RefusesOpcodesThatSnapshotsDoNotHave) {
  EXPECT_THAT(ErrorOfOps("\x8f"), HasSubstr("EMPTY_SET"));
  EXPECT_THAT(ErrorOfOps("\x97"), HasSubstr("NEXT_BUFFER"));
  EXPECT_THAT(ErrorOfOps("I1\n"), HasSubstr("INT of pickle protocol 0"));
  EXPECT_THAT(ErrorOfOps("\xff"), HasSubstr("0xff is not a pickle opcode"));
  EXPECT_THAT(ErrorOf("\x80\x06."), HasSubstr("pickle protocol 6; 2 to 5 are supported"));
  EXPECT_THAT(ErrorOf("hello"), HasSubstr("not a pickle of protocol 2 or later"));
}

// Lists of ten times the previous list, thirty levels deep: 10^30 values in 700 bytes.
TEST(PickleReaderTest, BillionLaughsAttackCostsNothing) {
  std::string ops = "N\x94";
  for (int level = 0; level < 30; ++level) {
    ops += "](";
    for (int i = 0; i < 10; ++i) ops += "h" + std::string(1, static_cast<char>(level));
    ops += "e\x94";
  }
  EXPECT_LT(JsonOfOps(ops).size(), 100'000u);
}

TEST(PickleReaderTest, AListThatContainsItself) {
  EXPECT_LT(JsonOfOps("]\x94(h\x00h\x00"
                      "e"s)
                .size(),
            100'000u);
  EXPECT_LT(JsonOfOps("}\x94(\x8c\x01xh\x00u"s).size(), 100'000u);
}

TEST(PickleReaderTest, DeepNestingIsAnError) {
  EXPECT_THAT(ErrorOfOps(std::string(100'000, '(')), HasSubstr("nested deeper than 1000"));
  std::string ops = std::string(100'000, ']');
  ops += std::string(99'999, 'a');  // nests without marks
  EXPECT_THAT(JsonOfOps(ops), StartsWith("[[[["));
}

TEST(PickleReaderTest, ClaimedLengthsAllocateNothing) {
  EXPECT_THAT(ErrorOfOps("\x8d\xff\xff\xff\xff\xff\xff\xff\x7f"), HasSubstr("at most 67108864"));
  EXPECT_THAT(ErrorOfOps("X\xff\xff\xff\x03"), HasSubstr("before its STOP"));
  EXPECT_THAT(ErrorOfOps("B\xff\xff\xff\xff"), HasSubstr("at most 67108864"));
  EXPECT_THAT(ErrorOfOps("\x8b\xff\xff\xff\xff"), HasSubstr("at most 67108864"));
  EXPECT_THAT(ErrorOfOps("Nr\xff\xff\xff\xff"), HasSubstr("memo 4294967295 is out of order"));
  EXPECT_EQ(Read("\x80\x05\x95\xff\xff\xff\xff\xff\xff\xff\xffN.").json, "null");
}

TEST(PickleReaderTest, MemoryIsBounded) {
  // A gzip bomb: 64 MiB of empty lists, each 24 bytes, in 64 KiB.
  const std::string bomb = Gzip("\x80\x02" + std::string(64 << 20, ']'));
  EXPECT_LT(bomb.size(), 100u << 10);
  EXPECT_THAT(ErrorOf(bomb, {.memory = 100 << 20}),
              HasSubstr("take more than 104857600 bytes of memory"));
  EXPECT_THAT(ErrorOf(bomb, {.bytes = 1 << 20}), HasSubstr("more than 1048576 bytes"));
}

TEST(PickleReaderTest, MissingValuesAndMarksAreErrors) {
  for (const char* ops :
       {"",    "0",    "1",    "e",      "u",       "a",    "s",    "t",     "l",
        "d",   "q",    "2",    "\x85",   "\x86",    "\x87", "\x94", "h",     "(e",
        "N(e", "](Nu", "}(Ne", "}(NNNu", "}NNNsss", "(N",   "(Nd",  "h\x05", "Na"}) {
    EXPECT_FALSE(Read("\x80\x02" + std::string(ops) + ".").status.ok()) << ops;
  }
  EXPECT_THAT(ErrorOfOps("N(Ne"), HasSubstr("items for a list put into a None"));
  EXPECT_THAT(ErrorOfOps("(N"), HasSubstr("STOP inside a container"));
  EXPECT_THAT(ErrorOfOps("]Nh\x01"
                         "e"),
              HasSubstr("memo 1 was never set"));
}

// For any truncation or flipped byte, reading returns a value or an error quickly.
TEST(PickleReaderTest, EveryTruncationAndFlippedByteTerminates) {
  const std::string pickle =
      "\x80\x04\x95\x60\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x08segments\x94]\x94}\x94(\x8c\x07"
      "address\x94\x8a\x06\x00\x00\x00\x00\x00\x30\x8c\x06"
      "blocks\x94](K\x01M\x02\x03J\x04\x05\x06\x07"
      "G\x3f\xf8\x00\x00\x00\x00\x00\x00N\x88\x89)\x85\x86h\x01\x65ua\x8c\x06traces\x94]u."s;
  const Outcome whole = Read(pickle);
  ASSERT_TRUE(whole.status.ok()) << whole.status;
  for (size_t cut = 0; cut < pickle.size(); ++cut)
    EXPECT_FALSE(Read(pickle.substr(0, cut)).status.ok()) << "cut at " << cut;
  int errors = 0;
  for (size_t at = 0; at < pickle.size(); ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string flipped = pickle;
      flipped[at] = static_cast<char>(byte);
      errors += Read(flipped).status.ok() ? 0 : 1;
    }
  }
  EXPECT_GT(errors, 10'000);
}

}  // namespace
}  // namespace gmt::interop
