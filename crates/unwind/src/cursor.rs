//! Reads unwind information byte by byte, inside given bounds.

#![expect(unsafe_code, reason = "unwind information is read where the loader mapped it")]

/// A place in mapped bytes, and where they end. Nothing is read at or beyond the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Cursor {
    at: u64,
    end: u64,
}

/// `DW_EH_PE_*`, the encodings of pointers in `.eh_frame` and `.eh_frame_hdr` (Linux Standard Base, "DWARF extensions").
pub(crate) mod encoding {
    pub(crate) const ABSOLUTE: u8 = 0x00;
    pub(crate) const OMIT: u8 = 0xff;
    pub(crate) const UDATA4: u8 = 0x03;
    /// `DW_EH_PE_datarel | DW_EH_PE_sdata4`: what all linkers write into the table of `.eh_frame_hdr`.
    pub(crate) const DATAREL_SDATA4: u8 = 0x3b;
    pub(crate) const FORMAT: u8 = 0x0f;
    pub(crate) const PCREL: u8 = 0x10;
    pub(crate) const APPLICATION: u8 = 0x70;
    pub(crate) const INDIRECT: u8 = 0x80;
}

impl Cursor {
    /// A cursor over `at..end`; empty if that is no range.
    ///
    /// # Safety
    /// The bytes are readable, and do not change, for as long as the cursor or one made from it is used.
    pub(crate) unsafe fn new(at: u64, end: u64) -> Self {
        Self { at, end: end.max(at) }
    }

    /// Where the cursor stands.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// How many bytes are left.
    pub(crate) fn len(&self) -> u64 {
        self.end - self.at
    }

    /// Takes the next `len` bytes as a cursor of their own; `None` if there are fewer.
    pub(crate) fn split(&mut self, len: u64) -> Option<Self> {
        if len > self.len() {
            return None;
        }
        let head = Self { at: self.at, end: self.at + len };
        self.at += len;
        Some(head)
    }

    /// Goes `offset` bytes on from here; `None` (and no move) if that is outside of `whole`.
    pub(crate) fn jump(&mut self, offset: i64, whole: &Self) -> Option<()> {
        let to = self.at.wrapping_add_signed(offset);
        if to < whole.at || to > whole.end {
            return None;
        }
        self.at = to;
        Some(())
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        if (N as u64) > self.len() {
            return None;
        }
        // SAFETY: `at + N` is at most `end`, and `new`'s caller promised that these bytes are readable; bytes have
        // no alignment.
        let bytes = unsafe { (self.at as *const [u8; N]).read() };
        self.at += N as u64;
        Some(bytes)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|bytes| bytes[0])
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    /// An unsigned LEB128 number; `None` if it is longer than 64 bits.
    pub(crate) fn uleb(&mut self) -> Option<u64> {
        let mut value = 0;
        let mut shift = 0;
        loop {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 || shift > 63 && bits != 0 {
                return None;
            }
            if shift < 64 {
                value |= bits << shift;
            }
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(value);
            }
            if shift > 126 {
                return None;
            }
        }
    }

    /// A signed LEB128 number; what does not fit into 64 bits is cut off.
    pub(crate) fn sleb(&mut self) -> Option<i64> {
        let mut value = 0i64;
        let mut shift = 0;
        loop {
            let byte = self.u8()?;
            if shift < 64 {
                value |= i64::from(byte & 0x7f) << shift;
            }
            shift += 7;
            if byte & 0x80 == 0 {
                if shift < 64 && byte & 0x40 != 0 {
                    value |= -1 << shift;
                }
                return Some(value);
            }
            if shift > 126 {
                return None;
            }
        }
    }

    /// The bits of a pointer as `format` stores them, before anything is added to them.
    pub(crate) fn encoded_value(&mut self, format: u8) -> Option<u64> {
        Some(match format & encoding::FORMAT {
            0x00 | 0x04 | 0x0c => self.u64()?,
            0x01 => self.uleb()?,
            0x02 => u64::from(self.u16()?),
            0x03 => u64::from(self.u32()?),
            0x09 => self.sleb()? as u64,
            0x0a => i64::from(self.u16()? as i16) as u64,
            0x0b => i64::from(self.u32()? as i32) as u64,
            _ => return None,
        })
    }

    /// A pointer, absolute or relative to its own place; `None` for kinds that code addresses never have.
    pub(crate) fn encoded_pointer(&mut self, how: u8) -> Option<u64> {
        if how & encoding::INDIRECT != 0 {
            return None;
        }
        let here = self.at;
        let value = self.encoded_value(how)?;
        match how & encoding::APPLICATION {
            encoding::ABSOLUTE => Some(value),
            encoding::PCREL => Some(here.wrapping_add(value)),
            _ => None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn over(bytes: &'static [u8]) -> Cursor {
        let at = bytes.as_ptr() as u64;
        // SAFETY: the bytes are static.
        unsafe { Cursor::new(at, at + bytes.len() as u64) }
    }

    #[test]
    fn leb_numbers() {
        assert_eq!(over(&[0xe5, 0x8e, 0x26]).uleb(), Some(624_485));
        assert_eq!(
            over(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]).uleb(),
            Some(u64::MAX)
        );
        assert_eq!(over(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]).uleb(), None);
        assert_eq!(over(&[0x80; 30]).uleb(), None);
        assert_eq!(over(&[0x78]).sleb(), Some(-8));
        assert_eq!(over(&[0x80, 0x7f]).sleb(), Some(-128));
        assert_eq!(over(&[0x80]).sleb(), None);
    }

    #[test]
    fn nothing_is_read_beyond_the_end() {
        let mut cursor = over(&[1, 2, 3]);
        assert_eq!(cursor.u32(), None);
        assert_eq!(cursor.u16(), Some(0x0201));
        assert_eq!(cursor.u16(), None);
        assert_eq!(cursor.u8(), Some(3));
        assert_eq!(cursor.u8(), None);
        assert!(over(&[1]).split(2).is_none());
    }

    #[test]
    fn pointers_relative_to_their_place() {
        let mut cursor = over(&[0xfc, 0xff, 0xff, 0xff]);
        let at = cursor.at();
        assert_eq!(cursor.encoded_pointer(0x1b), Some(at - 4));
        assert_eq!(over(&[0; 8]).encoded_pointer(0x9b), None);
    }
}
