// preload/base/export.h
//
// How hooks become symbols of the library.
//
// A runtime function is exported once per runtime, under that runtime's version node, so that each
// caller reaches the runtime that it was linked with. The newest is the default, and first in
// exports.map: unversioned callers bind to it.

#ifndef GMT_PRELOAD_BASE_EXPORT_H_
#define GMT_PRELOAD_BASE_EXPORT_H_

#define GMT_EXPORT extern "C" __attribute__((visibility("default"), used))

// Gives gmt_NAME_SUFFIX its public name, NAME@NODE.
#define GMT_VERSIONED(name, suffix, node) \
  asm(".symver gmt_" #name "_" #suffix ", " #name node ", remove");

// define(slot, suffix, node, ...) for each runtime; slots are those of kRuntimeNodes
// (preload/hooks/hook.h).
#define GMT_FOR_EACH_RUNTIME(define, ...)                     \
  define(0, v11, "@libcudart.so.11.0", __VA_ARGS__)           \
      define(1, v12, "@libcudart.so.12", __VA_ARGS__)         \
          define(2, v13, "@libcudart.so.13", __VA_ARGS__)     \
              define(3, v14, "@libcudart.so.14", __VA_ARGS__) \
                  define(4, v15, "@@libcudart.so.15", __VA_ARGS__)

#endif  // GMT_PRELOAD_BASE_EXPORT_H_
