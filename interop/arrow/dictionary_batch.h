/* interop/arrow/dictionary_batch.h
 *
 * The message of Arrow IPC that nanoarrow 0.9 cannot encode: a dictionary. It is a record batch of
 * one column inside a message of another type. It is C, as is the code that flatcc generates.
 */

#ifndef GMT_INTEROP_ARROW_DICTIONARY_BATCH_H_
#define GMT_INTEROP_ARROW_DICTIONARY_BATCH_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the message that makes the values of `record_batch`, a message without its prefix, the
 * dictionary `id` of a stream. The body of both is the same. The caller frees the result, of
 * `*size` bytes. Returns null if there is no memory for it. */
void* gmt_arrow_dictionary_batch(const void* record_batch, int64_t id, size_t* size);

#ifdef __cplusplus
}
#endif

#endif  // GMT_INTEROP_ARROW_DICTIONARY_BATCH_H_
