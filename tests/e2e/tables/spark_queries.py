"""Answers SQL with Spark in local mode over the Parquet that gpumemtrace.to_parquet() has written. Run with the Python of an
environment with pyspark (scripts/setup --all); reads a request and prints the answers, both as JSON.

Request: {"folder": PATH, "tables": [NAME...], "rank": NUMBER or null for all, "queries": [SQL...]}
Answer:  [[ROW...]...], in the order of the queries
"""

import json
import sys

from pyspark.sql import SparkSession


def main():
    request = json.load(sys.stdin)
    spark = (SparkSession.builder.master("local[2]").appName("gpumemtrace").config("spark.ui.enabled", "false")
             .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
             .config("spark.sql.shuffle.partitions", "2").getOrCreate())
    spark.sparkContext.setLogLevel("ERROR")
    for name in request["tables"]:
        table = spark.read.parquet(f"{request['folder']}/{name}")
        # Spark reads only the directories of this rank.
        (table if request["rank"] is None else table.where(f"rank = {request['rank']}")).createOrReplaceTempView(name)
    spark.sql("SELECT * FROM memory WHERE kind = 'block'").createOrReplaceTempView("blocks")
    spark.sql("SELECT * FROM memory WHERE holds_blocks = 1").createOrReplaceTempView("segments")
    texts = {row.id: row.text for row in spark.sql("SELECT id, text FROM stacks").collect()}
    spark.udf.register("stack_text", texts.get)
    answers = [[list(row) for row in spark.sql(sql).collect()] for sql in request["queries"]]
    json.dump(answers, sys.stdout)
    spark.stop()


if __name__ == "__main__":
    main()
