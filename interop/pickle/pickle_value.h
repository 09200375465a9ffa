// interop/pickle/pickle_value.h
//
// PickleTree: the contents of a pickle of plain data as a graph of compact values. A value takes 8
// bytes, and each container 16 more. Dicts with the same keys share them, and equal strings are
// stored once. PickleReader (interop/pickle/pickle_reader.h) builds it.
//
//   {"action": "alloc", "addr": 4096}, 17 million times
//     keys   ["action", "addr"]                                           once
//     dict   {items, 2, keys #7}  ->  [string #3] [int 4096]              32 bytes each
//
// A value that the pickle refers to twice is one value; compare lists and dicts by identity() to
// detect that. A list may therefore contain itself, so code that descends must limit the depth.
//
// Thread safety: const methods may be called from any thread after the tree is built.

#ifndef GMT_INTEROP_PICKLE_PICKLE_VALUE_H_
#define GMT_INTEROP_PICKLE_PICKLE_VALUE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace gmt::interop {

// A value, or a reference to one in a tree: a type and 60 bits.
class PickleValue {
 public:
  enum class Type : uint8_t {
    kNone,
    kBool,
    kInt,     // up to 60 bits
    kBigInt,  // stored in PickleTree; no value if more than 64 bits
    kFloat,
    kString,
    kBytes,
    kTuple,
    kList,
    kDict,
  };

  PickleValue() = default;
  PickleValue(Type type, uint64_t payload) : bits_(payload << 4 | static_cast<uint64_t>(type)) {}

  Type type() const { return static_cast<Type>(bits_ & 15); }
  bool is(Type other) const { return type() == other; }
  uint64_t payload() const { return bits_ >> 4; }
  int64_t small_int() const { return static_cast<int64_t>(bits_) >> 4; }
  // Equal for the same value of the pickle, and for equal strings and small numbers.
  uint64_t identity() const { return bits_; }

  bool operator==(const PickleValue&) const = default;

 private:
  uint64_t bits_;  // uninitialized, so that allocating many is cheap; PickleValue() is None
};
static_assert(static_cast<int>(PickleValue::Type::kNone) == 0);

// Returns Python's name of the type: "dict", "int", ...
const char* TypeName(PickleValue::Type type);

class PickleTree {
 public:
  PickleTree() = default;
  PickleTree(const PickleTree&) = delete;
  PickleTree& operator=(const PickleTree&) = delete;

  // ---- Reading. Each accessor accepts any value; other types give no result. --------------------

  // Returns an integer that fits 64 bits, signed or unsigned: an address above 2^63 may be written
  // either way.
  std::optional<int64_t> Int(PickleValue value) const;
  std::optional<double> Float(PickleValue value) const;
  std::optional<std::string_view> String(PickleValue value) const;
  std::string_view Bytes(PickleValue value) const;  // empty for other types
  // The items of a list or tuple; empty for other types.
  struct Items {
    const PickleValue* data = nullptr;
    uint32_t size = 0;
    const PickleValue* begin() const { return data; }
    const PickleValue* end() const { return data + size; }
  };
  Items ItemsOf(PickleValue sequence) const;
  // Calls visit(key, value) for the items of a dict, in order.
  template <typename Visit>
  void ForEach(PickleValue dict, Visit visit) const {
    if (!dict.is(PickleValue::Type::kDict)) return;
    const Node& node = nodes_[dict.payload()];
    const PickleValue* keys = KeysOf(node);
    for (uint32_t i = 0; i < node.count; ++i) {
      keys == nullptr ? visit(node.items[2 * i], node.items[2 * i + 1])
                      : visit(keys[i], node.items[i]);
    }
  }
  uint32_t SizeOf(PickleValue container) const;
  // Returns the value of a key, or nullptr if there is none. As in Python, the last of equal keys
  // counts.
  const PickleValue* Find(PickleValue dict, PickleValue key) const;
  const PickleValue* Find(PickleValue dict, std::string_view key) const;
  // Returns the string as a key for Find(). If no string of the pickle equals it, Find() returns
  // nullptr.
  PickleValue Key(std::string_view text) const;

  uint64_t memory() const;  // bytes that grow with the size of the pickle

