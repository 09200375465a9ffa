// interop/pickle/pickle_reader.h
//
// Reads Python's pickle, protocols 2 to 5, as data: dicts, lists, tuples, strings, bytes, numbers,
// None and booleans. A pickle is a program for a small stack machine, and some of its opcodes
// import and call whatever they name. These are refused, so that no file can execute anything here:
//
//   GLOBAL STACK_GLOBAL REDUCE BUILD INST OBJ NEWOBJ NEWOBJ_EX EXT1 EXT2 EXT4 PERSID BINPERSID
//
// Sets, out-of-band buffers and the text opcodes of protocol 0 are refused too.
//
// For any bytes, reading ends with a value or with an error that names the byte, in time and memory
// proportional to the bytes in the file. A length that a file merely claims allocates nothing.
//
// Thread safety: one thread at a time for one tree.

#ifndef GMT_INTEROP_PICKLE_PICKLE_READER_H_
#define GMT_INTEROP_PICKLE_PICKLE_READER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "interop/pickle/byte_stream.h"
#include "interop/pickle/pickle_value.h"

namespace gmt::interop {

struct PickleLimits {
  uint64_t bytes = uint64_t{1} << 40;  // of the decompressed pickle
  uint64_t memory = 0;                 // of the resulting tree; 0: three quarters of the machine's
  uint64_t text = 64 << 20;            // bytes of one string or number
  uint32_t nesting = 1000;             // containers that are open at the same time
};

// Returns the value of the pickle. `tree` receives its parts. `name` stands for the path in
// messages. Bytes after the end of the pickle are ignored.
absl::StatusOr<PickleValue> ReadPickle(ByteStream& bytes, absl::string_view name,
                                       const PickleLimits& limits, PickleTree* tree);

// Returns whether bytes that begin like this are a pickle of protocol 2 or later.
bool LooksLikePickle(absl::string_view first_bytes);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_PICKLE_PICKLE_READER_H_
