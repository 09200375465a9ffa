// interop/pickle/pickle_writer.h
//
// PickleWriter: Python's pickle, protocol 2, restricted to what data needs: dict, list, tuple, str,
// int, float, bool, None. No opcode that names or calls anything is ever written, so that loading
// runs no code; and only such opcodes as PyTorch's memory viewer, which has an unpickler of its
// own, understands.
//
//   PickleWriter pickle(out);
//   pickle.BeginDict();
//     pickle.String("segments");
//     pickle.BeginList();  pickle.Int(1);  pickle.End();
//   pickle.End();
//   pickle.Finish();
//
// A value that comes again is written once and referred to: strings always, other values where the
// caller calls Remember() behind Begin...() and Recall() later.
//
// Errors: those of the stream.
// REQUIRES: in a dict, keys and values alternate; every Begin has its End.
// Thread safety: one thread at a time.

#ifndef GMT_INTEROP_PICKLE_PICKLE_WRITER_H_
#define GMT_INTEROP_PICKLE_PICKLE_WRITER_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace gmt::interop {

class PickleWriter {
 public:
  using Memo = uint32_t;
  // Longer lists are appended to in pieces: the viewer's unpickler passes each piece as arguments
  // of one call.
  static constexpr uint32_t kBatch = 1000;

  explicit PickleWriter(std::ostream& out);

  void BeginDict();
  void BeginList();
  void End();  // of the innermost dict or list

  // Directly behind BeginDict() or BeginList(): makes this container one that Recall() can repeat.
  Memo Remember();
  void Recall(Memo memo);

  // Made valid UTF-8 where it is not: one odd path must not make the file unreadable.
  void String(std::string_view text);
  void Int(int64_t value);
  // Addresses above 2^63 become negative, as they do in PyTorch.
  void Unsigned(uint64_t value) { Int(static_cast<int64_t>(value)); }
  void Float(double value);
  void Bool(bool value);
  void None();
  void IntPair(int64_t first, int64_t second);  // a tuple

  // The last byte of the pickle.
  void Finish();

 private:
  struct Container {
    bool is_dict;
    uint32_t items;  // since the last MARK; a dict's keys and values count each
  };

  void BeforeValue();
  void Op(char opcode) { out_.put(opcode); }
  void Little(uint64_t value, int bytes);
  void PutInt(int64_t value);
  Memo Put();

  std::ostream& out_;
  std::vector<Container> open_;
  absl::flat_hash_map<std::string, Memo> strings_;
  Memo next_memo_ = 0;
};

}  // namespace gmt::interop

#endif  // GMT_INTEROP_PICKLE_PICKLE_WRITER_H_
