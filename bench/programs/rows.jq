# Objects made, grouped and written: jq -n --argjson rounds ROUNDS -f rows.jq
[range($rounds) | {id: ., name: "row \(.) of a table", group: (. % 17), tags: ["a" * (. % 40), "b", tostring]}]
| group_by(.group)
| map({group: .[0].group, count: length, names: (map(.name | ascii_upcase) | join(",") | length)})
