// format/messages_fwd.h
//
// Forward declarations of the messages of proto/gmt.proto, for headers that only pass them on.
// Sources that access a message include "proto/gmt.pb.h". Headers avoid it because it expands to
// 150,000 lines (tests/tree/parsed_lines.py).

#ifndef GMT_FORMAT_MESSAGES_FWD_H_
#define GMT_FORMAT_MESSAGES_FWD_H_

namespace gmt {

class Aggregates;
class Body;
class Checkpoint;
class Chunk;
class Definitions;
class Exit;
class Facts;
class Frames;
class Gap;
class Header;
class Live;
class Losses;
class Sample;
class Setting;
class Snapshot;
class SnapshotDelta;
class SnapshotTaken;
class Stacks;
class Symbols;

}  // namespace gmt

#endif  // GMT_FORMAT_MESSAGES_FWD_H_
