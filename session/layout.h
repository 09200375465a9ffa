// session/layout.h
//
// The session: a file in shared memory (tmpfs or a memfd) that a traced process writes and its
// collector reads. This header is the contract between the two. The file is plain data with fixed
// offsets. The two sides may come from different builds, and either may die at any instruction.
// docs/session.md explains the design.
//
//   offset            section            one entry       what
//   0                 Header             4096            identity; complete before the file gets
//                                                        its name, constant afterwards
//   4096              Control            4096            mutable words: ring tail, counters,
//                                                        handshake, exit
//   sections[kInfo]   info text          -               "name\0value\0" pairs: argv, cwd, output,
//                                                        options, settings
//   sections[kRing]   ring               Slot, 64        history: the last `count` events
//   sections[kLiveKeys], [kLiveEntries]  8 + 64          state: what is allocated now
//   sections[kStackIndex]                8               hash indexes from contents to places in
//   sections[kTextIndex]                 8               the arena; each distinct stack, name and
//   sections[kCodeIndex]                 8               code object is stored once
//   sections[kModules]                   ModuleRecord    address ranges of modules, append-only
//   sections[kInFlight]                  InFlightSlot    the driver call that each thread is
//                                                        executing
//   sections[kContexts]                  ContextEntry    contexts seen, by the index that events
//                                                        carry
//   sections[kArena]                     8, words        contents of stacks, names, code objects
//   sections[kLiveLevel1] ...            8 + 64          further levels of the live table: first
//                                                        all keys of a level, then all its entries.
//                                                        Memory is allocated only on demand. Absent
//                                                        before minor version 2; count is 0 if
//                                                        space is scarce
// Rules
//   L1  All integers are little-endian and naturally aligned. Times are CLOCK_MONOTONIC
//       nanoseconds.
//   L2  A reader trusts nothing: it copies data, checks it against the file size, and maps the file
//       read-only.
//   L3  The major version changes if an old reader would misread the data, the minor version if it
//       would only miss something.
//   L4  The fields that identify a session and the program that can read it keep their places in
//       every major version: the header up to and including sections[kInfo], and the info text.

#ifndef GMT_SESSION_LAYOUT_H_
#define GMT_SESSION_LAYOUT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "session/vocabulary.h"

namespace gmt::session {

inline constexpr char kMagic[8] = {'G', 'M', 'T', 'S', 'E', 'S', 'S', '\n'};
inline constexpr uint32_t kAbiMajor = 4;
inline constexpr uint32_t kAbiMinor = 3;
inline constexpr uint32_t kByteOrder = 0x01020304;

// ---- Header -------------------------------------------------------------------------------------

enum SectionId : uint32_t {
  kInfo,
  kRing,
  kLiveKeys,
  kLiveEntries,
  kStackIndex,
  kTextIndex,
  kCodeIndex,
  kModules,
  kInFlight,
  kContexts,
  kArena,
  kLiveLevel1,
  kLiveLevel2,
  kLiveLevel3,
  kSectionCount,
};
// The sections that every session has.
inline constexpr uint32_t kFirstSectionCount = kArena + 1;

struct Section {
  uint64_t offset;  // from the start of the file; a multiple of 4096
  uint64_t stride;  // bytes of one entry
  uint64_t count;   // entries
};

struct Header {
  char magic[8];
  uint32_t abi_major;
  uint32_t abi_minor;
  uint32_t byte_order;
  uint32_t section_count;
  uint64_t file_size;

  uint64_t pid;  // as seen by the traced process
  // Field 22 of /proc/PID/stat. Together with boot_id it distinguishes the process from later
  // processes with the same pid.
  uint64_t start_ticks;
  uint8_t boot_id[16];
  uint64_t pid_namespace;  // inode
  uint64_t uid;

  uint64_t monotonic_ns;  // both clocks read at the same moment, t_ns = 0 of the recording
  uint64_t realtime_ns;

