// preload/stacks/python/layouts.h
//
// Layout: the offsets, in bytes from the start of each structure, of the CPython fields that a walk
// reads. Two sources, by minor version:
//
//   3.8 ... 3.12   kFixedLayouts, from CPython's own headers
//   3.13 and later the offsets that the interpreter publishes: the array of 64-bit words at the
//                  start of _PyRuntime (_Py_DebugOffsets in internal/pycore_runtime.h, from 3.14
//                  on in internal/pycore_debug_offsets.h). The meaning of each word changes with
//                  each minor version; kDebugLayouts has it for the known ones.
//
// All for 64-bit builds. None is trusted before it has been tested:
// preload/stacks/python/calibration.cc.

#ifndef GMT_PRELOAD_STACKS_PYTHON_LAYOUTS_H_
#define GMT_PRELOAD_STACKS_PYTHON_LAYOUTS_H_

#include <stdint.h>

#include "session/layout.h"

namespace gmt::preload {

// How a thread's frames are linked, and how to find the function that runs them.
enum class FrameChain : uint8_t {
  kObjects = 1,  // 3.8 ... 3.10: frame objects; each is run by its own call of the eval function
  kCFrames,  // 3.11, 3.12: each eval function has a _PyCFrame on its stack, and these are linked
  kEntryFrames,  // 3.13 and later: each eval function has a frame without code on its stack
};

// How the frame stores its current instruction.
enum class Instruction : uint8_t {
  kByteIndex = 1,  // 3.8, 3.9: int, in bytes
  kUnitIndex,      // 3.10: int, in units of 2 bytes
  kPointer,        // 3.11 and later: the instruction's address
};

// Fits in one cache line, for a fast walk. 0 if a version lacks the field.
struct alignas(64) Layout {
  FrameChain chain;
  Instruction instruction;
  uint8_t text_kind_shift;  // in the state word of a text: kind (3 bits), compact, ascii follow
  uint8_t line_table;       // session::LineTable

