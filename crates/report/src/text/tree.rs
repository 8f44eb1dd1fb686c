//! Stacks as a tree, with their counts carried up.
//!
//! ```text
//!   allocs/iter  B/iter   share
//!         76.00   4,138   100 %  main → run → parse  src/parse.rs
//!         40.00   1,920  52.6 %    Header::push_value  src/header.rs:88
//!         36.00   2,218  47.4 %    Parser::name  src/parser.rs:118
//! ```
//!
//! Functions that are the only way on are one line. Listed frames are folded, unless everything is shown; a function
//! that calls itself is there once.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use heaptally_profile::frame::Frame;
use heaptally_profile::model::Counts;
use heaptally_profile::view::{RowView, Sort, WindowView};
use rustc_hash::FxHashMap;

use super::function::{FunctionIndex, FunctionTable};
use super::page::Page;
use super::stack::{in_room, is_listed};
use super::table::{Columns, Place, Table, sum};
use super::{Context, limited};
use crate::frame::source_at;
use crate::number::counted;
use crate::path::shorten;
use crate::width::width;

/// How many lines of one function are told.
const LINES: usize = 3;
/// What a function keeps of a line, however deep it stands.
const LEAST_COLUMNS: usize = 24;

/// Where the tree begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// Where threads do.
    TopDown,
    /// At call sites.
    BottomUp,
}

/// A function below others.
#[derive(Default)]
struct Node {
    function: FunctionIndex,
    counts: Counts,
    /// What is not below one of its children.
    itself: Counts,
    /// Where in it: the lines of its frames.
    lines: BTreeSet<u32>,
    /// Whether it is marked as inlined everywhere.
    inlined: bool,
    children: Vec<usize>,
}

struct Tree {
    /// The first one stands for the window.
    nodes: Vec<Node>,
    known: FxHashMap<(usize, FunctionIndex), usize>,
}

impl Tree {
    fn new() -> Self {
        Self { nodes: vec![Node::default()], known: FxHashMap::default() }
    }

    fn add<'p>(
        &mut self,
        functions: &FunctionTable<'_>,
        frames: impl Iterator<Item = Frame<'p>>,
        counts: &Counts,
    ) {
        let mut parent = 0;
        self.nodes[0].counts.add(counts);
        for frame in frames {
            let function = functions.index(&frame);
            let mut at = parent;
            // A function that called itself is there already.
            if parent == 0 || self.nodes[parent].function != function {
                at = *self.known.entry((parent, function)).or_insert_with(|| {
                    self.nodes.push(Node { function, inlined: true, ..Node::default() });
                    let at = self.nodes.len() - 1;
                    self.nodes[parent].children.push(at);
                    at
                });
                self.nodes[at].counts.add(counts);
            }
            let node = &mut self.nodes[at];
            node.inlined &= frame.inlined;
            if frame.line > 0 && node.lines.len() <= LINES {
                node.lines.insert(frame.line);
            }
            parent = at;
        }
        self.nodes[parent].itself.add(counts);
    }

    /// Sorts the children of each node: most first, then by name.
    fn sort(&mut self, sort: Sort) {
        for at in 0..self.nodes.len() {
            let mut children = std::mem::take(&mut self.nodes[at].children);
            children.sort_by(|&a, &b| {
                let (a, b) = (&self.nodes[a], &self.nodes[b]);
                (Reverse(sort.key(&a.counts)), a.function).cmp(&(Reverse(sort.key(&b.counts)), b.function))
            });
            self.nodes[at].children = children;
        }
    }

    /// A node and those that follow it without a choice.
    fn chain(&self, first: usize) -> Vec<usize> {
        let mut chain = vec![first];
        let mut at = first;
        while let [only] = self.nodes[at].children[..]
            && self.nodes[only].counts == self.nodes[at].counts
        {
            chain.push(only);
            at = only;
        }
        chain
    }
}

/// A line of the tree: a chain, at a depth.
struct Branch {
    depth: usize,
    chain: Vec<usize>,
}