  Section sections[kSectionCount];
  uint8_t unused[4096 - 96 - kSectionCount * sizeof(Section)];
};
static_assert(offsetof(Header, pid) == 32);
static_assert(offsetof(Header, monotonic_ns) == 80);
static_assert(offsetof(Header, sections) == 96);
static_assert(sizeof(Header) == 4096);

// Names in the info section ("name\0value\0" ...). A name may occur several times. Readers ignore
// unknown names.
//   output         absolute path of the recording; the collector inherits it open as kOutputFd
//   run_id         shared by all processes of one `gpumemtrace run`
//   arg            one argument of the command line, in order
//   exe, cwd, hostname, shim (path of the preloaded library),
//   collector (path of the program that can read the session), version
//   rank, local_rank, world_size, node_rank, restart_count, job (session/launcher.h; "": not known)
//   api            "ID name": the API function that the number ID in events stands for
//   option         "KEY=VALUE": an option of the recording, as in GPUMEMTRACE
//   setting        "NAME=VALUE": an environment variable of the target that affects its memory use

// File descriptors that the preloaded library passes to the collector that it starts.
inline constexpr int kSessionFd = 3;
inline constexpr int kTargetPidFd = 4;  // missing if the kernel does not support pidfds
inline constexpr int kOutputFd = 5;  // created empty, locked (flock) while the recording is written

// ---- Control ------------------------------------------------------------------------------------

// Counts of failures and losses, each incremented where it happens. Never reset.
enum Counter : uint32_t {
  kAbandoned,        // a writer found its slot held by a writer one whole lap behind
  kStacksFull,       // an event lost its stack
  kTextsFull,        // an event lost a name
  kLiveFull,         // the live table had no free place for an allocation
  kUnrepresentable,  // a value does not fit into a live table key
  kBeforeSession,    // calls made while the session was being set up
  kNoRealFunction,   // a hook had no real function to call
  kInFlightFull,
  kModulesFull,
  kPassedUnhooked,     // a real function's pointer was returned unwrapped, no slot was free
  kContextsFull,       // an event lost its context
  kCodesFull,          // an interpreter frame of a new stack lost its name
  kActivitiesDropped,  // activities of CUPTI or NVTX dropped for lack of room
  kCounterCount,
};

// Facts about a process that are known only after its session was created.
enum Fact : uint32_t {
  kPythonSource,        // "on", or why there are no Python frames
  kPythonVersion,       // "3.11.7"
  kPytorchSource,       // "on" after the first block was reported
  kAutogradSource,      // "on", or why blocks of a backward pass have no forward stack
  kCuptiSource,         // "on" and what it reports, or why it is off
  kNvtxSource,          // "on" after the first call was seen
  kBeforeAttachSource,  // what is known of memory allocated before an attach, or why nothing is
  kRolesSource,         // "on", or why the roles of PyTorch's tensors are unknown
  kFactCount,
};

// Set in every attach number, so that a hook reads only one word to learn what it has to check and
// whether an attach is requested (preload/process/process.h).
inline constexpr uint32_t kAttachRequested = 1u << 31;

enum class Handshake : uint32_t {
  kNone = 0,
  kDone = 1,
};

enum class ExitKind : uint32_t {
  kUnknown = 0,
  kExited = 1,
  kSignalled = 2,
};

// Whether a process can be attached to, and for what reason.
enum class AttachGate : uint32_t {
  kNone = 0,      // no: it is recorded from its first GPU call to its end
  kDormant = 1,   // GPUMEMTRACE=dormant
  kInjected = 2,  // the library was injected into the running process (gpumemtrace_attach)
};

struct Control {
  // The next ticket. Has a cache line of its own because every event of every thread writes it.
  alignas(64) std::atomic<uint64_t> tail;

  alignas(64) std::atomic<uint64_t> counters[16];  // by Counter

  alignas(64) std::atomic<uint32_t> module_count;  // committed entries of kModules
  std::atomic<uint32_t>
      module_lock;  // tid of the appending thread; 0: free. Threads never wait for it.
  std::atomic<uint64_t> arena_used;    // words
  std::atomic<uint64_t> arena_backed;  // words backed by memory; the rest is only file space
  std::atomic<uint32_t> context_count;
  std::atomic<uint32_t> arena_errno;  // why the arena cannot grow further
  std::atomic<uint32_t> facts[8];     // by Fact: text ids; 0: unknown

  // Start and end. At a normal exit the preloaded library sets `closing` and waits for `finished`
  // for a limited time.
  alignas(64) std::atomic<uint32_t> collector_pid;  // 0: none has opened the session
  std::atomic<uint32_t> collector_errno;            // of execve, if starting the collector failed
  std::atomic<Handshake> closing;
  std::atomic<Handshake> finished;

  // How the process ended. Written by the exit handler of the preloaded library, or by `gpumemtrace
  // run` as the parent process.
  alignas(64) std::atomic<ExitKind> exit_kind;
  std::atomic<int32_t> exit_code;
  std::atomic<uint32_t> exit_known_by_parent;

