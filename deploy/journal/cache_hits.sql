-- How many rewrites of each day were answered without work of their own, and how fast.
SELECT CAST(time AS DATE) AS day, answered_from, count(*) AS requests,
       count(*) / sum(count(*)) OVER (PARTITION BY day) AS share, median(ms) AS median_ms
FROM read_json('journal*.jsonl', format = 'newline_delimited', ignore_errors = true, columns = {
  time: 'TIMESTAMP', answered_from: 'VARCHAR', ms: 'DOUBLE'})
WHERE time IS NOT NULL AND answered_from IS NOT NULL
GROUP BY day, answered_from
ORDER BY day, answered_from;