  uint16_t object_type;        // PyObject.ob_type
  uint16_t object_size;        // PyVarObject.ob_size
  uint16_t thread_frame;       // PyThreadState: frame, cframe or current_frame
  uint16_t thread_ident;       // PyThreadState.thread_id
  uint16_t cframe_frame;       // _PyCFrame.current_frame
  uint16_t cframe_previous;    // _PyCFrame.previous
  uint16_t frame_previous;     // f_back or previous
  uint16_t frame_code;         // f_code or f_executable
  uint16_t frame_instruction;  // f_lasti, prev_instr or instr_ptr
  uint16_t frame_owner;        // owner
  uint16_t frame_is_entry;     // is_entry (3.11 alone)
  uint16_t frame_tlbc;         // tlbc_index: which copy of the bytecode runs (3.14t)
  uint16_t code_flags;         // bits of the reference to the code object that are not part of its
                               // address
  uint16_t code_bytes;         // co_code_adaptive, where the bytecode begins; or co_code, an object
  uint16_t code_tlbc;          // co_tlbc: the copies of the bytecode (3.14t)
  uint16_t code_traceable;     // _co_firsttraceable: a frame is incomplete before this instruction
  uint16_t code_first_line;    // co_firstlineno
  uint16_t code_version;       // co_version: a number per code object
  uint16_t code_line_table;    // co_lnotab or co_linetable
  uint16_t code_name;          // co_qualname, or co_name if there is none
  uint16_t code_short_name;    // co_name
  uint16_t code_file;          // co_filename
  uint16_t text_length;        // PyASCIIObject.length
  uint16_t text_state;         // PyASCIIObject.state
  uint16_t ascii_text;         // sizeof(PyASCIIObject): where the characters of an ASCII text begin
  uint16_t compact_text;       // sizeof(PyCompactUnicodeObject): those of another text
  uint16_t bytes_data;         // PyBytesObject.ob_sval
};
static_assert(sizeof(Layout) == 64);

// Frames of this owner and above belong to the interpreter itself and have no code.
// FRAME_OWNED_BY_CSTACK in 3.12 and 3.13, FRAME_OWNED_BY_INTERPRETER since (pycore_frame.h,
// pycore_interpframe_structs.h).
constexpr uint8_t kOwnedByInterpreter = 3;
constexpr uint8_t kOwnedByGenerator = 1;

// clang-format off

// Builds with a GIL, a column per version. Sources: cpython/pystate.h (thread),
// cpython/frameobject.h and from 3.11 on internal/pycore_frame.h, 3.14
// internal/pycore_interpframe_structs.h (frames), cpython/code.h (code), object.h,
// cpython/bytesobject.h, cpython/unicodeobject.h (3.12 dropped wstr), of 3.8.18, 3.9.18, 3.10.13,
// 3.11.7, 3.12.1, 3.13.0 and 3.14.3. From 3.13 on the offsets published by the interpreter are
// authoritative; the columns are those of usual builds, for which the walk is compiled.
struct FixedRow {
  uint16_t Layout::*field;
  uint16_t offsets[7];
};
inline constexpr int kFirstMinor = 8, kLastMinor = 14;
inline constexpr FixedRow kFixedLayouts[] = {
    //                            3.8  3.9  3.10 3.11 3.12 3.13 3.14
    {&Layout::object_type,       {  8,   8,   8,   8,   8,   8,   8}},
    {&Layout::object_size,       { 16,  16,  16,  16,  16,  16,  16}},
    {&Layout::thread_frame,      { 24,  24,  24,  56,  56,  72,  72}},
    {&Layout::thread_ident,      {176, 176, 176, 152, 136, 152, 152}},
    {&Layout::cframe_frame,      {  0,   0,   0,   8,   0,   0,   0}},
    {&Layout::cframe_previous,   {  0,   0,   0,  16,   8,   0,   0}},
    {&Layout::frame_previous,    { 24,  24,  24,  48,   8,   8,   8}},
    {&Layout::frame_code,        { 32,  32,  32,  32,   0,   0,   0}},
    {&Layout::frame_instruction, {104, 104,  96,  56,  56,  56,  56}},
    {&Layout::frame_owner,       {  0,   0,   0,  69,  70,  70,  74}},
    {&Layout::frame_is_entry,    {  0,   0,   0,  68,   0,   0,   0}},
    {&Layout::code_flags,        {  0,   0,   0,   0,   0,   0,   7}},
    {&Layout::code_bytes,        { 48,  48,  48, 184, 192, 200, 208}},
    {&Layout::code_traceable,    {  0,   0,   0, 168, 176, 184, 192}},
    {&Layout::code_first_line,   { 40,  40,  40,  72,  68,  68,  68}},
    {&Layout::code_version,      {  0,   0,   0,   0,  92,  92,  92}},
    {&Layout::code_line_table,   {120, 120, 120, 136, 136, 136, 136}},
    {&Layout::code_name,         {112, 112, 112, 128, 128, 128, 128}},
    {&Layout::code_short_name,   {112, 112, 112, 120, 120, 120, 120}},
    {&Layout::code_file,         {104, 104, 104, 112, 112, 112, 112}},
    {&Layout::text_length,       { 16,  16,  16,  16,  16,  16,  16}},
    {&Layout::text_state,        { 32,  32,  32,  32,  32,  32,  32}},
    {&Layout::ascii_text,        { 48,  48,  48,  48,  40,  40,  40}},
    {&Layout::compact_text,      { 72,  72,  72,  72,  56,  56,  56}},
    {&Layout::bytes_data,        { 32,  32,  32,  32,  32,  32,  32}},
};

// For versions that publish their offsets: the index of the word of _Py_DebugOffsets that holds the
// offset. Sources:
// internal/pycore_runtime.h of 3.13.0, internal/pycore_debug_offsets.h of 3.14.3.
struct DebugRow {
  uint16_t Layout::*field;
  uint8_t words[2];
};
inline constexpr int kFirstDebugMinor = 13;
inline constexpr DebugRow kDebugLayouts[] = {
    //                            3.13 3.14
    {&Layout::object_size,       { 44,  50}},  // sizeof(PyObject), which ob_size follows
    {&Layout::object_type,       { 45,  51}},
    {&Layout::thread_frame,      { 23,  26}},
    {&Layout::thread_ident,      { 24,  27}},
    {&Layout::frame_previous,    { 29,  32}},
    {&Layout::frame_code,        { 30,  33}},
    {&Layout::frame_instruction, { 31,  34}},
    {&Layout::frame_owner,       { 33,  36}},
    {&Layout::frame_tlbc,        {  0,  38}},
    {&Layout::code_file,         { 35,  40}},
    {&Layout::code_short_name,   { 36,  41}},
    {&Layout::code_name,         { 37,  42}},
    {&Layout::code_line_table,   { 38,  43}},
    {&Layout::code_first_line,   { 39,  44}},
    {&Layout::code_bytes,        { 43,  48}},
    {&Layout::code_tlbc,         {  0,  49}},
    {&Layout::bytes_data,        { 66,  76}},
    {&Layout::text_state,        { 68,  78}},
    {&Layout::text_length,       { 69,  79}},
    {&Layout::ascii_text,        { 70,  80}},
};

// clang-format on

inline constexpr uint64_t kDebugCookie = 0x7970677562656478;  // "xdebugpy"
inline constexpr uint32_t kCookieWord = 0, kVersionWord = 1, kFreeThreadedWord = 2;

// What a build of Python 3.`minor` with a GIL usually has. REQUIRES: a known version.
constexpr Layout UsualLayout(int minor) {
  Layout l = {};
  for (const FixedRow& row : kFixedLayouts) l.*row.field = row.offsets[minor - kFirstMinor];
  l.chain = minor <= 10   ? FrameChain::kObjects
            : minor <= 12 ? FrameChain::kCFrames
                          : FrameChain::kEntryFrames;
  l.instruction = minor <= 9    ? Instruction::kByteIndex
                  : minor == 10 ? Instruction::kUnitIndex
                                : Instruction::kPointer;
  l.line_table = static_cast<uint8_t>(minor <= 9    ? session::LineTable::kPython39
                                      : minor == 10 ? session::LineTable::kPython310
                                                    : session::LineTable::kPython311);
  l.text_kind_shift = 2;
  return l;
}

// The layout of Python 3.`minor`; `debug_offsets` is the start of _PyRuntime. False: unknown, or
// the interpreter contradicts itself.
bool FindLayout(int minor, const uint64_t* debug_offsets, Layout* layout);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACKS_PYTHON_LAYOUTS_H_