  // Tickets that their writers abandoned; the newest overwrites the oldest. The index is
  // counters[kAbandoned] modulo the array's length. A reader does not wait for a ticket found here.
  alignas(64) std::atomic<uint64_t> abandoned_tickets[256];

  // Attach and detach (docs/session.md, "Attach"). A session with an attach gate is recorded to
  // only while a client is attached. Otherwise the sections after the info section have no memory,
  // and no process may touch them while attach_now is 0.
  alignas(64) std::atomic<AttachGate> attach_gate;  // constant after the session has its name
  // 0: no attach is requested. n | kAttachRequested: the n-th attach, counted from 1. The attaching
  // client sets it after attach_options, holding the lock (flock) of the session file; the
  // detaching client resets it to 0. The other fields about attaches hold the same numbers.
  std::atomic<uint32_t> attach_wanted;
  // The attach that is being recorded; 0: none, and nothing is written before the next attach.
  // Written by the preloaded library in hooked GPU calls.
  std::atomic<uint32_t> attach_now;
  // Why attach number attach_refused was not started. It is not retried.
  std::atomic<uint32_t> attach_errno;
  std::atomic<uint32_t> attach_refused;
  std::atomic<uint32_t> attach_last;  // the newest attach that was started
  // Where the history of attach_last begins, and the values of the counters at that moment. Calls
  // that other threads make in the next moment, while the process still switches, are not recorded.
  std::atomic<uint64_t> attach_first_ticket;
  std::atomic<uint64_t> attach_begin_ns;
  std::atomic<uint64_t> attach_counters[16];
  // In the format of GPUMEMTRACE, not null-terminated. Applied on top of the process's own options.
  std::atomic<uint32_t> attach_options_size;
  char attach_options[1020];

  // Number of further levels of the live table that have memory. kLiveGrowthEnded: no more will
  // get any.
  std::atomic<uint32_t> live_levels;
  std::atomic<uint32_t> live_errno;  // why growth ended

  // For an injected library. 1: the calls of the process bypass the library until
  // gpumemtrace_attach is called. A client that has requested an attach checks this afterwards.
  // Otherwise a request made while the process is detaching would never be noticed.
  std::atomic<uint32_t> slots_restored;

