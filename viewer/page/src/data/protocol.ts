// The questions that the page asks and the answers that it gets, from the server (http_source.ts;
// C++ in viewer/server, viewer/index, viewer/questions) or from the standalone file that the page
// is (embedded_source.ts).
//
// There are three ways to name a moment:
//   event  number of births and deaths of memory so far; used by cursors, links and JSON
//   time   ns since the recording began
//   step   of the training loop, from 1: 12.25 is a quarter (of its events) into step 12
// An Axis is one of them. A position on it is a plain number. Events order everything; two events
// may have the same time.
//
// A lane is what a timeline shows: the memory of one heap on one device, or host memory. Heaps are
// layers (PyTorch's blocks are in the driver's segments), so lanes must not be added up.
//
// Terms: block (one piece of memory from birth to death), band (its picture in the stacked layout),
// rest (what is too small or too short to be a band), segment (driver memory in which a caching
// allocator places its blocks), stack, lane, step, mark, phase.

export * from './protocol/details';
export * from './protocol/events';
export * from './protocol/moments';
export * from './protocol/ranks';
export * from './protocol/recording';
export * from './protocol/tables';
export * from './protocol/tiles';
