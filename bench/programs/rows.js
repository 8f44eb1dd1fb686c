// JSON there and back, as services do: node rows.js ROUNDS. Prints one line of JSON: the rounds and their nanoseconds.
const rounds = Number(process.argv[2]);
const rows = Array.from({ length: 400 }, (_, i) => ({
    id: i,
    name: `row ${i} of a table`,
    tags: ["a".repeat(i % 40), "b", String(i)],
    at: [i / 7, -i, null, true],
}));
let text = JSON.stringify(rows);
const start = process.hrtime.bigint();
for (let round = 0; round < rounds; round++) {
    if (JSON.parse(Buffer.from(text).toString()).length !== rows.length) process.exit(1);
    text = JSON.stringify(rows);
}
console.log(JSON.stringify({ pairs: rounds, wall_ns: Number(process.hrtime.bigint() - start) }));
