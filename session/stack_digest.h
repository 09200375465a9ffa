// session/stack_digest.h
//
// The digest of a stack: what StackTable compares instead of frames.
//
// It is made of sums, so that a writer that remembers the last stack of a thread pays only for the
// frames that have changed. A frame contributes its word times a pseudo-random odd key of 64 bits.
// The key is chosen by the kind of frame and by how many frames of that kind are further out. That
// number stays the same while the thread calls and returns further in.
//
//   native frames, e.g. [malloc] [linear] [eval] [main]     word * native key      4 places
//   Python frames, e.g. [forward] [step]                    word * interpreter key 2 places
//   runs: Python frames between the same native ones        how many native frames, and how many
//                                                           Python frames, are further out
//
// Two different stacks have the same sum of 128 bits only if the products of all differences
// with their keys cancel exactly. For any given two stacks that is the case for at most one of
// 2^63 values of one key, whatever the others are. The fingerprint, which represents the
// contents of code objects, is a polynomial of their identities, modulo 2^64.
//
// Thread safety: a sum belongs to one thread.

#ifndef GMT_SESSION_STACK_DIGEST_H_
#define GMT_SESSION_STACK_DIGEST_H_

#include <cstdint>

#include "session/intern_index.h"
#include "session/layout.h"

namespace gmt::session {

// The keys of all places.
struct StackKeys {
  uint64_t native[kMaxStackDepth], interpreter[kMaxStackDepth], run[kMaxStackDepth];
  uint64_t identity[kMaxStackDepth];  // powers of kIdentityBase
};

// What the code objects further in are multiplied with for each one further out.
inline constexpr uint64_t kIdentityBase = 0x8ebc6af09c88c6e3;

constexpr StackKeys MakeStackKeys() {
  StackKeys keys = {};
  uint64_t state = 0;
  const auto next = [&state] {  // the generator splitmix64
    uint64_t x = state += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return (x ^ x >> 31) | 1;
  };
  uint64_t power = 1;
  for (uint32_t i = 0; i < kMaxStackDepth; ++i, power *= kIdentityBase) {
    keys.native[i] = next();
    keys.interpreter[i] = next();
    keys.run[i] = next();
    keys.identity[i] = power;
  }
  return keys;
}
inline constexpr StackKeys kStackKeys = MakeStackKeys();

// In all functions, `outside` is the number of frames of the same kind further out.
// REQUIRES: outside < kMaxStackDepth.
class StackSum {
 public:
  __extension__ typedef unsigned __int128 Words;

  StackSum() = default;
  // The sum of native frames whose words() these are.
  explicit StackSum(Words words) : words_(words) {}
  Words words() const { return words_; }

  void AddNative(uint64_t frame, uint32_t outside) {
    words_ += Product(frame, kStackKeys.native[outside]);
  }
  void RemoveNative(uint64_t frame, uint32_t outside) {
    words_ -= Product(frame, kStackKeys.native[outside]);
  }
  // `identity` represents the contents of the frame's code object.
  void AddInterpreter(uint64_t frame, uint64_t identity, uint32_t outside) {
    words_ += Product(frame, kStackKeys.interpreter[outside]);
    fingerprint_ += identity * kStackKeys.identity[outside];
  }
  void RemoveInterpreter(uint64_t frame, uint64_t identity, uint32_t outside) {
    words_ -= Product(frame, kStackKeys.interpreter[outside]);
    fingerprint_ -= identity * kStackKeys.identity[outside];
  }
  // `run`: the number of runs further out; `native`, `interpreter`: of frames of each kind.
  void AddRun(uint32_t run, uint32_t native, uint32_t interpreter) {
    words_ +=
        Product(uint64_t{1} << 63 | uint64_t{interpreter} << 32 | native, kStackKeys.run[run]);
  }
  void SetFingerprint(uint64_t fingerprint) { fingerprint_ = fingerprint; }
  // Adds everything that is in `other`.
  void Add(const StackSum& other) {
    words_ += other.words_;
    fingerprint_ += other.fingerprint_;
  }

  // Returns the hash of a stack whose frames are the added ones.
  ContentHash Hash(uint32_t depth, uint16_t flags, uint32_t generation) const {
    const uint64_t words[] = {depth | uint64_t{flags} << 16 | uint64_t{generation} << 32,
                              fingerprint_, static_cast<uint64_t>(words_),
                              static_cast<uint64_t>(words_ >> 64)};
    ContentHash hash;
    hash.Add(words, 4);
    return hash;
  }

 private:
  static Words Product(uint64_t word, uint64_t key) { return static_cast<Words>(word) * key; }

  Words words_ = 0;
  uint64_t fingerprint_ = 0;
};

}  // namespace gmt::session

#endif  // GMT_SESSION_STACK_DIGEST_H_
