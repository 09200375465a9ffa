// session/vocabulary.h
//
// What events of a session can be: their kinds, what an activity did, which memory, in which name
// space. Numbers are part of the session's layout (session/layout.h); most are those of
// proto/gmt.proto too, as each says.

#ifndef GMT_SESSION_VOCABULARY_H_
#define GMT_SESSION_VOCABULARY_H_

#include <cstdint>

namespace gmt::session {

// Kinds of event. The values are those of gmt.Kind in proto/gmt.proto.
enum class Kind : uint8_t {
  kNone = 0,
  kAlloc = 1,
  kFree = 2,
  kFreeDone = 3,
  kAllocFailed = 4,
  kReserve = 5,
  kUnreserve = 6,
  kCreate = 7,
  kRelease = 8,
  kMap = 9,
  kUnmap = 10,
  kImport = 11,
  kUnimport = 12,
  kRegister = 13,
  kUnregister = 14,
  kContextCreate = 15,
  kContextReset = 16,
  kStream = 17,
  kEventRecord = 18,
  kEventWait = 19,
  kSync = 20,
  kMark = 21,
  kRangeBegin = 22,
  kRangeEnd = 23,
  kThread = 24,
  kSample = 25,
  kSnapshot = 26,  // the process asks for one
  kPool = 29,
  kGraph = 30,
  kModule = 31,
  kCopy = 35,
  kSource = 36,   // how one of the ways to know things is
  kDevice = 37,   // what a device is, or is called
  kWitness = 38,  // what CUPTI says of memory; changes nothing that is live
  kRole = 39,     // what a live allocation is for has changed; its size is the set of Roles
  kLast = kRole,
};
// 27, 28, 32 to 34 are not events of a process.
constexpr bool IsKind(uint64_t kind) {
  return (kind > 0 && kind <= static_cast<uint64_t>(Kind::kSnapshot)) ||
         (kind >= static_cast<uint64_t>(Kind::kPool) &&
          kind <= static_cast<uint64_t>(Kind::kModule)) ||
         (kind >= static_cast<uint64_t>(Kind::kCopy) && kind <= static_cast<uint64_t>(Kind::kLast));
}

// Kinds as a set, a bit each: whether one is among them is asked several times for each event.
constexpr uint64_t KindsFrom(Kind first, Kind last) {
  return (uint64_t{2} << static_cast<uint64_t>(last)) -
         (uint64_t{1} << static_cast<uint64_t>(first));
}
static_assert(static_cast<uint64_t>(Kind::kLast) < 63);
constexpr bool IsOneOf(uint64_t kinds, Kind kind) {
  return (kinds >> (static_cast<uint64_t>(kind) & 63) & 1) != 0;
}

// Events that tell of something and change nothing that is live. They have an action and flags.
constexpr bool IsActivity(Kind kind) {
  return IsOneOf(KindsFrom(Kind::kContextCreate, Kind::kSync) |
                     KindsFrom(Kind::kPool, Kind::kModule) | KindsFrom(Kind::kCopy, Kind::kCopy) |
                     KindsFrom(Kind::kDevice, Kind::kWitness),
                 kind);
}
// Events with a name.
constexpr bool IsNote(Kind kind) {
  return IsOneOf(KindsFrom(Kind::kMark, Kind::kThread) | KindsFrom(Kind::kSource, Kind::kSource),
                 kind);
}

// What an activity did. The words are in ActionName (session/record.h).
enum class Action : uint8_t {
  kNone = 0,
  kCreate,
  kDestroy,
  kName,
  kImport,
  kTrim,
  kStream,  // what was waited for
  kEvent,
  kDevice,
  kInstantiate,
  kLaunch,
  kBeginCapture,
  kEndCapture,
  kLoad,
  kUnload,
  kHostToDevice,
  kDeviceToHost,
  kDeviceToDevice,
  kHostToHost,
  kPeer,
  kArray,
  kMemset,
  kAlloc,
  kFree,
  kPoolCreate,
  kPoolDestroy,
  kPoolTrim,
  kLast = kPoolTrim,
};

enum ActivityFlags : uint8_t {
  kCalledByAllocator = 1,  // a caching allocator did, to learn when streams are done with a block
  kSeenByCupti = 2,
  kInsideCall = 4,  // of a call that has an event of its own, which it made longer
  kStreamUnknown = 8,
  kNonBlocking = 16,  // of a stream that is made: it does not wait for the legacy default stream
};

// What a live allocation is for, as PyTorch's own calls show it; a set of bits. The values are those
// of gmt.Roles in proto/gmt.proto.
enum Role : uint32_t {
  kParameter = 1,  // a leaf of the autograd graph that requires a gradient
  kGradient = 2,   // what AccumulateGrad has left as a leaf's gradient
  kSaved = 4,      // some node of the graph keeps it for its backward pass
  kExpectsGradient = 8,  // a parameter that a graph leads to: a backward pass gives it a gradient
};
inline constexpr uint32_t kAllRoles = kParameter | kGradient | kSaved | kExpectsGradient;

// Kinds of memory. The values are those of gmt.Memory in proto/gmt.proto.
enum class Memory : uint8_t {
  kNone = 0,
  kDevice = 1,
  kManaged = 2,
  kPinned = 3,
  kRegistered = 4,
  kPool = 5,
  kVmm = 6,
  kArray = 7,
  kMipmapped = 8,
  kIpc = 9,
  kExternal = 10,
  kGraph = 11,
  kGraphics = 12,
  kMulticast = 13,
  kBlock = 14,
  kRegion = 15,
  kLast = kRegion,
};

// Name spaces of addresses and handles. One number can be live in several: a reservation and its
// first mapping share an address, and so do a segment and its first block.
enum class Space : uint8_t {
  kNone = 0,
  kDevice = 1,
  kReservation = 2,
  kMapping = 3,
  kPhysical = 4,
  kArray = 5,
  kPinned = 6,
  kPool = 7,
  kIpc = 8,
  kBlock = 9,
  kRegion = 10,
  kLast = kRegion,
};

inline constexpr uint8_t kNoDevice = 0xff;  // host memory, or the device is not known

}  // namespace gmt::session

#endif  // GMT_SESSION_VOCABULARY_H_
