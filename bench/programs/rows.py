# JSON there and back, as scripts do: python3 rows.py ROUNDS. Prints one line of JSON: the rounds and their nanoseconds.
import json
import sys
import time

rounds = int(sys.argv[1])
rows = [
    {"id": i, "name": f"row {i} of a table", "tags": ["a" * (i % 40), "b", str(i)], "at": [i / 7, -i, None, True]}
    for i in range(400)
]
text = json.dumps(rows)
start = time.monotonic_ns()
for _ in range(rounds):
    assert len(json.loads(text)) == len(rows)
    text = json.dumps(rows)
print(json.dumps({"pairs": rounds, "wall_ns": time.monotonic_ns() - start}))