  uint8_t unused[4096 - 384 - 2048 - 1192 - 12];
};
static_assert(offsetof(Control, counters) == 64);
static_assert(offsetof(Control, module_count) == 192);
static_assert(offsetof(Control, arena_backed) == 208);
static_assert(offsetof(Control, facts) == 224);
static_assert(offsetof(Control, collector_pid) == 256);
static_assert(offsetof(Control, exit_kind) == 320);
static_assert(offsetof(Control, abandoned_tickets) == 384);
static_assert(offsetof(Control, attach_gate) == 2432);
static_assert(offsetof(Control, attach_wanted) == 2436);
static_assert(offsetof(Control, attach_first_ticket) == 2456);
static_assert(offsetof(Control, attach_options) == 2604);
static_assert(offsetof(Control, live_levels) == 3624);
static_assert(offsetof(Control, slots_restored) == 3632);
static_assert(sizeof(Control) == 4096);
static_assert(kCounterCount <= 16 && kFactCount <= 8);
static_assert(std::atomic<uint64_t>::is_always_lock_free &&
              std::atomic<uint32_t>::is_always_lock_free);

inline constexpr uint64_t kControlOffset = sizeof(Header);

// ---- Ring ---------------------------------------------------------------------------------------

// A slot of the ring: the commit word, the time and six words of payload.
//
//   word  bits
//   0     commit: 0 never used; kBusy | ticket while being written; ticket + 1 when complete
//   1     time_ns
//   2     value: address or handle
//           marks, ranges, threads, snapshots, sources, devices, naming of a stream: name (text id)
//           event_*, sync: the CUDA event; sample: free bytes
//   3     size: bytes
//           mark: index; range: number; source: status (text id); sample, device: total bytes;
//           role: set of Role; event_*, sync made by a caching allocator: the call's return address
//   4     stream: raw handle
//           map: physical handle; region, heap of regions: name (text id); mark, range: domain
//           (text id); role: class of the autograd node that saves the block (text id); device: PCI
//           bus id 0-31 and UUID 32-63 (text ids)
//   5     stack 0-31 · 32-63: block: forward stack; mark, range: color; activity: flags 0-7 and
//         priority 16-31
//   6     thread 0-23 · duration_ns 24-63, saturating (blocks: total_reserved / 512)
//   7     kind 0-7 · space, or action of an activity 8-15 · memory 16-23 · device 24-31 ·
//         context 32-39 · api 40-51 · result 52-63 (blocks: total_allocated / 512 in 32-63)
//
// A Linux tid has at most 22 bits. PyTorch's allocator works in multiples of 512 bytes, so its
// totals can represent up to 2 TiB and 512 TiB.
//
// If the tensor for which memory was allocated is known, bit 15 of word 7 (the highest bit of
// space) is set, and size and stream share their words with the id of the tensor's layout
// (TensorLayout, 32 bits):
//
//   3     size / 512 (driver memory: size) in 0-39 · lower 24 bits of the id in 40-63
//   4     stream 0-55 · upper 8 bits of the id in 56-63
//
// A live entry packs size and stream in the same way; its bit is bit 56 of `place`.
struct Slot {
  std::atomic<uint64_t> commit;
  std::atomic<uint64_t> words[7];
};
static_assert(sizeof(Slot) == 64);

inline constexpr uint64_t kBusy = uint64_t{1} << 63;

// The api number of memory allocated before the attach. It has its own name in the info section.
// Blocks have no api in the ring; the ones from before the attach have no stack and the allocation
// time attach_begin_ns.
inline constexpr uint16_t kBeforeAttachApi = 4095;

// ---- Live table ---------------------------------------------------------------------------------

// Keys are stored separately from entries so that a probe reads eight keys per cache line.
//
//   key = space << 60 | value. Space 15 marks the two states below; an unused key is 0.
inline constexpr uint64_t kKeyEmpty = 0;
inline constexpr uint64_t kKeyClaimed = uint64_t{15} << 60;  // a writer is filling the entry
inline constexpr uint64_t kKeyErased = kKeyClaimed | 1;      // free for the next insert
inline constexpr uint64_t kKeyValueMask = (uint64_t{1} << 60) - 1;

struct LiveEntry {
  std::atomic<uint64_t> version;  // odd while the entry is being written
  std::atomic<uint64_t> ticket;   // of the event that wrote it
  std::atomic<uint64_t> size;
  std::atomic<uint64_t> stream;  // as in the event; physical handle of a mapping
  std::atomic<uint64_t> time_ns;
  std::atomic<uint64_t> stacks;  // stack 0-31, forward stack 32-63
  // thread 0-23, kind 24-31, memory 32-39, device 40-47, context 48-55, has a layout 56
  std::atomic<uint64_t> place;
  // api 0-15; 16-47 number of further references (for a block: autograd nodes that save it); roles
  // 48-63
  std::atomic<uint64_t> api;
};
static_assert(sizeof(LiveEntry) == 64);

// Number of levels after the first, and a flag bit of Control::live_levels.
inline constexpr uint32_t kLiveLevels = kSectionCount - kLiveLevel1;
inline constexpr uint32_t kLiveGrowthEnded = 1u << 31;

// ---- Stacks, texts and code objects -------------------------------------------------------------

// An index word is tag << 40 | offset. The tag is the upper bits of the hash; the offset is the
// entry's place in the arena in units of 8 bytes, never 0. The offset is also the id of the stack,
// text or code object, so ids are not dense.
inline constexpr int kArenaOffsetBits = 40;

// A stack in the arena consists of its own innermost frames and a reference to another stack:
//
//   StackHeader
//   `own` frames, innermost first
//   the ids of the code objects of its own interpreter frames, in order, two per word, the first in
//   the lower half
//
// The remaining depth - own frames are the outermost frames of the stack `outer`, which precedes it
// in the arena.
struct StackHeader {
  uint16_t depth;
  uint16_t flags;       // StackFlags
  uint32_t generation;  // of the module log when the stack was recorded
  uint16_t own;
  uint16_t codes;  // interpreter frames among the own ones
  uint32_t outer;  // id; 0 if own == depth
  // Covers everything that identifies the stack: depth, flags, generation, all frames, and the
  // contents (not only the addresses) of the code objects of its interpreter frames.
  uint64_t digest[2];
};
static_assert(sizeof(StackHeader) == 32);

enum StackFlags : uint16_t {
  kStackTruncated = 1,  // outer frames are missing
  kStackPython = 2,     // it has interpreter frames
  // The position of some interpreter frames among the native ones is unknown. These frames follow
  // all native frames.
  kStackUnmerged = 4,
  kStackNoPython = 8,  // the thread ran Python, but its frames could not be read
};

// A frame is one word.
//   native        address in memory. With kExactFrame: of the instruction that a signal
//                 interrupted; otherwise the return address
//   interpreter   kInterpreterFrame · address of the code object / 8 in bits 19-62 · offset of the
//                 instruction in units of 2 bytes in bits 0-18: kBeforeInstructions if none has run
//                 yet, kMaxInstruction if it does not fit
inline constexpr uint64_t kExactFrame = uint64_t{1} << 62;
inline constexpr uint64_t kInterpreterFrame = uint64_t{1} << 63;
inline constexpr int kInstructionBits = 19;
inline constexpr uint32_t kMaxInstruction = (1u << kInstructionBits) - 1;
inline constexpr uint32_t kBeforeInstructions = kMaxInstruction - 1;
inline constexpr uint32_t kMaxStackDepth = 256;

constexpr uint64_t InterpreterFrame(uint64_t code, uint32_t instruction) {
  return kInterpreterFrame | code >> 3 << kInstructionBits |
         (instruction < kMaxInstruction ? instruction : kMaxInstruction);
}

constexpr uint64_t CodeAddress(uint64_t frame) {
  return (frame & ~kInterpreterFrame) >> kInstructionBits << 3;
}

// A text in the arena: one word with its length in bytes, then its bytes, zero-padded to a whole
// word.
inline constexpr uint32_t kMaxTextLength = 1024;

// What PyTorch requested when it allocated a block. Stored in the arena as the bytes of a text.
struct TensorLayout {
  uint64_t bytes;     // requested bytes
  uint8_t dtype;      // at::ScalarType
  uint8_t dimension;  // number of dimensions
  uint8_t unused[6];
  int64_t sizes[5];  // of the first dimensions; 0 after the last

