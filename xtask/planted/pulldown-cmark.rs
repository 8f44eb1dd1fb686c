//! Makes HTML of Markdown.
mod harness;

use std::hint::black_box;

use pulldown_cmark::{Event, Options, Parser, TextMergeStream, html};

const TEXT: &str = "# Title {#id .class}\n\nSome *emphasis*, **strong** and ~~gone~~ `code`, a [link](https://example.org \"title\"), an\n\
<b>inline</b> and ![image](a.png).\n\n> A quote\n> goes on.\n\n* one\n* two\n    1. nested\n    2. list\n\n- [x] done\n- [ ] open\n\n\
| a | b |\n|---|:-:|\n| 1 | `2` |\n| 3 | 4 |\n\n```rust\nfn main() {}\n```\n\n<div>\nblock\n</div>\n\nA note[^1] and a [reference].\n\n\
[^1]: The note.\n\n[reference]: /url 'text'\n\nSetext\n======\n\n***\n\n&amp; &copy; \\* \"quotes\" -- dashes...\n\n    indented\n";

fn work() -> usize {
    let mut out = String::new();
    html::push_html(&mut out, Parser::new_ext(black_box(TEXT), Options::all()));
    let events: Vec<Event<'_>> = TextMergeStream::new(Parser::new(TEXT)).collect();
    let texts = events.iter().filter(|event| matches!(event, Event::Text(_))).count();
    let ranges = Parser::new_ext(TEXT, Options::ENABLE_TABLES).into_offset_iter().map(|(_, range)| range.len()).sum::<usize>();
    out.len() + texts + ranges
}

fn main() {
    println!("{}", work());
    harness::measure(20, || {
        black_box(work());
    });
}
