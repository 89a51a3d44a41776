# Requests of each hour by outcome; those without one by reason, or by method if they succeeded.
[inputs | fromjson? | objects
 | select(.time | type == "string" and test("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:"))
 | {hour: (.time[:13] + ":00Z"), what: ((.outcome // .reason // .method // "?") | tostring)}]
| group_by(.hour)
| map({hour: .[0].hour, requests: length,
       by_outcome: (group_by(.what) | map({key: .[0].what, value: length}) | from_entries)})[]
