// interop/pickle/pickle_opcodes.h
//
// The opcodes of pickle, with the names of Python's pickletools (CPython 3.13).

#ifndef GMT_INTEROP_PICKLE_PICKLE_OPCODES_H_
#define GMT_INTEROP_PICKLE_PICKLE_OPCODES_H_

#include <cstdint>
#include <string_view>

namespace gmt::interop {

// How a reader that only accepts data treats an opcode.
enum class PickleUse : uint8_t {
  kData,
  kCode,    // names, creates or calls something
  kNoData,  // a kind of value that snapshots do not have
  kText,    // text opcodes of protocol 0
  kUnknown,
};

// opcode, name, use
#define GMT_PICKLE_OPCODES(OPCODE)                          \
  OPCODE(0x80, kProto, "PROTO", kData)                      \
  OPCODE(0x95, kFrame, "FRAME", kData)                      \
  OPCODE('.', kStop, "STOP", kData)                         \
  OPCODE('(', kMark, "MARK", kData)                         \
  OPCODE('0', kPop, "POP", kData)                           \
  OPCODE('1', kPopMark, "POP_MARK", kData)                  \
  OPCODE('2', kDup, "DUP", kData)                           \
  OPCODE('N', kNone, "NONE", kData)                         \
  OPCODE(0x88, kNewTrue, "NEWTRUE", kData)                  \
  OPCODE(0x89, kNewFalse, "NEWFALSE", kData)                \
  OPCODE('J', kBinInt, "BININT", kData)                     \
  OPCODE('K', kBinInt1, "BININT1", kData)                   \
  OPCODE('M', kBinInt2, "BININT2", kData)                   \
  OPCODE(0x8a, kLong1, "LONG1", kData)                      \
  OPCODE(0x8b, kLong4, "LONG4", kData)                      \
  OPCODE('G', kBinFloat, "BINFLOAT", kData)                 \
  OPCODE(0x8c, kShortBinUnicode, "SHORT_BINUNICODE", kData) \
  OPCODE('X', kBinUnicode, "BINUNICODE", kData)             \
  OPCODE(0x8d, kBinUnicode8, "BINUNICODE8", kData)          \
  OPCODE('U', kShortBinString, "SHORT_BINSTRING", kData)    \
  OPCODE('T', kBinString, "BINSTRING", kData)               \
  OPCODE('C', kShortBinBytes, "SHORT_BINBYTES", kData)      \
  OPCODE('B', kBinBytes, "BINBYTES", kData)                 \
  OPCODE(0x8e, kBinBytes8, "BINBYTES8", kData)              \
  OPCODE(0x96, kByteArray8, "BYTEARRAY8", kData)            \
  OPCODE('}', kEmptyDict, "EMPTY_DICT", kData)              \
  OPCODE('d', kDict, "DICT", kData)                         \
  OPCODE('s', kSetItem, "SETITEM", kData)                   \
  OPCODE('u', kSetItems, "SETITEMS", kData)                 \
  OPCODE(']', kEmptyList, "EMPTY_LIST", kData)              \
  OPCODE('l', kList, "LIST", kData)                         \
  OPCODE('a', kAppend, "APPEND", kData)                     \
  OPCODE('e', kAppends, "APPENDS", kData)                   \
  OPCODE(')', kEmptyTuple, "EMPTY_TUPLE", kData)            \
  OPCODE('t', kTuple, "TUPLE", kData)                       \
  OPCODE(0x85, kTuple1, "TUPLE1", kData)                    \
  OPCODE(0x86, kTuple2, "TUPLE2", kData)                    \
  OPCODE(0x87, kTuple3, "TUPLE3", kData)                    \
  OPCODE('h', kBinGet, "BINGET", kData)                     \
  OPCODE('j', kLongBinGet, "LONG_BINGET", kData)            \
  OPCODE('q', kBinPut, "BINPUT", kData)                     \
  OPCODE('r', kLongBinPut, "LONG_BINPUT", kData)            \
  OPCODE(0x94, kMemoize, "MEMOIZE", kData)                  \
  OPCODE('c', kGlobal, "GLOBAL", kCode)                     \
  OPCODE(0x93, kStackGlobal, "STACK_GLOBAL", kCode)         \
  OPCODE('R', kReduce, "REDUCE", kCode)                     \
  OPCODE('b', kBuild, "BUILD", kCode)                       \
  OPCODE('i', kInst, "INST", kCode)                         \
  OPCODE('o', kObj, "OBJ", kCode)                           \
  OPCODE(0x81, kNewObj, "NEWOBJ", kCode)                    \
  OPCODE(0x92, kNewObjEx, "NEWOBJ_EX", kCode)               \
  OPCODE(0x82, kExt1, "EXT1", kCode)                        \
  OPCODE(0x83, kExt2, "EXT2", kCode)                        \
  OPCODE(0x84, kExt4, "EXT4", kCode)                        \
  OPCODE('P', kPersId, "PERSID", kCode)                     \
  OPCODE('Q', kBinPersId, "BINPERSID", kCode)               \
  OPCODE(0x8f, kEmptySet, "EMPTY_SET", kNoData)             \
  OPCODE(0x90, kAddItems, "ADDITEMS", kNoData)              \
  OPCODE(0x91, kFrozenSet, "FROZENSET", kNoData)            \
  OPCODE(0x97, kNextBuffer, "NEXT_BUFFER", kNoData)         \
  OPCODE(0x98, kReadOnlyBuffer, "READONLY_BUFFER", kNoData) \
  OPCODE('I', kInt, "INT", kText)                           \
  OPCODE('L', kLong, "LONG", kText)                         \
  OPCODE('F', kFloat, "FLOAT", kText)                       \
  OPCODE('S', kString, "STRING", kText)                     \
  OPCODE('V', kUnicode, "UNICODE", kText)                   \
  OPCODE('g', kGet, "GET", kText)                           \
  OPCODE('p', kPut, "PUT", kText)

enum class PickleOpcode : uint8_t {
#define GMT_OPCODE(value, id, name, use) id = value,
  GMT_PICKLE_OPCODES(GMT_OPCODE)
#undef GMT_OPCODE
};

struct PickleOpcodeInfo {
  std::string_view name;  // empty if it is not an opcode
  PickleUse use = PickleUse::kUnknown;
};

inline PickleOpcodeInfo InfoOf(PickleOpcode opcode) {
  switch (opcode) {
#define GMT_OPCODE(value, id, name, use) \
  case PickleOpcode::id:                 \
    return {name, PickleUse::use};
    GMT_PICKLE_OPCODES(GMT_OPCODE)
#undef GMT_OPCODE
  }
  return {};
}

}  // namespace gmt::interop

#endif  // GMT_INTEROP_PICKLE_PICKLE_OPCODES_H_
