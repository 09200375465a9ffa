#include "cli/manual/documentation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gmt::cli {
namespace {

using testing::ElementsAre;
using testing::FieldsAre;
using testing::IsEmpty;

constexpr char kPage[] = R"(
| question | command |
|---|---|
| Why did `it` run out? | `gpumemtrace oom run.gmt` | [oom](oom.md) |
| Anything else | `gpumemtrace query F SQL` writes rows |

| `oom` | explains why, as in [oom.md](oom.md), and more ([oom.md](oom.md#why)) |
| `export --format html` | writes a page |
| `attach`, `detach` | starts and stops `it` |

```console
$ gpumemtrace oom run.gmt
$ gpumemtrace oom other.gmt --json | head -n 1
Out of memory
```
```sh
gpumemtrace attach PID    # of a running process
```
gpumemtrace oom in-prose.gmt
)";

TEST(DocumentationTest, ExamplesComeFromTablesAndCode) {
  EXPECT_THAT(ExamplesOf("oom", kPage),
              ElementsAre(FieldsAre("gpumemtrace oom run.gmt", "Why did it run out?"),
                          FieldsAre("gpumemtrace oom other.gmt --json", "")));
  EXPECT_THAT(ExamplesOf("query", kPage),
              ElementsAre(FieldsAre("gpumemtrace query F SQL", "Anything else")));
  EXPECT_THAT(ExamplesOf("attach", kPage),
              ElementsAre(FieldsAre("gpumemtrace attach PID", "of a running process")));
  EXPECT_THAT(ExamplesOf("que", kPage), IsEmpty());
}

TEST(DocumentationTest, PurposesArePlainText) {
  EXPECT_THAT(PurposesOf("oom", kPage), ElementsAre("explains why, as in oom.md, and more"));
  EXPECT_THAT(PurposesOf("export", kPage), ElementsAre("export --format html: writes a page"));
  EXPECT_THAT(PurposesOf("detach", kPage), ElementsAre("starts and stops it"));
  EXPECT_THAT(PurposesOf("view", kPage), IsEmpty());
}

}  // namespace
}  // namespace gmt::cli
