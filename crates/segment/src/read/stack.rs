//! Frames: nodes that are alike made one, each with its module.

use core::mem::{offset_of, size_of};
use std::boxed::Box;
use std::collections::HashMap;
use std::vec;
use std::vec::Vec;

use super::module::ModuleIndex;
use super::source::{AreaSource, Bytes};
use super::{Error, Frame, Link};
use crate::layout::{
    ASYNC_BROKEN, FIRST_NODE, NODE_ADDRESS_MASK, NODE_ASYNC, NODE_ELIDED, NODE_INTERRUPTED, NODE_LIMIT,
    NODE_RESUMED, NODE_SIGNAL, NODES, Node, Root,
};

const NODES_PER_BLOCK: u32 = 4096;

/// Reads nodes as they are asked for, so that only those are held that something refers to.
#[derive(Debug)]
pub(super) struct Stacks<'a> {
    area: AreaSource<'a>,
    used: u32,
    modules: &'a ModuleIndex,
    blocks: HashMap<u32, Box<[u8]>>,
    /// What became of each node that was asked for; `None`: it, or a node towards the root, is damaged.
    known: HashMap<u32, Option<Link>>,
    ids: HashMap<Frame, usize>,
    /// What tasks were created by, as far as it was not asked for.
    origins: Vec<u32>,
    frames: Vec<Frame>,
}

impl<'a> Stacks<'a> {
    pub(super) fn new(area: AreaSource<'a>, used: u32, modules: &'a ModuleIndex) -> Self {
        Self {
            area,
            used: used.min(NODE_LIMIT),
            modules,
            blocks: HashMap::new(),
            known: HashMap::new(),
            ids: HashMap::new(),
            origins: Vec::new(),
            frames: Vec::new(),
        }
    }

    /// What the tasks were created by that were met so far, and those whose tasks are met with that.
    pub(super) fn take_origins(&mut self) -> Result<HashMap<u32, Link>, Error> {
        let mut origins = HashMap::new();
        while let Some(number) = self.origins.pop() {
            if origins.contains_key(&number) {
                continue;
            }
            if let Some(link) = self.resolve(number)? {
                origins.insert(number, link);
            }
        }
        Ok(origins)
    }

    pub(super) fn into_frames(self) -> Vec<Frame> {
        self.frames
    }

    /// What a node's number stands for; `None`: a node that is half-written or makes no sense.
    pub(super) fn resolve(&mut self, number: u32) -> Result<Option<Link>, Error> {
        let mut path = Vec::new();
        let mut at = number;
        let mut link = loop {
            if at < FIRST_NODE {
                break Root::from_number(at).map(Link::Root);
            }
            if let Some(known) = self.known.get(&at) {
                break *known;
            }
            if at >= self.used {
                break None;
            }
            let (address, parent) = self.node(at)?;
            path.push((at, address));
            // A child is always made after its parent: anything else is damage, and could be a circle.
            if address == 0 || parent >= at {
                break None;
            }
            at = parent;
        };
        while let Some((number, address)) = path.pop() {
            link = link.map(|caller| self.intern(number, address, caller));
            self.known.insert(number, link);
        }
        Ok(link)
    }

    /// The frame in the function in which a thread began: the third from the root of a complete stack.
    pub(super) fn start(&mut self, first_node: u32) -> Result<Option<usize>, Error> {
        let Some(mut link) = self.resolve(first_node)? else { return Ok(None) };
        let mut latest = [None; 3];
        while let Link::Frame(id) = link {
            latest = [Some(id), latest[0], latest[1]];
            match self.frames.get(id) {
                Some(frame) => link = frame.caller,
                None => break,
            }
        }
        Ok(latest[2].filter(|_| link == Link::Root(Root::Complete)))
    }

    fn intern(&mut self, number: u32, address: u64, caller: Link) -> Link {
        let flags = address & !(NODE_ADDRESS_MASK | NODE_RESUMED);
        let address = address & NODE_ADDRESS_MASK;
        let mut frame = Frame { address, flags, module: None, caller };
        // A stack that creates a task is made before that is met: anything else is damage, and could be a circle.
        self.origins.extend(frame.origin().filter(|origin| *origin < number));
        let is_note = flags & NODE_ASYNC != 0 && (address <= ASYNC_BROKEN || frame.origin().is_some());
        frame.module = if flags & NODE_ELIDED != 0 || is_note {
            None
        } else if flags & (NODE_INTERRUPTED | NODE_SIGNAL | NODE_ASYNC) != 0 {
            self.modules.find(address, number)
        } else {
            // A call that does not return can be a module's last instruction.
            self.modules.find(address.saturating_sub(1), number)
        };
        let id = *self.ids.entry(frame).or_insert_with(|| {
            self.frames.push(frame);
            self.frames.len() - 1
        });
        Link::Frame(id)
    }

    fn node(&mut self, number: u32) -> Result<(u64, u32), Error> {
        let block = number / NODES_PER_BLOCK;
        if !self.blocks.contains_key(&block) {
            let mut bytes = vec![0; NODES_PER_BLOCK as usize * size_of::<Node>()];
            let offset = NODES.offset + u64::from(block) * bytes.len() as u64;
            self.area.read(offset, &mut bytes)?;
            self.blocks.insert(block, bytes.into_boxed_slice());
        }
        let bytes = self.blocks.get(&block).map_or(&[][..], |bytes| bytes);
        let entry = (number % NODES_PER_BLOCK) as usize * size_of::<Node>();
        let node = Bytes::new(bytes);
        Ok((node.u64(entry + offset_of!(Node, address)), node.u32(entry + offset_of!(Node, parent))))
    }
}
