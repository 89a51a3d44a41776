-- What did not fit, and by how much: the largest need that is known, and the budget of that request.
SELECT "user", model, machine, count(*) AS requests, max(need_bytes) AS need_bytes,
       arg_max(budget_bytes, need_bytes) AS budget_bytes
FROM read_json('journal*.jsonl', format = 'newline_delimited', ignore_errors = true, columns = {
  time: 'TIMESTAMP', "user": 'VARCHAR', model: 'VARCHAR', machine: 'VARCHAR', outcome: 'VARCHAR',
  need_bytes: 'BIGINT', budget_bytes: 'BIGINT'})
WHERE time IS NOT NULL AND outcome = 'does_not_fit'
GROUP BY "user", model, machine
ORDER BY requests DESC, "user", model, machine;
