# Rewrites by machine: how many swap, fit without swaps and do not fit; the memory that they save.
[inputs | fromjson? | objects | select((.time | type == "string") and (.machine | type == "string"))]
| group_by(.machine)
| map({machine: .[0].machine, requests: length,
       rewritten: map(select(.outcome == "rewritten")) | length,
       nothing_to_do: map(select(.outcome == "nothing_to_do")) | length,
       does_not_fit: map(select(.outcome == "does_not_fit")) | length,
       saved_bytes: map(select(.outcome == "rewritten")
                        | (.peak_before_bytes | numbers) - (.peak_after_bytes | numbers)) | add})[]
