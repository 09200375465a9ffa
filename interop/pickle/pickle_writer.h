// interop/pickle/pickle_writer.h
//
// PickleWriter: Python's pickle, protocol 2, restricted to data: dict, list, tuple, str, int,
// float, bool, None. Opcodes that name or call anything are never written, so that loading executes
// no code. Only opcodes that PyTorch's memory viewer supports, which has its own unpickler, are
// written.
//
//   PickleWriter pickle(out);
//   pickle.BeginDict();
//     pickle.String("segments");
//     pickle.BeginList();  pickle.Int(1);  pickle.End();
//   pickle.End();
//   pickle.Finish();
//
// A repeated value is written once and then referred to: strings always, other values if the caller
// calls Remember() after Begin...() and Recall() later.
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
  // Longer lists are appended in batches, because the viewer's unpickler passes each batch as the
  // arguments of one call.
  static constexpr uint32_t kBatch = 1000;

  explicit PickleWriter(std::ostream& out);

  void BeginDict();
  void BeginList();
  void End();  // ends the innermost dict or list

  // Call it directly after BeginDict() or BeginList(). Lets Recall() repeat this container.
  Memo Remember();
  void Recall(Memo memo);

  // Invalid UTF-8 is replaced, because one odd path must not make the file unreadable.
  void String(std::string_view text);
  void Int(int64_t value);
  // Addresses above 2^63 become negative, as in PyTorch.
  void Unsigned(uint64_t value) { Int(static_cast<int64_t>(value)); }
  void Float(double value);
  void Bool(bool value);
  void None();
  void IntPair(int64_t first, int64_t second);  // a tuple

  // Writes the last byte of the pickle.
  void Finish();

 private:
  struct Container {
    bool is_dict;
    uint32_t items;  // since the last MARK; keys and values of a dict count separately
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
