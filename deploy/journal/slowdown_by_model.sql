-- What swapping costs: step time with swaps / without, of the graphs that swap.
SELECT model, strategy, count(*) AS requests, avg(slowdown) AS mean_slowdown,
       median(slowdown) AS median_slowdown, max(slowdown) AS max_slowdown,
       sum(peak_before_bytes - peak_after_bytes) AS saved_bytes
FROM read_json('journal*.jsonl', format = 'newline_delimited', ignore_errors = true, columns = {
  time: 'TIMESTAMP', model: 'VARCHAR', strategy: 'VARCHAR', outcome: 'VARCHAR',
  swapped_tensors: 'BIGINT', slowdown: 'DOUBLE', peak_before_bytes: 'BIGINT',
  peak_after_bytes: 'BIGINT'})
WHERE time IS NOT NULL AND outcome = 'rewritten' AND swapped_tensors > 0
GROUP BY model, strategy
ORDER BY mean_slowdown DESC NULLS LAST, model, strategy;
