//! The words that stand for frames in a list of callers, each made once: stacks share most of theirs.

use std::cell::RefCell;
use std::rc::Rc;

use heaptally_profile::frame::Frame;
use heaptally_profile::model::LocationId;
use rustc_hash::FxHashMap;

use crate::frame::{mark, short_names};
use crate::width::{cut_middle, width};

/// What one name may take of a terminal, or half of a wide one.
const NAME_COLUMNS: usize = 48;
/// What a line holds beside a name.
const BESIDE_COLUMNS: usize = 8;

/// A word.
#[derive(Clone, Debug)]
pub(super) struct Word {
    /// Equal words have equal numbers, which are faster to compare.
    number: usize,
    pub(super) text: Rc<str>,
    pub(super) columns: usize,
}

impl PartialEq for Word {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

/// All words of a report.
#[derive(Debug, Default)]
pub(super) struct Words {
    of_text: RefCell<FxHashMap<Rc<str>, Word>>,
    of_frame: RefCell<FxHashMap<FrameInRoom, Word>>,
    of_site: RefCell<FxHashMap<SiteInRoom, Rc<[String]>>>,
}

/// A frame by its location and line, and how many columns there are.
type FrameInRoom = (LocationId, usize, Option<usize>);
/// The same with the line of the source that is told.
type SiteInRoom = (FrameInRoom, u32);

impl Words {
    /// The word of a text.
    pub(super) fn of_text(&self, text: &str) -> Word {
        let mut known = self.of_text.borrow_mut();
        if let Some(word) = known.get(text) {
            return word.clone();
        }
        let word = Word { number: known.len(), text: Rc::from(text), columns: width(text) };
        known.insert(Rc::clone(&word.text), word.clone());
        word
    }

    /// The word of a frame: its name without parameters, and its mark. Where there is little room the name loses its
    /// middle.
    pub(super) fn of_frame(&self, frame: &Frame<'_>, room: Option<usize>) -> Word {
        let key = (frame.location, frame.line_index, room);
        if let Some(word) = self.of_frame.borrow().get(&key) {
            return word.clone();
        }
        let mark = mark(frame).map(|mark| format!(" {mark}")).unwrap_or_default();
        let [_, name] = short_names(frame);
        let text = match room {
            Some(room) => {
                let most = NAME_COLUMNS.max(room / 2).min(room);
                let columns = most.saturating_sub(width(&mark) + BESIDE_COLUMNS);
                format!("{}{mark}", cut_middle(&name, columns))
            }
            None => format!("{name}{mark}"),
        };
        let word = self.of_text(&text);
        self.of_frame.borrow_mut().insert(key, word.clone());
        word
    }

    /// The lines of a call site, made by `lines` when they are not known. Its line in the source may have been taken away.
    pub(super) fn of_site(
        &self,
        frame: &Frame<'_>,
        room: Option<usize>,
        lines: impl FnOnce() -> Vec<String>,
    ) -> Rc<[String]> {
        let key = ((frame.location, frame.line_index, room), frame.line);
        if let Some(lines) = self.of_site.borrow().get(&key) {
            return Rc::clone(lines);
        }
        let lines: Rc<[String]> = lines().into();
        self.of_site.borrow_mut().insert(key, Rc::clone(&lines));
        lines
    }
}
