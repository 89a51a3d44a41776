-- Who swaps most: what one step of each rewritten graph copies, both ways.
SELECT "user", model, count(*) AS requests,
       sum(swap_out_bytes + swap_in_bytes) AS swap_bytes_per_step,
       max(host_peak_bytes) AS max_host_bytes
FROM read_json('journal*.jsonl', format = 'newline_delimited', ignore_errors = true, columns = {
  time: 'TIMESTAMP', "user": 'VARCHAR', model: 'VARCHAR', outcome: 'VARCHAR',
  swapped_tensors: 'BIGINT', swap_out_bytes: 'BIGINT', swap_in_bytes: 'BIGINT',
  host_peak_bytes: 'BIGINT'})
WHERE time IS NOT NULL AND outcome = 'rewritten' AND swapped_tensors > 0
GROUP BY "user", model
ORDER BY swap_bytes_per_step DESC NULLS LAST, "user", model;
