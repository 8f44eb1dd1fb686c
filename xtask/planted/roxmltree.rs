//! Reads XML and walks it.
mod harness;

use std::hint::black_box;

use roxmltree::{Document, ParsingOptions};

const TEXT: &str = "<?xml version='1.0'?>\n<!DOCTYPE doc [ <!ENTITY who \"a <b>name</b> of <i>someone</i>\"> ]>\n\
<!-- first --><?run it?>\n<doc xmlns='urn:one' xmlns:two='urn:two' two:id=\"7 &amp; &#x41;\">\n\
 <two:row n='1' two:n='2'>text &who; &lt;end&gt;</two:row>\n <row/><![CDATA[ raw <x> ]]> tail\r\n line\n\
 <deep xmlns:three='urn:three'><three:er three:a=' x\ty '><est/></three:er></deep></doc>";

fn work() -> usize {
    let options = ParsingOptions { allow_dtd: true, nodes_limit: 200, ..ParsingOptions::default() };
    let document = Document::parse_with_options(black_box(TEXT), options).expect("XML");
    let mut count = 0;
    for node in document.descendants() {
        count += node.tag_name().name().len() + node.text().map_or(0, str::len) + node.tail().map_or(0, str::len);
        count += node.attributes().map(|attribute| attribute.value().len() + attribute.name().len()).sum::<usize>();
        count += node.namespaces().map(|namespace| namespace.uri().len()).sum::<usize>();
        count += node.ancestors().count() + node.children().rev().count();
        count += node.lookup_prefix("urn:two").map_or(0, str::len) + node.lookup_namespace_uri(Some("two")).map_or(0, str::len);
        count += node.attribute(("urn:two", "n")).map_or(0, str::len) + usize::from(node.has_tag_name(("urn:one", "row")));
        count += node.next_sibling_element().map_or(0, |next| next.tag_name().name().len()) + node.range().len();
        count += document.text_pos_at(node.range().start).col as usize;
    }
    let last = document.root_element().last_element_child().map_or(0, |node| node.descendants().filter(|node| node.is_element()).count());
    let broken: usize = ["<a><b></a>", "<a b='1' b='2'/>", "<a>&none;</a>", "<a", "<a>\u{1}</a>", "<x:a/>"]
        .iter()
        .map(|text| Document::parse(black_box(text)).map_or_else(|error| error.to_string().len(), |_| 0))
        .sum();
    let shown = format!("{:?}{:?}", document.root_element().tag_name(), document.root_element().first_element_child()).len();
    count + last + broken + shown
}

fn main() {
    println!("{}", work());
    harness::measure(20, || {
        black_box(work());
    });
}
