#include "viewer/html/sha256.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace gmt::viewer {
namespace {

constexpr size_t kBlock = 64;

// FIPS 180-4 derives its constants from the fractional parts of roots of the first primes; they are
// computed here as the standard defines them: floor(2^32 * frac(root)).
__extension__ using Wide = unsigned __int128;

constexpr bool IsPrime(uint32_t n) {
  for (uint32_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return n >= 2;
}

// Returns the fractional part of the largest r with r^power <= prime * 2^(32 * power).
constexpr uint32_t RootFraction(uint32_t prime, int power) {
  const Wide goal = static_cast<Wide>(prime) << (32 * power);
  uint64_t root = 0;
  for (int bit = 36; bit >= 0; --bit) {
    const uint64_t next = root | (uint64_t{1} << bit);
    Wide raised = next;
    for (int i = 1; i < power; ++i) raised *= next;
    if (raised <= goal) root = next;
  }
  return static_cast<uint32_t>(root);
}

template <size_t kCount>
constexpr std::array<uint32_t, kCount> RootFractions(int power) {
  std::array<uint32_t, kCount> fractions{};
  uint32_t prime = 1;
  for (uint32_t& fraction : fractions) {
    do ++prime;
    while (!IsPrime(prime));
    fraction = RootFraction(prime, power);
  }
  return fractions;
}

constexpr auto kRounds = RootFractions<64>(3);
using State = std::array<uint32_t, 8>;
constexpr State kStart = RootFractions<8>(2);
static_assert(kRounds[0] == 0x428a2f98 && kStart[7] == 0x5be0cd19);

uint32_t BigEndian(const char* bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

std::array<uint32_t, 64> Schedule(const char* block) {
  std::array<uint32_t, 64> w;
  for (size_t t = 0; t < 16; ++t) w[t] = BigEndian(block + 4 * t);
  for (size_t t = 16; t < 64; ++t) {
    const uint32_t a = w[t - 15], b = w[t - 2];
    w[t] = w[t - 16] + w[t - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  return w;
}

void AddBlock(const char* block, State& state) {
  const auto w = Schedule(block);
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t t = 0; t < 64; ++t) {
    const uint32_t t1 = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                        ((e & f) ^ (~e & g)) + kRounds[t] + w[t];
    const uint32_t t2 =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const State sum = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < state.size(); ++i) state[i] += sum[i];
}

void AppendBigEndian(uint64_t value, int size, std::string& bytes) {
  for (int i = size - 1; i >= 0; --i) bytes.push_back(static_cast<char>(value >> (8 * i)));
}

}  // namespace

std::string Sha256(absl::string_view bytes) {
  State state = kStart;
  const size_t whole = bytes.size() / kBlock * kBlock;
  for (size_t i = 0; i < whole; i += kBlock) AddBlock(bytes.data() + i, state);
  std::string tail(bytes.substr(whole));
  tail.push_back('\x80');
  while (tail.size() % kBlock != kBlock - 8) tail.push_back('\0');
  AppendBigEndian(uint64_t{bytes.size()} * 8, 8, tail);
  for (size_t i = 0; i < tail.size(); i += kBlock) AddBlock(tail.data() + i, state);
  std::string digest;
  for (const uint32_t word : state) AppendBigEndian(word, 4, digest);
  return digest;
}

}  // namespace gmt::viewer