  // ---- Building --------------------------------------------------------------------------------

  PickleValue AddInt(int64_t value);
  PickleValue AddUnsigned(uint64_t value);
  PickleValue AddHugeInt();
  PickleValue AddFloat(double value);
  PickleValue AddString(std::string_view text);
  PickleValue AddBytes(std::string_view bytes);
  PickleValue AddContainer(PickleValue::Type type);  // kTuple, kList or kDict; empty
  // Appends values. For a dict, keys and values alternate. Returns false, without an effect, if the
  // container would have more than 2^31 values. REQUIRES: the container is from AddContainer().
  bool Extend(PickleValue container, const PickleValue* values, uint64_t count);

 private:
  // Dicts with more keys than this are rare. They store their keys next to the values.
  static constexpr uint32_t kMaxSharedKeys = 24;
  static constexpr uint32_t kOwnKeys = UINT32_MAX;
  static constexpr uint64_t kBlock = 32 << 10;  // values

  struct Node {
    PickleValue* items = nullptr;
    uint32_t count = 0;  // items of a sequence, pairs of a dict
    // For a dict: the index of its keys in key_lists_. If it is kOwnKeys, the items are pairs, with
    // room for the next power of two of them. For a sequence: the number of items that fit, 0 if no
    // more fit.
    uint32_t keys_or_room = 0;
  };
  struct Text {
    const char* data;
    uint64_t size;
  };
  struct TextHash {
    using is_transparent = void;
    const PickleTree* tree;
    size_t operator()(uint32_t id) const;
    size_t operator()(std::string_view text) const;
  };
  struct TextEqual {
    using is_transparent = void;
    const PickleTree* tree;
    bool operator()(uint32_t a, uint32_t b) const { return a == b; }
    bool operator()(uint32_t a, std::string_view b) const { return tree->TextOf(a) == b; }
  };
  struct KeyListHash {
    using is_transparent = void;
    const PickleTree* tree;
    size_t operator()(uint32_t id) const;
    size_t operator()(Items keys) const;
  };
  struct KeyListEqual {
    using is_transparent = void;
    const PickleTree* tree;
    bool operator()(uint32_t a, uint32_t b) const { return a == b; }
    bool operator()(uint32_t a, Items b) const;
  };

  std::string_view TextOf(uint64_t id) const { return {texts_[id].data, texts_[id].size}; }
  const PickleValue* KeysOf(const Node& node) const {
    return node.keys_or_room == kOwnKeys ? nullptr : key_lists_[node.keys_or_room].data();
  }
  PickleValue* Take(uint64_t count);
  PickleValue* Grow(PickleValue* items, uint64_t count, uint64_t room);
  Text Keep(std::string_view text);
  void ExtendSequence(Node& node, const PickleValue* values, uint32_t count);
  void ExtendDict(Node& node, const PickleValue* pairs, uint32_t count);
  uint32_t InternKeys(const PickleValue* pairs, uint32_t count);
  void GiveOwnKeys(Node& node);

  std::vector<Node> nodes_;
  std::vector<std::unique_ptr<PickleValue[]>> blocks_;
  // Large arrays have their own blocks, which are freed when the array moves to a larger one.
  absl::flat_hash_map<const PickleValue*, std::unique_ptr<PickleValue[]>> large_;
  PickleValue* free_ = nullptr;
  uint64_t free_count_ = 0;
  uint64_t values_ = 0;  // total of all blocks
  std::vector<int64_t> big_ints_;
  std::vector<double> floats_;
  std::vector<Text> texts_;
  std::vector<std::unique_ptr<char[]>> text_blocks_;
  char* free_text_ = nullptr;
  uint64_t free_text_size_ = 0, text_bytes_ = 0;
  absl::flat_hash_set<uint32_t, TextHash, TextEqual> text_ids_{0, TextHash{this}, TextEqual{this}};
  std::vector<std::vector<PickleValue>> key_lists_;
  absl::flat_hash_set<uint32_t, KeyListHash, KeyListEqual> key_list_ids_{0, KeyListHash{this},
                                                                         KeyListEqual{this}};
};

}  // namespace gmt::interop

#endif  // GMT_INTEROP_PICKLE_PICKLE_VALUE_H_