/// The tree of a window.
pub(super) fn tree(page: &mut Page, context: &Context<'_>, window: &WindowView<'_>, direction: Direction) {
    let functions = FunctionTable::new(context.profile);
    let mut tree = Tree::new();
    for row in &window.rows {
        let path = path(context, row);
        match direction {
            Direction::TopDown => tree.add(&functions, path.into_iter().rev(), &row.row.counts),
            Direction::BottomUp => tree.add(&functions, path.into_iter(), &row.row.counts),
        }
    }
    tree.sort(context.options.sort);
    let columns = Columns::of(window.window, context.options.sort, window.counts)
        .known_to(&context.profile.environment);
    let shown = shown(&tree, context, &columns);

    let mut table = Table::new(columns.titles(), "");
    let mut texts = Vec::new();
    // Depth first, as it is read. What is not shown of a node is summed up behind its children.
    let mut open = vec![(0_usize, 0_usize, tree.nodes[0].children.clone().into_iter())];
    while let Some((parent, depth, children)) = open.last_mut() {
        let (parent, depth) = (*parent, *depth);
        match children.find(|child| shown.contains(child)) {
            Some(child) => {
                let chain = tree.chain(child);
                let end = chain.last().copied().unwrap_or(child);
                table.push(columns.cells(&tree.nodes[child].counts));
                texts.push(Text::Branch(Branch { depth, chain }));
                open.push((end, depth + 1, tree.nodes[end].children.clone().into_iter()));
            }
            None => {
                let hidden: Vec<usize> = tree.nodes[parent]
                    .children
                    .iter()
                    .copied()
                    .filter(|child| !shown.contains(child))
                    .collect();
                let itself = tree.nodes[parent].itself;
                if itself.allocations > 0 && hidden.len() < tree.nodes[parent].children.len() && parent != 0 {
                    table.push(columns.cells(&itself));
                    texts.push(Text::Itself(depth));
                }
                // Where none of the children is shown, their parent says it all.
                if !hidden.is_empty() && (parent == 0 || hidden.len() < tree.nodes[parent].children.len()) {
                    table.push(columns.cells(&sum(hidden.iter().map(|&at| &tree.nodes[at].counts))));
                    texts.push(Text::More(depth, hidden.len()));
                }
                open.pop();
            }
        }
    }

    let place = Place::of(&table, context.options.width);
    let mut lines = table.lines();
    page.line(&lines.next().unwrap_or_default());
    for (cells, text) in lines.zip(&texts) {
        match text {
            Text::Branch(branch) => page.row(
                &cells,
                &branch_text(context, &tree, &functions, direction, branch, place.room),
                place,
            ),
            Text::Itself(depth) => page.line(&format!("{cells}{}(itself)", "  ".repeat(*depth))),
            Text::More(depth, more) => {
                let more = counted(*more as u64, "more", "more");
                page.line(&format!("{cells}{}… {more}", "  ".repeat(*depth)));
            }
        }
    }
    if texts.iter().any(|text| matches!(text, Text::More(..))) {
        page.line("  --limit 0 shows all");
    }
}

enum Text {
    /// What a function allocates beside its children.
    Itself(usize),
    Branch(Branch),
    More(usize, usize),
}

/// The frames of a row that are in the tree, from the call site outwards.
fn path<'p>(context: &Context<'p>, row: &RowView<'p>) -> Vec<Frame<'p>> {
    let frames: Vec<Frame<'p>> = row.frames(context.profile).collect();
    let listed = |frame: &Frame<'_>| is_listed(context.profile, context.sites, frame);
    if context.options.full {
        return frames;
    }
    let at = row.call_site(context.profile, context.sites).map_or(0, |(at, _)| at);
    let keeps_all = frames.get(at).is_none_or(listed);
    frames.into_iter().skip(at).filter(|frame| keeps_all || !listed(frame)).collect()
}