  bool operator==(const TensorLayout&) const = default;
};
static_assert(sizeof(TensorLayout) == 56);
inline constexpr uint32_t kLayoutDimensions = 5;

// A code object in the arena: this header, then its line table, zero-padded to a whole word.
struct CodeHeader {
  uint16_t line_table;  // LineTable
  uint16_t flags;       // CodeFlags
  uint32_t first_line;
  uint32_t function, file;  // ids of texts
  uint64_t line_table_bytes;
};
static_assert(sizeof(CodeHeader) == 24);

// Format of a code object's line table, named after the first CPython version that used it.
enum class LineTable : uint16_t {
  kNone = 0,
  kPython39 = 1,   // co_lnotab (3.6 to 3.9)
  kPython310 = 2,  // co_linetable, pairs of bytes
  kPython311 = 3,  // co_linetable, location table
  kLast = kPython311,
};

enum CodeFlags : uint16_t {
  kLineTableCut = 1,  // it was longer than kMaxLineTable
};
inline constexpr uint32_t kMaxLineTable = 64 << 10;

// ---- Modules ------------------------------------------------------------------------------------

struct ModuleRecord {
  uint64_t start;  // of the address range [start, end)
  uint64_t end;
  uint64_t bias;  // address in memory minus address in the ELF file
  uint64_t seen_ns;
  // Incremented for each module that took over addresses of an earlier one and for each that was
  // unloaded. (An unloaded module's addresses are covered by a record without path and build-id.)
  // An address in a stack of generation G belongs to the newest record of generation <= G that
  // covers it.
  uint32_t generation;
  uint32_t build_id_size;
  uint8_t build_id[32];
  uint32_t path_size;
  char path[948];  // a longer path (none is known) loses its beginning
};
static_assert(sizeof(ModuleRecord) == 1024);

// ---- In-flight slots ----------------------------------------------------------------------------

// Held by a thread from just before until just after a driver call. thread 0: free.
struct InFlightSlot {
  std::atomic<uint32_t> thread;
  std::atomic<uint32_t> api;
  std::atomic<uint64_t> since_ns;
  std::atomic<uint64_t> size;
  std::atomic<uint64_t> stack;
  uint64_t unused[4];
};
static_assert(sizeof(InFlightSlot) == 64);

// ---- Contexts -----------------------------------------------------------------------------------

// Events carry the index + 1 of their context's entry. Entries are filled in order and keep their
// handle forever: a new context with a known handle gets the index of that handle.
struct ContextEntry {
  std::atomic<uint64_t> handle;  // CUcontext; 0: unused, like all entries after it
  std::atomic<uint64_t> device;  // device + 1; 0: unknown, or the context has been destroyed
};
static_assert(sizeof(ContextEntry) == 16);

}  // namespace gmt::session

#endif  // GMT_SESSION_LAYOUT_H_