/// The nodes that begin a line: those that count most, each with all above it.
fn shown(tree: &Tree, context: &Context<'_>, columns: &Columns) -> BTreeSet<usize> {
    let sort = context.options.sort;
    // Of equal ones the one that is read first: the numbers of a walk in that order.
    let mut position = vec![0_usize; tree.nodes.len()];
    let mut stack = vec![0];
    let mut next = 0;
    while let Some(at) = stack.pop() {
        position[at] = next;
        next += 1;
        stack.extend(tree.nodes[at].children.iter().rev());
    }
    let mut waiting = BinaryHeap::new();
    let push = |waiting: &mut BinaryHeap<_>, parent: usize| {
        for &child in &tree.nodes[parent].children {
            if columns.reaches(&tree.nodes[child].counts, context.options.min) {
                waiting.push((sort.key(&tree.nodes[child].counts), Reverse(position[child]), child));
            }
        }
    };
    push(&mut waiting, 0);
    let mut shown = BTreeSet::new();
    let most = limited(tree.nodes.len(), context.options.limit);
    while shown.len() < most
        && let Some((.., at)) = waiting.pop()
    {
        shown.insert(at);
        let end = tree.chain(at).last().copied().unwrap_or(at);
        push(&mut waiting, end);
    }
    shown
}

/// The functions of a branch, and where its last one is.
fn branch_text(
    context: &Context<'_>,
    tree: &Tree,
    functions: &FunctionTable<'_>,
    direction: Direction,
    branch: &Branch,
    room: Option<usize>,
) -> Vec<String> {
    let indent = "  ".repeat(branch.depth);
    let nodes: Vec<&Node> = branch.chain.iter().filter_map(|&at| tree.nodes.get(at)).collect();
    // The function that the line is about: the innermost one.
    let inner = if direction == Direction::TopDown { nodes.last() } else { nodes.first() };
    let Some(inner) = inner else { return vec![indent] };
    let mark = inner.inlined.then_some("(inlined)");
    let texts_of =
        |node: &Node| functions.get(node.function).map(|function| function.texts()).unwrap_or_default();
    let name_of = |node: &Node| texts_of(node)[0].clone();
    let short_of = |node: &Node| texts_of(node)[1].clone();
    let file = functions.get(inner.function).map_or("", |function| function.file);
    let source = (!file.is_empty()).then(|| {
        let file = source_at(&shorten(file, context.options.project.as_deref()), 0);
        let lines: Vec<String> = inner.lines.iter().map(u32::to_string).collect();
        if (1..=LINES).contains(&lines.len()) { format!("{file}:{}", lines.join(",")) } else { file }
    });
    let name = name_of(inner);
    let others = nodes.iter().filter(|node| !std::ptr::eq(**node, *inner)).map(|node| short_of(node));
    let count = nodes.len() - 1;
    let room = room.map(|room| room.saturating_sub(width(&indent)).max(LEAST_COLUMNS));
    let (before, after, short_before, short_after) = match direction {
        _ if count == 0 => Default::default(),
        Direction::TopDown => {
            let before: String = others.map(|name| format!("{name} → ")).collect();
            (before, String::new(), "… → ".to_owned(), String::new())
        }
        Direction::BottomUp => {
            let after: String = others.map(|name| format!(" ← {name}")).collect();
            (String::new(), after, String::new(), " ← …".to_owned())
        }
    };
    let whole = in_room(&name, &short_of(inner), mark, source.clone(), None).concat();
    let fits = room.is_none_or(|room| width(&before) + width(&whole) + width(&after) <= room);
    let (before, after) = if fits { (before, after) } else { (short_before, short_after) };
    let room = room.map(|room| room.saturating_sub(width(&before) + width(&after)));
    let mut text = in_room(&name, &short_of(inner), mark, source, room);
    if let Some(first) = text.first_mut() {
        first.push_str(&after);
    }
    let mut lines = text.into_iter();
    let first = lines.next().unwrap_or_default();
    std::iter::once(format!("{indent}{before}{first}"))
        .chain(lines.map(|line| format!("{indent}{line}")))
        .collect()
}
